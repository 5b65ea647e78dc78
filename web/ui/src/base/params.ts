// SPDX-License-Identifier: Apache-2.0
// Params that differ between runs, and those that are equal in all.
import table from 'schema/insight/param_follows.def';
import type { Run } from './types.ts';
import { natural } from './format.ts';

interface ParamSplit {
	/** Names whose values differ, most relevant first. */
	differ: string[];
	/** [name, value] pairs that all runs share. */
	same: [string, string][];
}

/** Relevant names, in this order. */
export const FIRST = ['model', 'arch', 'strategy', 'world_size', 'precision', 'batch_size', 'global_batch_size',
	'opt', 'optimizer', 'lr', 'learning_rate', 'lr_scheduler', 'wd', 'weight_decay', 'epochs', 'seed'];
const NOISE =
	new RegExp('^(run[-_]?name|name|host|hostname|pid|command(_line)?|argv|start(ed)?|time'
	+ '|date|git_.*|.*_time|.*dir|.*path)$');

/** Of params that differ together, those that were chosen: without names and times, and without those that the program
 * derives from another of them. */
export function chosenParams(changed: readonly string[]): string[] {
	const derived = new Set(table.FOLLOWS!.filter(([, other]) => !other || changed.includes(other))
		.map(([key]) => key));
	return changed.filter((k) => !NOISE.test(k) && !derived.has(k));
}

function order(a: string, b: string): number {
	const x = FIRST.indexOf(a);
	const y = FIRST.indexOf(b);
	if (x >= 0 || y >= 0) return (x < 0 ? 99 : x) - (y < 0 ? 99 : y);
	const n = Number(NOISE.test(a)) - Number(NOISE.test(b));
	return n || natural(a, b);
}

/** A param that only some runs have differs. With one run, all params are equal. */
export function splitParams(runs: readonly Run[]): ParamSplit {
	/** First value of each param and the number of runs that share it. */
	const first = new Map<string, { value: string; runs: number }>();
	for (const { params } of runs)
		for (const k in params) {
			const seen = first.get(k);
			if (!seen) first.set(k, { value: params[k]!, runs: 1 });
			else if (seen.value === params[k]) seen.runs++;
		}
	const differ: string[] = [];
	const same: [string, string][] = [];
	for (const [k, { value, runs: n }] of first)
		if (n === runs.length) same.push([k, value]);
		else differ.push(k);
	differ.sort(order);
	same.sort((a, b) => order(a[0], b[0]));
	return { differ, same };
}

/** Default columns: params of the training rather than of the environment. If nothing differs (a single run), the
 * best-known names. */
export function tellingParams(split: ParamSplit, max: number): string[] {
	if (!split.differ.length) return split.same.map(([k]) => k).filter((k) => FIRST.includes(k)).slice(0, max);
	return chosenParams(split.differ).slice(0, max);
}
