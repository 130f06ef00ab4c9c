/**
 * A model of pairs on the WebAssembly module.
 * @param {BufferSource | WebAssembly.Module} wasm btdagg_wasm.wasm
 * @param {string} json what Python's `save` or `btdagg calibrate` wrote
 */
export async function load(wasm, json) {
  const made = await WebAssembly.instantiate(wasm);
  const { memory, ...core } = (made.instance ?? made).exports;
  // A call may grow the memory, which then is another buffer: it is looked at after each.
  const failure = () => {
    const n = core.text_len();
    const text = core.text(n);
    return new RangeError(new TextDecoder().decode(new Uint8Array(memory.buffer, text, n)));
  };
  const bytes = new TextEncoder().encode(json);
  const text = core.text(bytes.length);
  new Uint8Array(memory.buffer, text, bytes.length).set(bytes);
  if (!core.load()) throw failure();

  const call = (name, counts) => {
    if (counts.length % 3) throw new RangeError(`counts has ${counts.length} numbers, expected 3 an item`);
    const room = core.counts(counts.length / 3);
    new Float64Array(memory.buffer, room, counts.length).set(counts);
    const result = core[name]();
    if (!result) throw failure();
    return result;
  };
  return {
    /** The labels, -1, 0 or 1, of items whose counts [minus, tie, plus, minus, ...] these are. */
    decide(counts) {
      const labels = call("decide", counts);
      return new Int8Array(memory.buffer, labels, counts.length / 3).slice();
    },
    /** The probabilities of -1, 0 and 1 of each item, one item after the other. */
    probabilities(counts) {
      const p = call("probabilities", counts);
      return new Float64Array(memory.buffer, p, counts.length).slice();
    },
  };
}
