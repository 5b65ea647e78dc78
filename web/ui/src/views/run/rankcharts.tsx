// What a run records for each rank, as curves: a line for each rank. Charts exist while the group is open and ask when they are
// on the screen; a zoom is this chart's own.
import { useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import * as api from '../../state/api.ts';
import { lookAt } from '../../base/colour.ts';
import type { RunDetail, Series } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { valueText } from '../../base/format.ts';
import { AT_ONCE } from '../../base/order.ts';
import { seriesOf } from '../../base/series.ts';
import { LineChart, type ChartLine } from '../../charts/line/index.ts';
import { theme } from '../base/bits.tsx';
import { rankPhases } from '../base/phases.tsx';
import { stepText } from '../charts/lines.ts';

const GUTTER = 70;
/** Lines of one chart: of more ranks those with the highest means, and some with the lowest. */
const HIGH = 12;
const LOW = 4;
const POINTS_MAX = 40000;

function meanOf(t: Series): number {
	const n = t.weight.reduce((a, w) => a + w, 0);
	return n ? t.mean.reduce((a, m, i) => a + m * t.weight[i]!, 0) / n : -Infinity;
}

function chosen(list: readonly Series[]): Series[] {
	if (list.length <= HIGH + LOW) return [...list];
	const sorted = [...list].sort((a, b) => meanOf(b) - meanOf(a));
	return [...sorted.slice(0, HIGH), ...sorted.slice(-LOW)].sort((a, b) => a.rank - b.rank);
}

function lineOf(t: Series, i: number): ChartLine {
	const look = lookAt(i);
	return {
		id: String(t.rank), name: 'rank ' + t.rank, colour: theme() === 'dark' ? look.dark : look.light, dash: look.dash, xs: t.xs, ys: t.ys, smooth: null, fit: true,
		badX: t.badX, badToEnd: t.badToEnd, end: 'none', flags: [],
	};
}

function RankChart({ run, metric, ranks, rev }: { run: string; metric: string; ranks: number; rev: number }) {
	const box = useRef<HTMLDivElement>(null);
	const chart = useRef<LineChart | null>(null);
	const series = useSignal<Series[]>([]);
	const zoom = useSignal<[number, number] | null>(null);
	const visible = useSignal(false);
	const newest = useSignal(rev);
	newest.value = rev;
	useEffect(() => {
		const el = box.current!;
		const c = new LineChart(el, {
			formatX: stepText, formatY: valueText(metric), onCursor: (x) => c.cursor(x), onHover: (id) => c.highlight(id),
			onZoom: (a, b) => (zoom.value = [a, b]), onReset: () => (zoom.value = null), onOpen: () => undefined,
		});
		chart.current = c;
		const seen = new IntersectionObserver((e) => (visible.value = e.some((i) => i.isIntersecting)), { rootMargin: '120px' });
		seen.observe(el);
		return () => {
			seen.disconnect();
			c.destroy();
			chart.current = null;
		};
	}, [run, metric]);
	useSignalEffect(() => {
		void newest.value;
		const z = zoom.value;
		if (!visible.value) return;
		const width = Math.max(100, box.current!.clientWidth - 50 - GUTTER);
		const buckets = Math.max(10, Math.min(1200, width, Math.floor(POINTS_MAX / ranks)));
		api.querySeries({ runs: [run], keys: [metric], rank: null, buckets, x: 'step', ...(z ? { from: z[0], to: z[1] } : {}) })
			.then((list) => (series.value = list.filter((t) => t.rank >= 0).map((t) => seriesOf(t.run, t.key, t.rank, t.columns))), s.report);
	});
	useSignalEffect(() => {
		const v = s.view.value;
		const list = chosen(series.value);
		const [from, to] = zoom.value ?? [Math.min(...list.map((t) => t.xs[0] ?? Infinity)), Math.max(...list.map((t) => t.xs.at(-1) ?? -Infinity))];
		const one = from === to;
		if (list.length) chart.current?.set({ lines: list.map(lineOf), from: one ? from - 0.5 : from, to: one ? to + 0.5 : to, log: v.log, full: v.full,
			xLabel: 'step', whole: true, gutter: list.length > 1 ? GUTTER : 0 });
	});
	const all = series.value.length;
	return (
		<figure class="card chart">
			<figcaption>
				<b>{metric}</b>
				{all > HIGH + LOW && <span class="dim">the {HIGH} highest and the {LOW} lowest of {all} ranks</span>}
				{zoom.value && <button type="button" class="quiet" onClick={() => (zoom.value = null)}>reset zoom</button>}
			</figcaption>
			<div class="plot" ref={box} tabIndex={0} role="group" data-rank-chart={metric} aria-label={`${metric} by rank`} />
		</figure>
	);
}

export function RankCharts({ r }: { r: RunDetail }) {
	const shown = useSignal(0);
	const keys = useSignal<string[] | null>(null);
	const ranks = Math.max(new Set(r.ranks).size, rankPhases(r.id)?.length ?? 0);
	const open = () => {
		shown.value = shown.value ? 0 : AT_ONCE;
		if (shown.value && !keys.value) api.getRankKeys(r.id).then((list) => (keys.value = list), s.report);
	};
	if (!ranks) return null;
	const rev = r.status === 'running' ? s.liveRev.value : 0;
	const rest = (keys.value?.length ?? 0) - shown.value;
	return (
		<section class="group" aria-label="By rank">
			<h2><button type="button" class="quiet" aria-expanded={shown.value > 0} onClick={open}>
				<span aria-hidden="true">{shown.value ? '▾' : '▸'}</span> by rank <span class="dim">{keys.value?.length ?? ''}</span></button></h2>
			{shown.value > 0 && <div class="charts">{(keys.value ?? []).slice(0, shown.value).map((k) => (
				<RankChart key={k} run={r.id} metric={k} ranks={ranks} rev={rev} />))}</div>}
			{shown.value > 0 && rest > 0 && <button type="button" onClick={() => (shown.value += AT_ONCE)}>{Math.min(AT_ONCE, rest)} more of {rest}</button>}
			{keys.value?.length === 0 && <p class="nothing">nothing was recorded by rank</p>}
		</section>
	);
}
