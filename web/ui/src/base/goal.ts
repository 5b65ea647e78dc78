// SPDX-License-Identifier: Apache-2.0
// The goal metric: which one, which direction is better, and how runs rank by it.
import type { Alert, Metric, Run } from './types.ts';

export type Direction = 'max' | 'min';

export interface Goal {
	key: string;
	dir: Direction;
}

const HIGHER =
	new RegExp('(^|[/_.-])(top[-_]?\\d+|acc|accuracy|f1|auc|auroc|map|bleu|rouge\\w*|iou|dice|precision|recall'
	+ '|score|reward|psnr|ssim|(samples|tokens|images)_per_s\\w*|throughput)\\d*($|[/_.@-])', 'i');
const LOSS = /loss|nll|perplexity|error|cer|wer|rmse|mse|mae/i;
const HELD_OUT = /(^|[/_.\-])(val|valid|validation|test|eval|dev)($|[/_.\-])/i;

/** Internal metrics, which are never a default goal or curve. */
const INNER = /^(phase|memory|system|data|dptrack|dead_units|grad_norm|update_ratio)\//;

export function directionOf(key: string): Direction {
	return HIGHER.test(key) ? 'max' : 'min';
}

/** Returns true if it is known which direction of a metric is better. */
export function hasDirection(key: string): boolean {
	return !INNER.test(key) && (HIGHER.test(key) || LOSS.test(key));
}

/** Cache of meritOf, which is called for thousands of keys. */
const merits = new Map<string, number>();

/** Suitability of a key as default goal; 0: never. */
function merit(key: string): number {
	let m = merits.get(key);
	if (m === undefined) merits.set(key, m = meritOf(key));
	return m;
}

function meritOf(key: string): number {
	if (INNER.test(key)) return 0;
	if (key === 'epoch/top1') return 100;
	if (key === 'val/top1') return 99;
	const held = HELD_OUT.test(key) ? 10 : 0;
	if (/per_s|throughput/.test(key)) return 1;
	if (HIGHER.test(key)) return (/top5/.test(key) ? 60 : 70) + held;
	if (LOSS.test(key)) return 40 + held + (key.startsWith('epoch/') ? 1 : 0);
	return 2;
}

/** The default goal: the accuracy-like series that most of n runs have, else a held-out loss, else any loss. */
export function defaultGoal(seen: ReadonlyMap<string, number>, n: number): Goal | null {
	let best: string | null = null;
	let score = 0;
	for (const [k, have] of seen) {
		const common = have * 2 >= n ? 1 : 0.3;
		const m = merit(k) * common;
		if (m > score || (m === score && best !== null && m > 0 && k < best)) {
			score = m;
			best = k;
		}
	}
	return best === null ? null : { key: best, dir: directionOf(best) };
}

export function isLoss(key: string): boolean {
	return LOSS.test(key);
}

/** The training curve next to the goal's chart on the first screen. */
export function defaultCurve(keys: readonly string[], goal: string | null): string | null {
	const rank = (k: string) => k === 'train/loss' ? 5 : k === 'epoch/train_loss' ? 4
		: LOSS.test(k) && /train/.test(k) ? 3 : LOSS.test(k) ? 2 : INNER.test(k) ? 0 : 1;
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

/** The best finite value; null without any. */
export function bestOf(m: Metric | undefined, dir: Direction): number | null {
	if (!m) return null;
	const v = dir === 'max' ? m.max : m.min;
	return v !== null && Number.isFinite(v) ? v : null;
}

export function bestStep(m: Metric | undefined, dir: Direction): number | null {
	if (!m) return null;
	return dir === 'max' ? m.max_step : m.min_step;
}

/** A value was not finite, but the last one is. */
const recovered = (a: Alert): boolean => a.kind === 'nan' && a.value !== null && Number.isFinite(a.value);

/** A run that is excluded from rankings: it failed, diverged, or ended with NaN. */
export function fellOut(r: Pick<Run, 'status' | 'alerts'>): boolean {
	return r.status === 'failed'
		|| r.alerts.some((a) => (a.kind === 'nan' && !recovered(a)) || a.kind === 'diverged');
}

/** The best run by the goal; excluded runs only count if there are no others. */
export function bestRun(runs: readonly Run[], goal: Goal | null): Run | null {
	if (!goal) return null;
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
	return HIGHER.test(key) && !/per_s|throughput|reward|score|psnr/i.test(key)
		&& values.every((v) => !Number.isFinite(v) || (v >= 0 && v <= 1));
}
