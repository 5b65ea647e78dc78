// Repeats of the same setting: which params make them, and what their numbers are together: how many, mean, sample
// standard deviation.
import { tellingParams, type splitParams } from './params.ts';

const SEED = /(^|[_.-])(random_)?seed$/i;

/**
 * The params that make groups of repeats: all that differ but the seed. Where the seed alone differs, one that is the
 * same in all. Empty where there is no seed to leave out.
 */
export function allButSeed(split: ReturnType<typeof splitParams>): string[] {
	if (!split.differ.some((k) => SEED.test(k))) return [];
	const others = tellingParams(split, Infinity).filter((k) => !SEED.test(k));
	return others.length ? others : split.same.slice(0, 1).map(([k]) => k);
}

export interface Together {
	/** How many of the values are finite; the others stay out. */
	n: number;
	/** NaN without any. */
	mean: number;
	/** Of a sample; NaN of fewer than two. */
	std: number;
}

export function together(values: readonly (number | null | undefined)[]): Together {
	const list = values.filter((v): v is number => typeof v === 'number' && Number.isFinite(v));
	const n = list.length;
	const mean = list.reduce((a, v) => a + v, 0) / n;
	const squares = list.reduce((a, v) => a + (v - mean) ** 2, 0);
	return { n, mean, std: n > 1 ? Math.sqrt(squares / (n - 1)) : NaN };
}
