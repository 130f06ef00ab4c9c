// The model of btdagg.DavidsonModel, operation by operation with the Rust core: margin and tie
// feature, probabilities, risks and the decision. Arrays are in label order: -1, 0, +1.
const davidson = (() => {
  const SATURATED = Number.MAX_VALUE / 4;

  const clamp = (x) => Math.min(Math.max(x, -SATURATED), SATURATED);

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

  // Half the log of (plus + alpha) / (minus + alpha); swapping the sides negates it exactly.
  function margin(minus, plus, alpha) {
    const size = 0.5 * lnRatio(Math.abs(plus - minus), Math.min(minus, plus) + alpha);
    return plus >= minus ? size : -size;
  }

  // What features count for beside the usual number of votes, if the model has one.
  function share(model, smoothing, votes) {
    if (!model.usual_votes || votes === 0) return 1;
    return lnRatio(model.usual_votes, smoothing) / lnRatio(votes, smoothing);
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

  function expSum(high, low) {
    const exp = Math.exp(high);
    return exp + exp * low;
  }

  function probabilities(model, minus, tie, plus) {
    const { u, high, low } = logits(model, minus, tie, plus);
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

  // Expected absolute error of each label.
  const risks = ([minus, tie, plus]) => [tie + 2 * plus, minus + plus, 2 * minus + tie];

  // The label of least risk: the leader where 2 sinh|u| > exp(eta), compared as logarithms; what
  // rounding cannot tell apart is equal, and equal risks give a tie.
  function decide(model, minus, tie, plus) {
    const { u, high, low, scale } = logits(model, minus, tie, plus);
    const size = Math.abs(u);
    const lead = size + Math.log(-Math.expm1(-2 * size)); // minus infinity where nobody leads
    const rounding = 8 * Number.EPSILON * (1 + Math.abs(lead) + scale);
    return lead - high - low > rounding ? Math.sign(u) : 0;
  }

  // The label with the most votes; where several share the most, a tie.
  function majority(minus, tie, plus) {
    if (plus > tie && plus > minus) return 1;
    return minus > tie && minus > plus ? -1 : 0;
  }

  return { probabilities, risks, decide, majority };
})();
