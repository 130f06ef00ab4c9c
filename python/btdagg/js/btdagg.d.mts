/** Counts of an item's votes: minus, tie and plus, or of grades one for each point of the scale. */
export type Counts = ArrayLike<number>;

/** Numbers that a model knows of items besides their votes; null where one is missing. */
export type Covariates = Readonly<Record<string, number | null>>;

/** A model of pairs, or of grades. Arrays are in the order of the points of the label scale. */
export interface Model {
  /** The point of the label scale of least expected absolute error. Throws RangeError. */
  decide(counts: Counts, covariates?: Covariates): number;
  /** Probabilities of the points. */
  probabilities(counts: Counts, covariates?: Covariates): number[];
  /** Expected absolute error of answering each point. */
  risks(counts: Counts, covariates?: Covariates): number[];
  /** Points of the label scale, such as -1, 0 and 1. */
  readonly points: number[];
  /** Names of the covariates that it needs. */
  readonly covariates: string[];
}

/** The model of a file that Python's `save` wrote, of pairs or of grades. Throws RangeError. */
export function load(text: string | Uint8Array | object): Model;

/** The five numbers of a model of pairs. */
export interface Numbers {
  beta: number;
  eta0: number;
  gamma: number;
  alpha: number;
  kappa: number;
  usual_votes?: number | null;
}

/** The label of least expected absolute error: -1, 0 or +1. */
export function decide(
  model: Numbers, minus: number, tie: number, plus: number, offset?: number,
): -1 | 0 | 1;

/** Probabilities of -1, 0 and +1. */
export function probabilities(
  model: Numbers, minus: number, tie: number, plus: number, offset?: number,
): [number, number, number];

/** Expected absolute error of -1, 0 and +1, of their probabilities. */
export function risks(probabilities: ArrayLike<number>): [number, number, number];

/** The label with the most votes; where several share the most, a tie. */
export function majority(minus: number, tie: number, plus: number): -1 | 0 | 1;
