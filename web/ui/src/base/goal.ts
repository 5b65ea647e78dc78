// Which metric the comparison is about, which direction is better, and how runs rank by it.
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

/** What a step, a net's parts and the machine say of themselves: never a goal, nor the curve beside it. */
const INNER = /^(phase|memory|system|data|dptrack|dead_units|grad_norm|update_ratio)\//;

export function directionOf(key: string): Direction {
	return HIGHER.test(key) ? 'max' : 'min';
}

/** Of every key that was asked for: there are thousands, and they are asked for again and again. */
const merits = new Map<string, number>();

/** How good a key is as a default goal; 0 means never. */
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

/** The training curve that stands beside the goal's on the first screen. */
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

export function bestOf(m: Metric | undefined, dir: Direction): number | null {
	if (!m) return null;
	return dir === 'max' ? m.max : m.min;
}

export function bestStep(m: Metric | undefined, dir: Direction): number | null {
	if (!m) return null;
	return dir === 'max' ? m.max_step : m.min_step;
}

/** Something was not finite, but what came last is. */
export function recovered(a: Alert): boolean {
	return a.kind === 'nan' && a.value !== null && Number.isFinite(a.value);
}

/** A run whose result does not count among the others': it failed, or its numbers ended as NaN or diverged. */
export function fellOut(r: Run): boolean {
	return r.status === 'failed'
		|| r.alerts.some((a) => (a.kind === 'nan' && !recovered(a)) || a.kind === 'diverged');
}

/** Best run by the goal among those that did not fall out, else among all. */
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

/** Accuracies between 0 and 1 differ in points of a percent; everything else differs in its own unit. */
export function inPoints(key: string, values: readonly number[]): boolean {
	return HIGHER.test(key) && !/per_s|throughput|reward|score|psnr/i.test(key)
		&& values.every((v) => !Number.isFinite(v) || (v >= 0 && v <= 1));
}
