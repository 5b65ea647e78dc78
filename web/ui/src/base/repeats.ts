// SPDX-License-Identifier: Apache-2.0
// Repeats of a setting: which params define them; count, mean and sample standard deviation.
import { tellingParams, type splitParams } from './params.ts';

const SEED = /(^|[_.-])(random_)?seed$/i;

/** Params that define a setting: all that differ, except the seed. If only the seed differs, a constant one. Empty
 * without a seed. */
export function allButSeed(split: ReturnType<typeof splitParams>): string[] {
	if (!split.differ.some((k) => SEED.test(k))) return [];
	const others = tellingParams(split, Infinity).filter((k) => !SEED.test(k));
	return others.length ? others : split.same.slice(0, 1).map(([k]) => k);
}

export interface Together {
	/** Number of finite values; others are ignored. */
	n: number;
	/** NaN without values. */
	mean: number;
	/** Sample standard deviation, after ±; NaN of fewer than two values. */
	std: number;
}

export function together(values: readonly (number | null | undefined)[]): Together {
	const list = values.filter((v): v is number => typeof v === 'number' && Number.isFinite(v));
	const n = list.length;
	const mean = list.reduce((a, v) => a + v, 0) / n;
	const squares = list.reduce((a, v) => a + (v - mean) ** 2, 0);
	return { n, mean, std: n > 1 ? Math.sqrt(squares / (n - 1)) : NaN };
}
