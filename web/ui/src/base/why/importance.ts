// SPDX-License-Identifier: Apache-2.0
// Importance of params for a metric: the share of the variance that is lost when a param's values are permuted among
// runs unseen by the model (total Sobol index). Every model also gets permuted copies of the params; a param that is no
// better than the best copy is not significant.
import { growTree, predictions, random, type Predictions, type Tree } from './forest.ts';
import { growSmooth, smoothPredictions, type Smooth } from './smooth.ts';

/** Values of a param by run: numbers or strings; undefined if missing. */
type ParamValues = readonly (string | undefined)[];

export interface Importance {
	name: string;
	/** Share of the variance, and its 90 % interval. */
	share: number;
	low: number;
	high: number;
	/** Above the noise level. */
	sure: boolean;
}

interface Options {
	seed?: number;
	/** Number of resampled models, and maximum of trees in each. */
	models?: number;
	trees?: number;
}

/** Minimum number of runs. */
export const RUNS_MIN = 12;
/** Maximum number of runs per model. */
const SAMPLE_MAX = 700;
const LEAF = 2;
/** Total budget of values that the trees of a model read at their roots: many params of many runs get fewer trees. */
const WORK_MAX = 560000;
const TREES_MIN = 6;
/** Maximum number of values for the smooth model; trees suffice for more. */
const SMOOTH_MAX = 3500;
const NOISE_QUANTILE = 0.95;
/** Smaller shares are printed as 0 %. */
const SHARE_MIN = 0.005;

/** A param's values as model input, by run. Encoded for each model, since strings have no natural order. */
type Column = (next: () => number) => Float64Array;

/** Strings as positions in a random order; a missing value is one of them. */
function words(values: ParamValues): Column {
	const all = [...new Set(values)];
	const place = new Map(all.map((w, i) => [w, i]));
	const codes = Int32Array.from(values, (v) => place.get(v)!);
	return (next) => {
		const drawn = ranked(Float64Array.from(all, next));
		return Float64Array.from(codes, (c) => drawn[c]!);
	};
}

/** Numbers by rank, missing values lowest; strings in random order. */
function column(values: ParamValues): Column {
	const numbers = values.map((v) => (v === undefined || v.trim() === '' ? NaN : Number(v)));
	if (!values.every((v, i) => v === undefined || Number.isFinite(numbers[i]!))) return words(values);
	const least = Math.min(...numbers.filter(Number.isFinite));
	const made = ranked(Float64Array.from(numbers, (v) => (Number.isNaN(v) ? least - 1 : v)));
	return () => made;
}

/** Numbers spread evenly by rank, with ties together, so that splits are equally likely over orders of magnitude. */
function ranked(x: Float64Array): Float64Array {
	const values = x.slice().sort(); // the default sort is many times faster than one with a comparator
	let n = 0;
	for (const v of values) if (n === 0 || v !== values[n - 1]) values[n++] = v;
	return x.map((v) => {
		let [from, to] = [0, n - 1];
		while (from < to) {
			const middle = (from + to) >> 1;
			if (values[middle]! < v) from = middle + 1;
			else to = middle;
		}
		return from;
	});
}

function shuffled(n: number, next: () => number): Int32Array {
	const out = Int32Array.from({ length: n }, (_, i) => i);
	for (let i = n - 1; i > 0; i--) {
		const k = Math.floor(next() * (i + 1));
		[out[i], out[k]] = [out[k]!, out[i]!];
	}
	return out;
}

/** Training data of a model, contiguous in memory for speed. */
interface Model {
	columns: Float32Array[];
	y: Float64Array;
	trees: Tree[];
	/** With few runs, a second model; the one with the smaller error on unseen rows is used. */
	smooth: Smooth | null;
	/** Rows that it has not seen. */
	unseen: Int32Array;
}

function fit(params: readonly Column[], y: Float64Array, most: number, next: () => number): Model {
	const n = y.length;
	const size = Math.min(SAMPLE_MAX, Math.ceil(n * 0.65));
	const used = shuffled(n, next).slice(0, size + SAMPLE_MAX);
	const own = params.map((p) => {
		const x = p(next); // ranks fit 32 bits
		return Float32Array.from(used, (row) => x[row]!);
	});
	const copies = own.map((x) => Float32Array.from(shuffled(used.length, next), (i) => x[i]!));
	const columns = [...own, ...copies];
	const of = Float64Array.from(used, (row) => y[row]!);
	const all = Int32Array.from(used.keys());
	const grow = () => growTree({ columns, y: of, rows: all.slice(0, size), tries: columns.length, leaf: LEAF,
		next });
	const trees = Math.max(TREES_MIN, Math.min(most, Math.floor(WORK_MAX / (size * columns.length))));
	const smooth = size * columns.length <= SMOOTH_MAX ? growSmooth(columns, of, size) : null;
	return { columns, y: of, trees: Array.from({ length: trees }, grow), smooth, unseen: all.slice(size) };
}

/** The share of variance lost by permuting each column: half the mean squared change. */
function shares({ columns, y, trees, smooth, unseen }: Model, next: () => number): number[] {
	const others = columns.map(() => shuffled(unseen.length, next).map((i) => unseen[i]!));
	const of = Float64Array.from(unseen, (row) => y[row]!);
	const forest = judged(predictions(trees, columns, unseen, others), of);
	const said = smooth ? judged(smoothPredictions(smooth, unseen, others), of) : forest;
	const { base, errors } = said.base < forest.base ? said : forest;
	const mean = of.reduce((a, v) => a + v, 0) / of.length;
	const variance = of.reduce((a, v) => a + (v - mean) ** 2, 0) / of.length || 1;
	return errors.map((e) => (e - base) / (2 * variance));
}

/** Mean squared errors of the predictions of y, and with each column changed. */
function judged({ still, changes }: Predictions, y: Float64Array): { base: number; errors: number[] } {
	const error = (change: Float64Array | null) => y.reduce((sum, v, i) =>
		sum + (still[i]! + (change ? change[i]! : 0) - v) ** 2, 0) / y.length;
	return { base: error(null), errors: changes.map(error) };
}

function quantile(sorted: readonly number[], q: number): number {
	const at = q * (sorted.length - 1);
	const i = Math.floor(at);
	return sorted[i]! + (sorted[Math.min(i + 1, sorted.length - 1)]! - sorted[i]!) * (at - i);
}

/** Importance of the params for a number, largest first. The caller leaves out runs with a non-finite number. Empty
 * with too few runs. A generator that yields its progress between models, so that the page stays responsive. */
export function* importanceOf(params: Readonly<Record<string, ParamValues>>, target: readonly number[],
	{ seed = 1, models = 20, trees = 40 }: Options = {}): Generator<number, Importance[]> {
	const names = Object.keys(params);
	if (target.length < RUNS_MIN || !names.length) return [];
	const next = random(seed);
	const y = Float64Array.from(target);
	const columns = Object.values(params).map(column);
	const found: number[][] = names.map(() => []);
	const noise: number[] = [];
	for (let m = 0; m < models; m++) {
		const got = shares(fit(columns, y, trees, next), next);
		names.forEach((_, i) => found[i]!.push(got[i]!));
		noise.push(Math.max(...got.slice(names.length)));
		yield (m + 1) / models;
	}
	const bar = quantile(noise.sort((a, b) => a - b), NOISE_QUANTILE);
	return names.map((name, i): Importance => {
		const list = found[i]!.sort((a, b) => a - b);
		const share = list.reduce((a, v) => a + v, 0) / list.length;
		return { name, share, low: Math.max(0, quantile(list, 0.05)), high: Math.min(1, quantile(list, 0.95)),
			sure: share > Math.max(bar, SHARE_MIN) && quantile(list, 0.05) > 0 };
	}).sort((a, b) => b.share - a.share);
}
