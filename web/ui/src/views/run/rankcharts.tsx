// SPDX-License-Identifier: Apache-2.0
// Curves by rank of a run's metrics. Charts exist while the group is open and load when visible; each has its own zoom.
import { useComputed, useSignal, useSignalEffect, type Signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { lookAt } from '../../base/colour.ts';
import type { RunDetail, Series } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { getRankKeys } from '../../state/run.ts';
import { isBytes, valueText, valueTexts } from '../../base/format.ts';
import { AT_ONCE } from '../../base/order.ts';
import { drawnRanks, HIGH, LOW, ranksAt, ranksSaid } from '../../base/ranks.ts';
import { seriesOf, valueAt } from '../../base/series.ts';
import { LineChart, type ChartLine, type LineData } from '../../charts/line/index.ts';
import { GroupHead, Opener } from '../base/bits.tsx';
import { theme } from '../base/theme.ts';
import { FigureButton } from '../charts/figurebutton.tsx';
import { stepText } from '../charts/lines.ts';
import { Values } from '../charts/values.tsx';

const GUTTER = 70;
const POINTS_MAX = 40000;

function lineOf(t: Series, i: number): ChartLine {
	const look = lookAt(i);
	return {
		id: String(t.rank), name: `rank ${t.rank}`, colour: theme() === 'dark' ? look.dark : look.light,
		dash: look.dash,
		xs: t.xs, ys: t.ys, smooth: null, fit: true, badX: t.badX, badToEnd: t.badToEnd, end: 'none', flags: [],
	};
}

interface Options {
	run: string;
	metric: string;
	/** Number of keys. */
	ranks: number;
	/** Changes as the run grows. */
	rev: number;
}

/** Visibility of the element, its chart, cursor and zoom. */
function useRankChart({ run, metric }: Options, box: RefObject<HTMLDivElement | null>) {
	const chart = useRef<LineChart | null>(null);
	const zoom = useSignal<[number, number] | null>(null);
	const visible = useSignal(false);
	const at = useSignal<number | null>(null);
	useEffect(() => {
		const el = box.current!;
		const c = new LineChart(el, {
			formatX: stepText, exactX: String, formatY: valueText(metric),
			sayY: (ys, units) => valueTexts(metric, ys, units),
			onCursor: (x) => {
				c.cursor(x);
				at.value = x;
			},
			onHover: (id) => c.highlight(id),
			onZoom: (a, b) => (zoom.value = [a, b]), onReset: () => (zoom.value = null),
			onOpen: () => undefined,
		});
		chart.current = c;
		const seen = new IntersectionObserver((e) => (visible.value = e.some((i) => i.isIntersecting)),
			{ rootMargin: '120px' });
		seen.observe(el);
		return () => {
			seen.disconnect();
			c.destroy();
			chart.current = null;
		};
	}, [run, metric]);
	return { chart, zoom, visible, at };
}

/** The axis over all points of the lines; a single point is centred. */
function wholeRange(list: readonly Series[]): [number, number] {
	return [Math.min(...list.map((t) => t.xs[0] ?? Infinity)),
		Math.max(...list.map((t) => t.xs.at(-1) ?? -Infinity))];
}

function pictureOf(list: readonly Series[], zoom: [number, number] | null): LineData {
	const { log, full } = s.view.value;
	const [from, to] = zoom ?? wholeRange(list);
	const beside = from === to ? 0.5 : 0;
	return {
		lines: list.map(lineOf), from: from - beside, to: to + beside, log, full, xLabel: 'step', whole: true,
		ticksX: 'even', bytes: isBytes(list[0]?.key ?? ''),
		gutter: list.length > 1 ? GUTTER : 0,
	};
}

/** Values at the cursor of the chart. */
function Readout({ at, list, metric }: { at: Signal<number | null>; list: readonly Series[]; metric: string }) {
	const x = at.value;
	const values = x === null ? '' : ranksAt(list.map((t) => [`rank ${t.rank}`, valueAt(t, x)]), valueText(metric));
	return <p class="readout" aria-live="polite">{values && `step ${stepText(x!)}: ${values}`}</p>;
}

/** A button that opens the values of all ranks as a table. */
function Table({ metric, all }: { metric: string; all: Signal<Series[]> }) {
	const open = useSignal(false);
	const name = `${metric} by rank`;
	return <span class="numbers"><Opener word="Table" open={open} panel={(close) =>
		<Values name={name} of={metric} each="Rank" lines={all.value.map(lineOf)} formatX={stepText}
			close={close} />} /></span>;
}

function RankChart(o: Options) {
	const box = useRef<HTMLDivElement>(null);
	const series = useSignal<Series[]>([]);
	const newest = useSignal(o.rev);
	newest.value = o.rev;
	const { chart, zoom, visible, at } = useRankChart(o, box);
	const drawn = useComputed(() => drawnRanks(series.value));
	const words = useId();
	useSignalEffect(() => {
		void newest.value;
		const z = zoom.value;
		if (!visible.value) return;
		const width = Math.max(100, box.current!.clientWidth - 50 - GUTTER);
		const buckets = Math.max(10, Math.min(1200, width, Math.floor(POINTS_MAX / o.ranks)));
		s.askRanks(o.run, [o.metric], buckets, z).then((list) => (series.value = list.filter((t) => t.rank >= 0)
			.map((t) => seriesOf(t.run, t.key, t.rank, t.columns))), s.report);
	});
	useSignalEffect(() => {
		const list = drawn.value;
		const picture = pictureOf(list, zoom.value);
		if (list.length) chart.current?.set(picture);
	});
	const all = series.value.length;
	return (
		<figure class="card chart ranked">
			<figcaption>
				<b>{o.metric}</b>
				{all > HIGH + LOW && (
					<span class="dim">the {HIGH} highest and the {LOW} lowest of {all} ranks</span>
				)}
				{zoom.value && <button type="button" class="quiet"
					onClick={() => (zoom.value = null)}>Reset zoom</button>}
				<span class="grow" />
				<span class="acts"><Table metric={o.metric} all={series} />
					<FigureButton of={() => chart.current} name={`${o.metric} by rank`} /></span>
			</figcaption>
			<div class="plot" ref={box} tabIndex={0} role="group" data-rank-chart={o.metric}
				aria-label={`${o.metric} by rank`} aria-describedby={words} />
			<Readout at={at} list={drawn.value} metric={o.metric} />
			<p class="said" id={words}>{all > 0 && ranksSaid(series.value, valueText(o.metric))}</p>
		</figure>
	);
}

/** alone: nothing else is on the tab, which opens them. */
export function RankCharts({ r, alone }: { r: RunDetail; alone: boolean }) {
	const shown = useSignal(0);
	const keys = useSignal<string[] | null>(null);
	const ranks = Math.max(new Set(r.ranks).size, s.rankPhases(r.id)?.length ?? 0);
	const open = () => {
		shown.value = shown.value ? 0 : AT_ONCE;
		if (shown.value && !keys.value) getRankKeys(r.id).then((list) => (keys.value = list), s.report);
	};
	const first = ranks === 1 || alone && ranks > 0; // no other place shows those of one rank
	useEffect(() => {
		if (first && !shown.value) open();
	}, [first]);
	if (!ranks) return null;
	const rev = r.status === 'running' ? s.liveRev.value : 0;
	const rest = (keys.value?.length ?? 0) - shown.value;
	return (
		<section class="group" aria-label="By rank">
			<GroupHead open={shown.value > 0} toggle={open} count={keys.value?.length ?? ''}
				name={ranks === 1 ? 'Series of its one rank' : 'By rank'} />
			{shown.value > 0 && <div class="charts">{(keys.value ?? []).slice(0, shown.value).map((k) => (
				<RankChart key={k} run={r.id} metric={k} ranks={ranks} rev={rev} />))}</div>}
			{shown.value > 0 && rest > 0 && (
				<button type="button" onClick={() => (shown.value += AT_ONCE)}>
					{rest > AT_ONCE ? `Show ${AT_ONCE} more of ${rest}`
						: `Show ${rest} more`}</button>
			)}
			{keys.value?.length === 0 && <p class="nothing">Nothing was recorded by rank</p>}
		</section>
	);
}
