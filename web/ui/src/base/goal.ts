// SPDX-License-Identifier: Apache-2.0
// The goal metric: which one, which direction is better, and how runs rank by it.
import table from 'schema/insight/goals.def';
import type { Alert, Metric, Run } from './types.ts';

export type Direction = 'max' | 'min';

export interface Goal {
	key: string;
	/** Which of its values is best; null: unknown, none is. */
	dir: Direction | null;
}

/** The tag of a run that says which value of the metric KEY is best is this with KEY appended. */
const TAG = 'dptrack.best.';

/** Place of a metric whose best value a run says, and of one that the table lacks. */
const SAID_PLACE = 20;
const UNKNOWN_PLACE = 2;
/** From this place on, a metric is a share of 1 or 100. */
const SHARE_PLACE = 7;

interface Rule {
	dir: Direction | null;
	place: number;
}

/** One expression for all patterns: each begins and ends where a word does, but for digits. */
function wordsOf(patterns: string): RegExp {
	const edge = '[^0-9a-z\\x80-\\uffff]';
	const any = patterns.replaceAll(' ', '|').replaceAll('_', edge);
	return new RegExp(`(?:^|${edge})(?:${any})\\d*(?:$|${edge})`, 'i');
}

const RULES = table.GOAL!.map(([patterns, dir, place]) =>
	({ has: wordsOf(patterns!), dir: dir!.toLowerCase() as Direction, place: Number(place) }));
const HELD_OUT = wordsOf(table.HELD_OUT![0]![0]!);

const isInner = (key: string): boolean => table.INNER!.some(([prefix]) => key.startsWith(prefix!));

/** Cache of rules, which are asked for thousands of keys. */
const rules = new Map<string, Rule>();

/** What schema/insight/goals.def says of a key. */
function ruleOf(key: string): Rule {
	let rule = rules.get(key);
	if (!rule)
		rules.set(key, rule = isInner(key) ? { dir: null, place: 0 }
			: RULES.find((r) => r.has.test(key)) ?? { dir: null, place: UNKNOWN_PLACE });
	return rule;
}

/** Which value of a metric is best, by what runs say or else by its name; null: unknown. */
export function directionOf(key: string, said?: ReadonlyMap<string, Direction>): Direction | null {
	return said?.get(key) ?? ruleOf(key).dir;
}

/** What runs say about their metrics; the first that says anything counts. */
export function saidOf(runs: readonly Run[]): ReadonlyMap<string, Direction> {
	const said = new Map<string, Direction>();
	for (const { tags } of runs)
		for (const k in tags)
			if (k.startsWith(TAG) && !said.has(k.slice(TAG.length)) && /^(min|max)$/.test(tags[k]!))
				said.set(k.slice(TAG.length), tags[k] as Direction);
	return said;
}

/** The default goal among the metrics of n runs: the most suitable that most of them have; of equal ones the first by
 * name. */
export function defaultGoal(seen: ReadonlyMap<string, number>, n: number,
	said: ReadonlyMap<string, Direction> = new Map()): Goal | null {
	let best: string | null = null;
	let most = 0;
	for (const [k, have] of seen) {
		const place = said.has(k) ? SAID_PLACE : ruleOf(k).place;
		const merit = (place && place + Number(HELD_OUT.test(k))) * (have * 2 >= n ? 1 : 0.3);
		if (merit > most || (merit === most && best !== null && k < best)) {
			most = merit;
			best = k;
		}
	}
	return best === null ? null : { key: best, dir: directionOf(best, said) };
}

export function isLoss(key: string): boolean {
	return directionOf(key) === 'min';
}

/** The training curve next to the goal's chart on the first screen. */
export function defaultCurve(keys: readonly string[], goal: string | null): string | null {
	const rank = (k: string) => k === 'train/loss' ? 5 : k === 'epoch/train_loss' ? 4
		: isLoss(k) && /train/.test(k) ? 3 : isLoss(k) ? 2 : isInner(k) ? 0 : 1;
	let best: string | null = null;
	let top = 0;
	for (const k of keys) {
		const r = k === goal ? 0 : rank(k);
		if (r <= top) continue;
		best = k;
		top = r;
	}
	return best;
}

/** The best finite value, the last one if it is unknown which is best; null without any. */
export function bestOf(m: Metric | undefined, dir: Direction | null): number | null {
	const v = m?.[dir ?? 'last'] ?? null;
	return v !== null && Number.isFinite(v) ? v : null;
}

export function bestStep(m: Metric | undefined, dir: Direction | null): number | null {
	return m?.[`${dir ?? 'last'}_step`] ?? null;
}

/** A value was not finite, but the last one is. */
const recovered = (a: Alert): boolean => a.kind === 'nan' && a.value !== null && Number.isFinite(a.value);

/** A run that is excluded from rankings: it failed, diverged, or ended with NaN. */
export function fellOut(r: Pick<Run, 'status' | 'alerts'>): boolean {
	return r.status === 'failed'
		|| r.alerts.some((a) => (a.kind === 'nan' && !recovered(a)) || a.kind === 'diverged');
}

/** The best run by the goal, null if it is unknown which value is best; excluded runs only count if there are no
 * others. */
export function bestRun(runs: readonly Run[], goal: Goal | null): Run | null {
	if (!goal?.dir) return null;
	const bestIn = (list: readonly Run[]) => {
		let best: Run | null = null;
		let top = NaN;
		for (const r of list) {
			const v = bestOf(r.metrics[goal.key], goal.dir);
			if (v === null || Number.isNaN(v)) continue;
			if (best === null || (goal.dir === 'max' ? v > top : v < top)) {
				best = r;
				top = v;
			}
		}
		return best;
	};
	return bestIn(runs.filter((r) => !fellOut(r))) ?? bestIn(runs);
}

/** Accuracies in 0..1 differ in percentage points, everything else in its unit. */
export function inPoints(key: string, values: readonly number[]): boolean {
	return ruleOf(key).place >= SHARE_PLACE && values.every((v) => !Number.isFinite(v) || (v >= 0 && v <= 1));
}
