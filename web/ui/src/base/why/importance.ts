// Which params move a number, and how surely: a param's importance is the share of the number's variance that is lost
// when its values are shuffled among runs that the model has not seen (the total Sobol index, as far as the model has
// learnt the function). Every model also gets a shuffled copy of each param; a param that does no better than the best
// of the copies says nothing.
import { growTree, predictions, random, type Predictions, type Tree } from './forest.ts';
import { growSmooth, smoothPredictions, type Smooth } from './smooth.ts';

/** A param's values by run: numbers, or words; undefined where a run has none. */
type ParamValues = readonly (string | undefined)[];

export interface Importance {
	name: string;
	/** Share of the variance, and the ends of its 90 % interval. */
	share: number;
	low: number;
	high: number;
	/** More than noise would show; else nobody can tell. */
	sure: boolean;
}

interface Options {
	seed?: number;
	/** Models over resampled runs, and trees of each at most. */
	models?: number;
	trees?: number;
}

/** Fewer runs than this say nothing. */
export const RUNS_MIN = 12;
/** Runs that a model is made from at most. */
const SAMPLE_MAX = 700;
const LEAF = 2;
/** Values that the trees of a model go over at their first node, all together: many params of many runs get fewer. */
const WORK_MAX = 560000;
const TREES_MIN = 6;
/** Values of columns that a smooth model is made from too, at most: with more, trees see enough by themselves. */
const SMOOTH_MAX = 3500;
const NOISE_QUANTILE = 0.95;
/** A share of less is printed as 0 %: nothing to act on, however sure it is. */
const SHARE_MIN = 0.005;

/** A param's values as a model sees them, by run: made anew for each, since words have no order of their own. */
type Column = (next: () => number) => Float64Array;

/** Words as places in a random order, a missing value as one of them. */
function words(values: ParamValues): Column {
	const all = [...new Set(values)];
	const place = new Map(all.map((w, i) => [w, i]));
	const codes = Int32Array.from(values, (v) => place.get(v)!);
	return (next) => {
		const drawn = ranked(Float64Array.from(all, next));
		return Float64Array.from(codes, (c) => drawn[c]!);
	};
}

/** Numbers by their rank, a missing value below them; words in a random order. */
function column(values: ParamValues): Column {
	const numbers = values.map((v) => (v === undefined || v.trim() === '' ? NaN : Number(v)));
	if (!values.every((v, i) => v === undefined || Number.isFinite(numbers[i]!))) return words(values);
	const least = Math.min(...numbers.filter(Number.isFinite));
	const made = ranked(Float64Array.from(numbers, (v) => (Number.isNaN(v) ? least - 1 : v)));
	return () => made;
}

/** Numbers spread over the whole range by their rank, ties together: where values span factors, a cut is as likely in
 * each. */
function ranked(x: Float64Array): Float64Array {
	const values = x.slice().sort(); // by the engine's own order, many times faster than by a function
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

/** What a model is made of: some of the runs, close together in memory, because it goes over them so often. */
interface Model {
	columns: Float32Array[];
	y: Float64Array;
	trees: Tree[];
	/** Of few runs another one: what errs least on the rows unseen is asked. */
	smooth: Smooth | null;
	/** Rows that it has not seen. */
	unseen: Int32Array;
}

function fit(params: readonly Column[], y: Float64Array, most: number, next: () => number): Model {
	const n = y.length;
	const size = Math.min(SAMPLE_MAX, Math.ceil(n * 0.65));
	const used = shuffled(n, next).slice(0, size + SAMPLE_MAX);
	const own = params.map((p) => {
		const x = p(next); // ranks: 32 bits hold them
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

/** The share of the variance that is lost without each column: half the mean square of what shuffling it changes. */
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

/** The mean square errors of what a model says of y, and with each column changed. */
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

/**
 * The importance of params for a number, the largest first. Runs whose number is not finite are to be left out before.
 * Empty where there are too few runs. Between models the page may breathe: it is a generator that yields how far it is.
 */
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
		return { name, share, low: Math.max(0, quantile(list, 0.05)), high: quantile(list, 0.95),
			sure: share > Math.max(bar, SHARE_MIN) && quantile(list, 0.05) > 0 };
	}).sort((a, b) => b.share - a.share);
}
