// SPDX-License-Identifier: Apache-2.0
// Rank correlation of two columns (Spearman, ties by mean rank) with its interval, in words. Ranks, because params span
// orders of magnitude and relations are rarely linear.

interface Relation {
	/** Pairs of finite numbers. */
	n: number;
	/** NaN if a column is constant or empty. */
	r: number;
	/** The ends of the interval. */
	low: number;
	high: number;
	/** The interval excludes 0. */
	sure: boolean;
}

/** Minimum number of pairs for an interval. */
const PAIRS_MIN = 4;
/** Error rate of the intervals. */
const MISS = 0.05;

/** Ranks from 1; ties share their mean rank. */
function ranks(x: readonly number[]): Float64Array {
	const order = Int32Array.from(x.keys()).sort((a, b) => x[a]! - x[b]!);
	const out = new Float64Array(x.length);
	for (let i = 0, end; i < order.length; i = end) {
		for (end = i + 1; end < order.length && x[order[end]!] === x[order[i]!];) end++;
		for (let k = i; k < end; k++) out[order[k]!] = (i + end + 1) / 2;
	}
	return out;
}

function correlation(x: Float64Array, y: Float64Array): number {
	const middle = (x.length + 1) / 2;
	let [xx, yy, xy] = [0, 0, 0];
	x.forEach((v, i) => {
		xx += (v - middle) ** 2;
		yy += (y[i]! - middle) ** 2;
		xy += (v - middle) * (y[i]! - middle);
	});
	return Math.max(-1, Math.min(1, xy / Math.sqrt(xx * yy)));
}

/** The standard normal's upper quantile of a small p (Abramowitz and Stegun 26.2.23: within 4.5e-4). */
function upper(p: number): number {
	const t = Math.sqrt(-2 * Math.log(p));
	return t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

/** Correlation of two columns, one of several that are tested together (simultaneous 95 % coverage). The interval is
 * Bonett and Wright's (Psychometrika 65, 2000). r is moved half a swap of neighbours towards 0, so that few runs in
 * perfect order are not certain. */
export function relationOf(x: readonly number[], y: readonly number[], several = 1): Relation {
	const both = [...x.keys()].filter((i) => Number.isFinite(x[i]) && Number.isFinite(y[i]));
	const n = both.length;
	const r = correlation(ranks(both.map((i) => x[i]!)), ranks(both.map((i) => y[i]!)));
	if (Number.isNaN(r) || n < PAIRS_MIN) return { n, r, low: -1, high: 1, sure: false };
	const near = Math.sign(r) * Math.max(0, Math.abs(r) - 6 / (n * (n * n - 1)));
	const reach = upper(MISS / 2 / several) * Math.sqrt((1 + near * near / 2) / (n - 3));
	const [low, high] = [Math.tanh(Math.atanh(near) - reach), Math.tanh(Math.atanh(near) + reach)];
	return { n, r, low: Math.min(low, r), high: Math.max(high, r), sure: low > 0 || high < 0 };
}

const two = (v: number) => (Math.abs(v) < 0.005 ? '0' : String(Number(v.toFixed(2))).replace('-', '−'));

/** The correlation with its interval. */
export function numbersOf(f: Relation): string {
	return `rank correlation ${two(f.r)} (95 % interval ${two(f.low)} to ${two(f.high)})`;
}

/** The relation of two columns as a sentence. */
export function relationWords(x: string, y: string, f: Relation): string {
	if (f.sure) return `Higher ${x} goes with ${f.r > 0 ? 'higher' : 'lower'} ${y}: ${numbersOf(f)}.`;
	const why = f.n < PAIRS_MIN ? `too few runs with both (${f.n})`
		: Number.isNaN(f.r) ? 'one of them is the same in all runs' : numbersOf(f);
	return `Cannot tell whether ${y} moves with ${x}: ${why}.`;
}
