// Which params move a number, and how surely: a param's importance is the share of the number's variance that is lost
// when its values are shuffled among runs that the model has not seen (the total Sobol index, as far as the model has
// learnt the function). Every model also gets a shuffled copy of each param; a param that does no better than the best
// of the copies says nothing.
import { growTree, predict, random, type Tree } from './forest.ts';

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
	/** Models over resampled runs, and trees of each. */
	models?: number;
	trees?: number;
}

/** Fewer runs than this say nothing. */
export const RUNS_MIN = 12;
/** Runs that a model is made from at most. */
const SAMPLE_MAX = 700;
const LEAF = 2;
const NOISE_QUANTILE = 0.95;

/** Words as places in a random order, a missing value as one of them; numbers as they are. */
function column(values: ParamValues, next: () => number): Float64Array {
	const numbers = values.map((v) => (v === undefined || v.trim() === '' ? NaN : Number(v)));
	if (values.every((v, i) => v === undefined || Number.isFinite(numbers[i]!))) {
		const least = Math.min(...numbers.filter(Number.isFinite));
		return Float64Array.from(numbers, (v) => (Number.isNaN(v) ? least - 1 : v));
	}
	const words = new Map([...new Set(values)].map((w) => [w, next()]));
	return Float64Array.from(values, (v) => words.get(v)!);
}

/** Numbers spread over the whole range by their rank, ties together: where values span factors, a cut is as likely in
 * each. */
function ranked(x: Float64Array): Float64Array {
	const sorted = Float64Array.from(new Set(x)).sort();
	const place = new Map(Array.from(sorted, (v, i) => [v, i]));
	return x.map((v) => place.get(v)!);
}

function shuffled(n: number, next: () => number): Int32Array {
	const out = Int32Array.from({ length: n }, (_, i) => i);
	for (let i = n - 1; i > 0; i--) {
		const k = Math.floor(next() * (i + 1));
		[out[i], out[k]] = [out[k]!, out[i]!];
	}
	return out;
}

interface Model {
	columns: Float64Array[];
	trees: Tree[];
	/** Rows that it has not seen. */
	unseen: Int32Array;
}

function fit(params: readonly ParamValues[], y: Float64Array, trees: number, next: () => number): Model {
	const n = y.length;
	const own = params.map((p) => ranked(column(p, next)));
	const columns = [...own, ...own.map((x) => {
		const order = shuffled(n, next);
		return x.map((_, i) => x[order[i]!]!);
	})];
	const order = shuffled(n, next);
	const size = Math.min(SAMPLE_MAX, Math.ceil(n * 0.65));
	const unseen = order.slice(size, size + SAMPLE_MAX);
	const grow = () => growTree({ columns, y, rows: order.slice(0, size), tries: columns.length, leaf: LEAF,
		next });
	return { columns, trees: Array.from({ length: trees }, grow), unseen };
}

/** The share of the variance that is lost without each column: half the mean square of what shuffling it changes. */
function shares({ columns, trees, unseen }: Model, y: Float64Array, next: () => number): number[] {
	const errors = (moved: number, from: Int32Array) => {
		let sum = 0;
		unseen.forEach((row, i) => {
			sum += (predict(trees, columns, row, moved, unseen[from[i]!]!) - y[row]!) ** 2;
		});
		return sum / unseen.length;
	};
	const still = Int32Array.from(unseen.keys());
	const base = errors(-1, still);
	const mean = unseen.reduce((a, r) => a + y[r]!, 0) / unseen.length;
	const variance = unseen.reduce((a, r) => a + (y[r]! - mean) ** 2, 0) / unseen.length || 1;
	return columns.map((_, c) => (errors(c, shuffled(unseen.length, next)) - base) / (2 * variance));
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
	const found: number[][] = names.map(() => []);
	const noise: number[] = [];
	for (let m = 0; m < models; m++) {
		const got = shares(fit(Object.values(params), y, trees, next), y, next);
		names.forEach((_, i) => found[i]!.push(got[i]!));
		noise.push(Math.max(...got.slice(names.length)));
		yield (m + 1) / models;
	}
	const bar = quantile(noise.sort((a, b) => a - b), NOISE_QUANTILE);
	return names.map((name, i): Importance => {
		const list = found[i]!.sort((a, b) => a - b);
		const share = list.reduce((a, v) => a + v, 0) / list.length;
		return { name, share, low: Math.max(0, quantile(list, 0.05)), high: quantile(list, 0.95),
			sure: share > bar && quantile(list, 0.05) > 0 };
	}).sort((a, b) => b.share - a.share);
}
