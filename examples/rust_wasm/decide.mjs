import { readFileSync } from "node:fs";
import { load } from "./model.mjs";

const folder = new URL("target/wasm32-unknown-unknown/release/", import.meta.url);
const [file, ...counts] = process.argv.slice(2);
const model = await load(readFileSync(new URL("btdagg_wasm.wasm", folder)), readFileSync(file, "utf8"));
console.log(model.decide(counts.map(Number)), model.probabilities(counts.map(Number)));
