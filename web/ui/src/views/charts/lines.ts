// SPDX-License-Identifier: Apache-2.0
// Converts runs and series to lines with flags for charts/line; also the range of the axis and the text of x.
import { signal } from '@preact/signals';
import { lastPoint, type ChartLine, type Flag } from '../../charts/line/index.ts';
import type { Alert, Run, Series } from '../../base/types.ts';
import { endedEarly } from '../../base/group.ts';
import { clockText, count, short, sinceStart } from '../../base/format.ts';
import { fellOut } from '../../base/goal.ts';
import { smooth } from '../../base/series.ts';
import * as s from '../../state/index.ts';
import { alertText } from '../base/says.ts';
import { colourOf } from '../base/theme.ts';

/** Prefix of group ids; no run id has it. */
export const GROUP = 'group:';
/** What draws groups: grouplines.ts, which is loaded with their table. */
export const groups = signal<{ linesOf: (key: string) => ChartLine[];
	stepsAt: (key: string, x: number) => string } | null>(null);
/** Minimum points for smoothing. */
const SMOOTH_FROM = 30;
/** Points of a bucket from which a series is dense. */
const DENSE = 3;

/** Relative precision of drawn values compared with those of alerts. */
const DRAWN_DIGITS = 1e-3;

/** Index of the drawn value that equals v, -1 without one. */
function nearestValue(ys: readonly number[], v: number): number {
	let best = -1;
	ys.forEach((y, i) => {
		if (Math.abs(y - v) <= Math.abs((best < 0 ? v * (1 + DRAWN_DIGITS) : ys[best]!) - v)) best = i;
	});
	return best;
}

/** Where a series is not finite for the first time; -Infinity: before the visible range. */
function beginOf(r: Run, key: string, t: Series, unit: string): number | null {
	if (!s.zoomOf(key) || t.badX === null || t.xs[0]! < t.badX) return t.badX;
	const step = r.alerts.find((a) => a.kind === 'nan' && a.key === key)?.step ?? t.badX;
	return unit === 'step' && step >= t.badX ? t.badX : -Infinity;
}

/** Position of an alert in the chart's unit, found by value so that it fits every axis. */
function flagX(a: Alert, t: Series, unit: string): number | null {
	if (a.kind === 'nan' && t.badX !== null) return t.badX;
	if (a.kind === 'failed') {
		const last = t.xs[lastPoint(t.ys)] ?? null;
		// other series may be longer
		return last !== null && unit === 'step' ? Math.max(last, a.step ?? last) : last;
	}
	if (unit === 'step' || a.value === null) return unit === 'step' ? a.step : null;
	const i = nearestValue(t.ys, a.value);
	return i < 0 ? null : t.xs[i]!;
}

/** The alerts of a run that a chart of the metric shows; place formats x. */
export function flagsOf(r: Pick<Run, 'alerts'>, key: string, t: Series, unit: string,
	place = (x: number) => formatX(key, x)): Flag[] {
	const out: Flag[] = [];
	for (const a of r.alerts) {
		if (a.kind === 'failed' ? key.startsWith('epoch/') && unit === 'epoch' : a.key !== key) continue;
		if (a.kind === 'diverged' && r.alerts.some((b) => b.kind === 'nan' && b.key === key)) continue;
		const x = flagX(a, t, unit);
		if (x === null || x === -Infinity) continue;
		const at = unit === 'step' ? `step ${a.step ?? place(x)}`
			: unit === 'epoch' ? `epoch ${place(x)}` : place(x);
		const i = t.xs.indexOf(x);
		const y = a.kind === 'failed' ? t.ys[i] ?? null : a.value !== null && Number.isFinite(a.value) ? a.value
			: null;
		out.push({ x, y, kind: a.kind, text: alertText(a, at) });
	}
	return out;
}

/** Points hidden by restarts, as thin dashed lines. */
function takenBackLines(r: Run, key: string): ChartLine[] {
	const back = s.takenBack.value;
	const list = back?.run === r.id ? back.series.get(key) ?? [] : [];
	return list.map((t, i) => ({
		id: `${r.id}:${i}`, name: `before restart ${i + 1}`, colour: colourOf(s.looks.value.byRun.get(r.id)),
		dash: [2, 4],
		xs: t.xs, ys: t.ys, smooth: null, fit: true, badX: t.badX, badToEnd: t.badToEnd, end: 'none' as const,
		flags: [],
	}));
}

/** The mark at the end of a run's line. */
export function endOf(r: Pick<Run, 'status'>): ChartLine['end'] {
	return endedEarly(r) ? 'failed' : r.status === 'running' ? 'running' : 'none';
}

/** The smoothed line of a series; null without smoothing or with few points. */
export function smoothed(t: Series, alpha: number): ChartLine['smooth'] {
	return alpha > 0 && t.count >= SMOOTH_FROM ? smooth(t, alpha) : null;
}

/** The means of a dense series, drawn over its pale values where these would hide those of other runs; else null. */
function means(t: Series, several: boolean): ChartLine['smooth'] {
	const dense = several && t.mx.length >= SMOOTH_FROM && t.count > DENSE * t.mx.length;
	return dense ? { xs: t.mx, ys: t.mean, means: true } : null;
}

/** Lines of a metric, in table order. */
export function linesOf(key: string, list: readonly Run[]): ChartLine[] {
	const unit = s.unitOf(key);
	const out = s.isGrouped.value && groups.value?.linesOf(key) || [];
	for (const r of list) {
		if (s.inGroups.value.has(r.id)) continue;
		const drawn = s.seriesFor(r.id, key);
		if (!drawn || (!drawn.xs.length && drawn.badX === null)) continue;
		const t = { ...drawn, badX: beginOf(r, key, drawn, unit) };
		const look = s.looks.value.byRun.get(r.id);
		out.push({
			id: r.id, name: s.nameOf(r.id, r), colour: colourOf(look),
			dash: look?.dash ?? [], points: t.count > t.xs.length ? t.count : undefined,
			xs: t.xs, ys: t.ys, smooth: smoothed(t, s.view.value.smooth) ?? means(t, list.length > 1),
			unit: t.unit, fit: !fellOut(r) || list.length === 1, badX: t.badX, badToEnd: t.badToEnd,
			end: endOf(r), flags: flagsOf(r, key, t, unit),
		});
		out.push(...takenBackLines(r, key));
	}
	return out;
}

export function rangeOf(key: string, lines: readonly ChartLine[]): [number, number] {
	const zoom = s.zoomOf(key);
	const { logX } = s.view.value;
	if (zoom && !(logX && zoom[0] <= 0)) return zoom;
	let from = Infinity;
	let to = -Infinity;
	for (const l of lines) {
		const first = logX ? l.xs.find((x) => x > 0) : l.xs[0];
		if (first === undefined) continue;
		from = Math.min(from, first);
		to = Math.max(to, l.xs[l.xs.length - 1]!, l.badX ?? -Infinity,
			...l.flags.map((f) => (f.kind === 'failed' ? f.x : -Infinity)));
	}
	if (zoom) to = Math.min(to, zoom[1]);
	if (!(from <= to)) return logX ? [1, 10] : [0, 1];
	if (from === to) return logX ? [from / 2, to * 2] : [from - 0.5, to + 0.5];
	return [from, to];
}

export function stepText(x: number): string {
	return x >= 1e6 ? short(x / 1e6) + 'M' : x >= 1e4 ? short(Number((x / 1e3).toFixed(1))) + 'k'
		: String(Math.round(x * 100) / 100);
}

/** x in full precision; for the means of groups of a metric the steps of their bucket. */
export function exactX(key: string, x: number, of = key): string {
	if (s.unitOf(key) !== 'step') return formatX(key, x);
	return s.isGrouped.value && groups.value?.stepsAt(of, x) || String(Math.round(x));
}

export function formatX(key: string, x: number): string {
	const unit = s.unitOf(key);
	if (unit === 'time') return sinceStart(x);
	if (unit === 'clock') return clockText(x);
	if (unit === 'epoch') return short(Number(x.toFixed(2)));
	return stepText(x);
}

/** Text alternative of the lines. */
export function summary(key: string, lines: readonly ChartLine[]): string {
	const bits = lines.slice(0, 30).map((l) => {
		const i = lastPoint(l.ys);
		const words = l.flags.map((f) => f.text).join(', ');
		return `${l.name}: ends at ${i < 0 ? 'no number' : short(l.ys[i]!)}` + (words && ` (${words})`);
	});
	return `${key}, ${count(lines.length, s.isGrouped.value ? 'group' : 'run')}. ${bits.join('; ')}`;
}
