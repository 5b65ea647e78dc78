// One chart of one metric over the shown runs: puts runs and series into the plain lines that charts/line.ts draws, and
// its events back into the state.
import { useEffect, useRef } from 'preact/hooks';
import { useComputed, useSignalEffect } from '@preact/signals';
import { LineChart, type ChartLine, type Flag } from '../charts/index.ts';
import type { Alert, Run, Series } from '../base/types.ts';
import { short } from '../base/format.ts';
import { fellOut } from '../base/goal.ts';
import { smooth } from '../base/series.ts';
import * as s from '../state.ts';
import { colourOf, theme } from './bits.tsx';
import { byCursor } from './columns.tsx';

const DWELL_MS = 150;
const GUTTER = 128;
/** Points below which an average would only lag behind. */
const SMOOTH_FROM = 30;

/** Where an alert lies in the chart's unit: found in the series itself, so that it fits every axis. */
function flagX(a: Alert, t: Series, unit: string): number | null {
	if (a.kind === 'nan' && t.badX !== null) return t.badX;
	if (a.kind === 'failed') {
		for (let i = t.ys.length - 1; i >= 0; i--) if (Number.isFinite(t.ys[i]!)) return t.xs[i]!;
		return null;
	}
	if (a.value !== null) {
		const i = t.ys.findIndex((y) => y === a.value);
		if (i >= 0) return t.xs[i]!;
	}
	return unit === 'step' ? a.step : null;
}

function flagsOf(r: Run, key: string, t: Series, unit: string): Flag[] {
	const out: Flag[] = [];
	for (const a of r.alerts) {
		if (a.kind === 'failed' ? key.startsWith('epoch/') && unit === 'epoch' : a.key !== key) continue;
		if (a.kind === 'diverged' && r.alerts.some((b) => b.kind === 'nan' && b.key === key)) continue;
		const x = flagX(a, t, unit);
		if (x === null) continue;
		const at = unit === 'step' && a.step !== null ? ' ' + a.step : '';
		const i = t.xs.indexOf(x);
		const y = a.kind === 'failed' ? t.ys[i] ?? null : a.value !== null && Number.isFinite(a.value) ? a.value : null;
		const text = a.kind === 'spike' && a.value !== null ? 'spike ' + short(a.value)
			: a.kind === 'nan' ? 'NaN from' + at : a.kind + at;
		out.push({ x, y, kind: a.kind, text });
	}
	return out;
}

/** What restarts of a run took back, as thin dashes behind its curve. */
function takenBackLines(r: Run, key: string): ChartLine[] {
	const back = s.takenBack.value;
	const list = back?.run === r.id ? back.series.get(key) ?? [] : [];
	return list.map((t, i) => ({
		id: `${r.id}:${i}`, name: `before restart ${i + 1}`, colour: colourOf(s.looks.value.byRun.get(r.id)), dash: [2, 4],
		xs: t.xs, ys: t.ys, smooth: null, fit: true, badX: t.badX, badToEnd: t.badToEnd, end: 'none' as const, flags: [],
	}));
}

/** The drawn lines of a metric, in the order of the table. */
export function linesOf(key: string, list: readonly Run[]): ChartLine[] {
	const alpha = s.view.value.smooth;
	const unit = s.unitOf(key);
	const out: ChartLine[] = [];
	for (const r of list) {
		const t = s.seriesFor(r.id, key);
		if (!t || (!t.xs.length && t.badX === null)) continue;
		const look = s.looks.value.byRun.get(r.id);
		out.push({
			id: r.id, name: r.name || r.id.slice(0, 8), colour: colourOf(look), dash: list.length === 1 ? [] : look?.dash ?? [],
			xs: t.xs, ys: t.ys, smooth: alpha > 0 && t.count >= SMOOTH_FROM ? smooth(t, alpha) : null, fit: !fellOut(r) || list.length === 1,
			badX: t.badX, badToEnd: t.badToEnd,
			end: r.status === 'failed' || r.status === 'killed' ? 'failed' : r.status === 'running' ? 'running' : 'none',
			flags: flagsOf(r, key, t, unit),
		});
		out.push(...takenBackLines(r, key));
	}
	return out;
}

function rangeOf(key: string, lines: readonly ChartLine[]): [number, number] {
	const z = s.view.value.zoom;
	const a = z ? s.toUnit(key, z[0]) : null;
	const b = z ? s.toUnit(key, z[1]) : null;
	if (a !== null && b !== null) return [a, b];
	let from = Infinity;
	let to = -Infinity;
	for (const l of lines) {
		if (!l.xs.length) continue;
		from = Math.min(from, l.xs[0]!);
		to = Math.max(to, l.xs[l.xs.length - 1]!, l.badX ?? -Infinity);
	}
	if (!(from <= to)) return [0, 1];
	return from === to ? [from - 0.5, to + 0.5] : [from, to];
}

function formatX(key: string, x: number): string {
	const unit = s.unitOf(key);
	if (unit === 'time') return x >= 600 ? (x / 60).toFixed(x >= 6000 ? 0 : 1).replace(/\.0$/, '') + ' min' : short(Number(x.toFixed(2))) + ' s';
	if (unit === 'epoch') return short(Number(x.toFixed(2)));
	return x >= 1e6 ? short(x / 1e6) + 'M' : x >= 1e4 ? short(Number((x / 1e3).toFixed(1))) + 'k' : String(Math.round(x * 100) / 100);
}

/** Words for those who do not see the lines. */
function summary(key: string, lines: readonly ChartLine[]): string {
	const bits = lines.slice(0, 30).map((l) => {
		let i = l.ys.length - 1;
		while (i >= 0 && !Number.isFinite(l.ys[i]!)) i--;
		const words = l.flags.map((f) => f.text).join(', ');
		return `${l.name}: ends at ${i < 0 ? 'no number' : short(l.ys[i]!)}${words ? ' (' + words + ')' : ''}`;
	});
	return `${key}, ${lines.length} run${lines.length === 1 ? '' : 's'}. ${bits.join('; ')}`;
}

/** Steps are whole; a zoom within two steps is left as it is. */
function whole(a: number, b: number): [number, number] {
	return s.view.value.x === 'step' && b - a > 2 ? [Math.round(a), Math.round(b)] : [a, b];
}

let dwell = 0;

function setCursor(key: string, x: number | null): void {
	s.cursor.value = x === null ? null : { key, x };
	if (x === null) {
		clearTimeout(dwell);
		dwell = 0;
		byCursor.value = false;
	} else if (!dwell && !byCursor.value) {
		dwell = window.setTimeout(() => {
			dwell = 0;
			byCursor.value = s.cursor.value !== null;
		}, DWELL_MS);
	}
}

export function ChartCard({ metric, note }: { metric: string; note?: string }) {
	const box = useRef<HTMLDivElement>(null);
	const chart = useRef<LineChart | null>(null);
	const lines = useComputed(() => {
		void s.seriesRev.value;
		void theme();
		return linesOf(metric, s.drawn.value);
	});

	useEffect(() => {
		const el = box.current!;
		const toView = (x: number) => s.fromUnit(metric, x);
		const c = new LineChart(el, {
			formatX: (x) => formatX(metric, x),
			formatY: short,
			onCursor: (x) => setCursor(metric, x),
			onHover: (id) => (s.lit.value = id),
			onZoom: (from, to) => {
				const a = toView(from);
				const b = toView(to);
				if (a !== null && b !== null) s.go({ zoom: whole(a, b) });
			},
			onReset: s.resetZoom,
			onOpen: (id) => s.openRun(id),
		});
		chart.current = c;
		const seen = new IntersectionObserver((e) => {
			if (e.some((i) => i.isIntersecting)) s.want(metric, el.clientWidth - 50 - GUTTER, c);
			else s.unwant(metric, c);
		}, { rootMargin: '120px' });
		seen.observe(el);
		return () => {
			seen.disconnect();
			s.unwant(metric, c);
			c.destroy();
			chart.current = null;
		};
	}, [metric]);
	useSignalEffect(() => {
		const v = s.view.value;
		const l = lines.value;
		const [from, to] = rangeOf(metric, l);
		void theme();
		const width = box.current?.clientWidth ?? 0;
		chart.current?.retheme();
		chart.current?.set({ lines: l, from, to, log: v.log, full: v.full, xLabel: s.unitOf(metric),
			whole: s.unitOf(metric) === 'step' || metric.startsWith('epoch/') && s.unitOf(metric) === 'epoch',
			gutter: l.length > 1 && width > 300 ? (width > 430 ? GUTTER : 84) : 0 });
	});
	useSignalEffect(() => {
		const id = s.lit.value;
		chart.current?.highlight(id);
	});
	useSignalEffect(() => {
		const c = s.cursor.value;
		const base = c ? s.fromUnit(c.key, c.x) : null;
		chart.current?.cursor(c === null ? null : c.key === metric ? c.x : base === null ? null : s.toUnit(metric, base));
	});

	const v = s.view.value;
	const none = !lines.value.length && s.settled.value;
	return (
		<figure class="card chart">
			<figcaption>
				<b>{metric}</b>
				{note && <span class="dim">{note}</span>}
				{v.smooth > 0 && lines.value.some((l) => l.smooth) && <span class="dim">smoothed {v.smooth}, raw behind</span>}
				{v.zoom && <button type="button" class="quiet" onClick={s.resetZoom}>reset zoom</button>}
			</figcaption>
			<div class="plot" ref={box} tabIndex={0} role="group" data-chart={metric} aria-label={summary(metric, lines.value)} />
			{none && <p class="nothing">no points of the shown runs</p>}
		</figure>
	);
}

