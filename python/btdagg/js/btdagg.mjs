// Decisions of the models that Python's btdagg saves, operation by operation with the Rust core.
//
//   import { load } from "./btdagg.mjs";
//   const model = load(await readFile("model.json", "utf8"));
//   model.decide([0, 1, 11]);        // a point of the label scale: 1
//   model.probabilities([0, 1, 11]); // in label order
//
// No dependencies; types are in btdagg.d.mts.

const SATURATED = Number.MAX_VALUE / 4;
const FARTHEST = 1e300; // that an offset goes, and a step between grades

const clamp = (x, most = SATURATED) => Math.min(Math.max(x, -most), most);

// ln((part + rest) / rest), accurate where part is small.
function lnRatio(part, rest) {
  const ratio = part / rest;
  return Number.isFinite(ratio) ? Math.log1p(ratio) : Math.log(part) - Math.log(rest);
}

// a + b as the rounded sum and its exact rounding error (Knuth).
function twoSum(a, b) {
  const sum = a + b;
  const rounded = sum - a;
  return [sum, a - (sum - rounded) + (b - rounded)];
}

function expSum(high, low) {
  const exp = Math.exp(high);
  return exp + exp * low;
}

// ---- pairs, by counts of minus, tie and plus

// Half the log of (plus + alpha) / (minus + alpha); swapping the sides negates it exactly.
function margin(minus, plus, alpha) {
  const size = 0.5 * lnRatio(Math.abs(plus - minus), Math.min(minus, plus) + alpha);
  return plus >= minus ? size : -size;
}

// What features count for beside the usual number of votes, if the model has one.
function share(model, smoothing, votes) {
  const whole = Math.round(votes);
  const n = Math.abs(votes - whole) <= 1e-9 * whole ? whole : votes;
  if (!model.usual_votes || !(n > 0)) return 1;
  return lnRatio(model.usual_votes, smoothing) / lnRatio(n, smoothing);
}

function logits(model, minus, tie, plus) {
  const votes = minus + tie + plus;
  const side = margin(minus, plus, model.alpha) * share(model, model.alpha, votes);
  const u = clamp(model.beta * side);
  const ties = -lnRatio(minus + plus, tie + model.kappa) * share(model, model.kappa, votes);
  const slope = model.gamma * ties;
  const [high, low] = twoSum(model.eta0, slope);
  if (Math.abs(high) < SATURATED) {
    return { u, high, low, scale: Math.abs(model.eta0) + Math.abs(slope) };
  }
  return { u, high: clamp(high), low: 0, scale: SATURATED };
}

/** Probabilities of -1, 0 and +1. */
export function probabilities(model, minus, tie, plus, offset = 0) {
  const { u: own, high, low } = logits(model, minus, tie, plus);
  const u = clamp(own + offset);
  const size = Math.abs(u);
  const [gap, error] = twoSum(high, -size); // tie against the leading side
  const apart = Math.exp(-2 * size); // trailing side against the leading one
  let weights = [apart, expSum(gap, error + low), 1];
  if (gap > 0) {
    const leading = expSum(-gap, -(error + low));
    weights = [leading * apart, 1, leading];
  }
  const total = weights[0] + weights[1] + weights[2];
  const p = weights.map((weight) => weight / total);
  return u >= 0 ? p : p.reverse();
}

/** Expected absolute error of -1, 0 and +1. */
export const risks = (p) => errors(p, PAIRS.points);

// The leader where 2 sinh|u| > exp(eta), compared as logarithms; what rounding cannot tell apart is
// equal, and equal risks give a tie.
function action({ u, high, low, scale }) {
  const size = Math.abs(u);
  const lead = size + Math.log(-Math.expm1(-2 * size)); // minus infinity where nobody leads
  const rounding = 8 * Number.EPSILON * (1 + Math.abs(lead) + scale);
  return lead - high - low > rounding ? Math.sign(u) : 0;
}

/** The label of least expected absolute error: -1, 0 or +1. */
export function decide(model, minus, tie, plus, offset = 0) {
  const terms = logits(model, minus, tie, plus);
  const label = action(terms);
  if (offset === 0) return label;
  // Between these offsets it is a tie; at offset 0 the decision is that of the action.
  const { u, high, low, scale } = terms;
  const width = high > 40 ? high : Math.asinh(expSum(high, low) / 2);
  const rounding = Math.tanh(width) * (1 + 2 * scale);
  const reach = width + 8 * Number.EPSILON * (rounding + Math.abs(u));
  let [below, above] = [-reach - u, reach - u];
  const least = 2 ** -1022;
  if (label < 0) below = Math.max(below, least);
  else if (label > 0) above = Math.min(above, -least);
  else [below, above] = [Math.min(below, 0), Math.max(above, 0)];
  return offset > above ? 1 : offset < below ? -1 : 0;
}

/** The label with the most votes; where several share the most, a tie. */
export function majority(minus, tie, plus) {
  if (plus > tie && plus > minus) return 1;
  return minus > tie && minus > plus ? -1 : 0;
}

// ---- grades, by the mean vote

// Log odds of the grades below a boundary against those above.
function excess(intercepts, boundary, x) {
  const side = (steps, sign) => {
    let [logit, logSum] = [0, 0];
    for (const step of steps) {
      logit += sign * (x - step);
      const [least, most] = [Math.min(logSum, logit), Math.max(logSum, logit)];
      logSum = most + Math.log1p(Math.exp(least - most));
    }
    return logSum;
  };
  const below = side(intercepts.slice(0, boundary).reverse(), -1);
  const above = side(intercepts.slice(boundary + 1), 1);
  return below - above - (x - intercepts[boundary]);
}

// The mean vote from which on a grade above a boundary is decided.
function threshold(beta, intercepts, boundary) {
  const start = intercepts[boundary];
  // The excess falls by at least 1 for every 1 of x: its root is no further than it is large.
  const end = start + excess(intercepts, boundary, start);
  let [low, high] = [Math.min(start, end), Math.max(start, end)];
  for (;;) {
    const middle = low + (high - low) / 2;
    if (!(low < middle && middle < high)) return middle / beta;
    if (excess(intercepts, boundary, middle) > 0) low = middle;
    else high = middle;
  }
}

// The next float above a number.
function nextUp(x) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, x === 0 ? 0 : x);
  view.setBigInt64(0, view.getBigInt64(0) + (x >= 0 ? 1n : -1n));
  return view.getFloat64(0);
}

// The least mean that each grade but the lowest is decided at: a mean within rounding of a threshold
// is on it, where the grade nearer to the middle is decided, in the middle the lower one.
function leastMeans(beta, intercepts, points) {
  const size = Math.max(...points.map(Math.abs));
  return intercepts.map((_, below) => {
    const at = threshold(beta, intercepts, below);
    const rounding = 8 * Number.EPSILON * Math.max(size, Math.abs(at));
    return 2 * (below + 1) <= intercepts.length ? at - rounding : nextUp(at + rounding);
  });
}

// ---- files

const PAIRS = { points: [-1, 0, 1], names: ["-1", "0", "1"], mirrored: true };

function wrong(name, got, expected) {
  const shown = JSON.stringify(got, (_, value) => (typeof value === "bigint" ? `${value}n` : value));
  return new RangeError(`${name} is ${shown}, expected ${expected}`);
}

const areNumbers = (values) =>
  (Array.isArray(values) || ArrayBuffer.isView(values)) && Array.from(values).every(Number.isFinite);

function checked(counts, n) {
  const listed = areNumbers(counts) ? Array.from(counts) : [];
  if (listed.length !== n || !listed.every((count) => count >= 0 && count < 2 ** 63)) {
    throw wrong("counts", counts, `${n} numbers of at least 0`);
  }
  return listed;
}

// What covariates add to the evidence; null and NaN are missing, and count as 0.
function offsetOf(covariates, values = {}) {
  const names = covariates.map((covariate) => covariate.name);
  if (typeof values !== "object" || values === null || Array.isArray(values)) {
    throw wrong("covariates", values, "an object of numbers by name");
  }
  for (const name of Object.keys(values)) {
    const known = names.join(", ") || "none, since the model has none";
    if (!names.includes(name)) throw wrong("covariates", name, known);
  }
  const absent = names.filter((name) => !(name in values));
  if (absent.length) throw wrong("covariates", values, `${absent.join(" and ")} of the item`);
  let offset = 0;
  for (const { name, weight, scale, centre } of covariates) {
    const value = values[name] ?? NaN;
    if (typeof value !== "number") throw wrong(name, value, "a number, or null where missing");
    const scaled = (value - centre) / scale;
    const most = Number.MAX_VALUE;
    offset += (Number.isNaN(scaled) ? 0 : Math.min(Math.max(scaled, -most), most)) * weight;
  }
  return clamp(offset, FARTHEST);
}

const errors = (p, points) =>
  points.map((point) => p.reduce((sum, q, k) => sum + q * Math.abs(points[k] - point), 0));

function ofPairs(file, covariates, points) {
  return {
    decide: (counts, values) =>
      points[decide(file, ...checked(counts, 3), offsetOf(covariates, values)) + 1],
    probabilities: (counts, values) =>
      probabilities(file, ...checked(counts, 3), offsetOf(covariates, values)),
  };
}

function ofGrades(file, covariates, points) {
  const votes = file.scale.points;
  const intercepts = file.cuts.map((cut) => file.beta * cut);
  const least = leastMeans(file.beta, intercepts, votes);
  const mean = (counts) => {
    let [n, sum] = [0, 0];
    checked(counts, votes.length).forEach((count, k) => {
      n += count;
      sum += count * votes[k];
    });
    if (n === 0) throw wrong("counts", counts, "at least one vote");
    return sum / n;
  };
  return {
    decide: (counts, values) => {
      const offset = offsetOf(covariates, values);
      const at = covariates.length ? mean(counts) + offset / file.beta : mean(counts);
      return points[least.filter((start) => at >= start).length];
    },
    probabilities: (counts, values) => {
      const slope = clamp(file.beta * mean(counts), FARTHEST) + offsetOf(covariates, values);
      const logits = [0];
      for (const intercept of intercepts) logits.push(logits.at(-1) + (slope - intercept));
      const most = Math.max(...logits);
      const weights = logits.map((logit) => Math.exp(logit - most));
      const total = weights.reduce((sum, weight) => sum + weight);
      return weights.map((weight) => weight / total);
    },
  };
}

// The fields of a file: its text, its bytes, or what JSON made of them.
function read(text) {
  const plain = ArrayBuffer.isView(text) ? new TextDecoder().decode(text) : text;
  if (typeof plain !== "string") return plain;
  try {
    return JSON.parse(plain);
  } catch (error) {
    throw new RangeError(`the model is no JSON, expected what Python's save wrote: ${error.message}`);
  }
}

/** The model of a file that Python's `save` wrote, of pairs or of grades. */
export function load(text) {
  const file = read(text);
  const kinds = { "btdagg.davidson": ofPairs, "btdagg.grades": ofGrades };
  const kind = Object.hasOwn(kinds, file?.format) ? kinds[file.format] : undefined;
  if (!kind) throw wrong("format", file?.format, Object.keys(kinds).join(" or "));
  if (file.version !== 1) throw wrong("version", file.version, "1");
  const numbers = kind === ofPairs ? ["beta", "eta0", "gamma", "alpha", "kappa"] : ["beta"];
  for (const name of numbers) {
    if (!Number.isFinite(file[name])) throw wrong(name, file[name], "a finite number");
  }
  const positive = kind === ofPairs ? ["alpha", "kappa"] : ["beta"];
  for (const name of positive) {
    if (!(file[name] > 0)) throw wrong(name, file[name], "a finite number above 0");
  }
  const usual = file.usual_votes ?? 1;
  if (!(Number.isFinite(usual) && usual > 0)) throw wrong("usual_votes", usual, "a number above 0");
  const [scale, labels] = [file.scale ?? PAIRS, file.label_scale ?? PAIRS];
  for (const [name, { points }] of Object.entries({ scale, label_scale: labels })) {
    if (!areNumbers(points)) throw wrong(name, points, "a list of points");
  }
  const { points } = labels;
  if (kind === ofGrades && !(areNumbers(file.cuts) && file.cuts.length === points.length - 1)) {
    throw wrong("cuts", file.cuts, `${points.length - 1} numbers`);
  }
  const covariates = file.covariates ?? [];
  for (const { name, weight, scale: size, centre } of covariates) {
    const isGood = typeof name === "string" && areNumbers([weight, size, centre]) && size > 0;
    if (!isGood) throw wrong("covariates", name, "names with numbers, scales above 0");
  }
  const model = kind(file, covariates, points);
  const names = covariates.map((covariate) => covariate.name);
  return Object.freeze({
    ...model,
    risks: (counts, values) => errors(model.probabilities(counts, values), points),
    points: [...points],
    covariates: names,
  });
}
