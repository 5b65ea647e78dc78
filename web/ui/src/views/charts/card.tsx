// SPDX-License-Identifier: Apache-2.0
// Chart of one metric over the shown runs, connected to the state; can be enlarged and saved as a picture.
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { signal, useComputed, useSignal, useSignalEffect, type ReadonlySignal, type Signal } from '@preact/signals';
import { LineChart, NAME_APART, NAME_MARGIN, nameWidth, type ChartLine } from '../../charts/line/index.ts';
import { isBytes, valueText, valueTexts } from '../../base/format.ts';
import * as s from '../../state/index.ts';
import { lazy } from '../base/lazy.tsx';
import { theme } from '../base/theme.ts';
import { exactX, formatX, GROUP, linesOf, rangeOf, summary } from './lines.ts';

/** Pixels for the names at the lines' ends: limits, and the largest share of a chart; pixels next to the axes
 * hold no points either. */
const GUTTER = 128;
const GUTTER_MIN = 60;
const SHARE = 0.28;
const SHARE_GROUPS = 0.42;
const MARGIN = 50;
const ChartTools = lazy(() => import('./tools.tsx').then((m) => m.ChartTools));
const Bars = lazy(() => import('./bars.tsx').then((m) => m.Bars));
/** The metric of the enlarged chart. */
const large = signal<string | null>(null);

/** Creates the chart and requests its points while it is visible; returns the cleanup. */
function begin(metric: string, el: HTMLElement, chart: { current: LineChart | null }, width: Signal<number>):
	() => void {
	const c = new LineChart(el, {
		formatX: (x) => formatX(metric, x), exactX: (x) => exactX(metric, x),
		formatY: valueText(metric), sayY: (ys, units) => valueTexts(metric, ys, units),
		near: (from, to) => s.pointsNear(metric, from, to), onCursor: (x) => s.setCursor(metric, x),
		onHover: (id) => (s.lit.value = id), onZoom: (from, to) => s.zoomTo(metric, from, to),
		onReset: s.resetZoom, onOpen: (id, why) => !id.startsWith(GROUP) && s.openRun(id, why ? '' : undefined),
		onColour: (id, e) => s.openColours(id, el, e),
	});
	chart.current = c;
	let visible = false;
	const ask = () => (visible ? s.want(metric, el.clientWidth - MARGIN - GUTTER, c) : s.unwant(metric, c));
	const seen = new IntersectionObserver((e) => {
		visible = e[e.length - 1]!.isIntersecting;
		if (visible) s.wantGroups(metric);
		ask();
	}, { rootMargin: '120px' });
	const size = new ResizeObserver(() => {
		width.value = el.clientWidth;
		ask();
	});
	seen.observe(el);
	size.observe(el);
	return () => {
		seen.disconnect();
		size.disconnect();
		s.unwant(metric, c);
		c.destroy();
		chart.current = null;
	};
}

/** x of the state's cursor in the unit of a metric's chart; null if not convertible. */
function cursorIn(metric: string): number | null {
	const c = s.cursor.value;
	if (!c || c.key === metric) return c && c.x;
	const x = s.fromUnit(c.key, c.x);
	return x === null ? null : s.toUnit(metric, x);
}

/** Pixels of the names at line ends; only the first and the enlarged charts have names that do not all fit. */
function gutterOf(lines: readonly ChartLine[], el: HTMLElement | null): number {
	const width = el?.clientWidth ?? 0;
	if (lines.length < 2 || width < 300) return 0;
	const widest = nameWidth(lines.map((l) => l.name)) + NAME_MARGIN;
	const most = width * (s.isGrouped.value ? SHARE_GROUPS : SHARE);
	const fit = widest <= most && lines.length * NAME_APART <= el!.clientHeight - MARGIN;
	return fit || el!.closest('.first, .large') ? Math.ceil(Math.max(GUTTER_MIN, Math.min(widest, most))) : 0;
}

/** Keeps the chart up to date with its lines, the view, the highlighted line and the cursor. */
function useChart(metric: string, box: RefObject<HTMLDivElement | null>,
	lines: ReadonlySignal<ChartLine[]>): RefObject<LineChart | null> {
	const chart = useRef<LineChart | null>(null);
	const width = useSignal(0);
	useEffect(() => begin(metric, box.current!, chart, width), [metric]);
	useSignalEffect(() => {
		const { log, logX, full, limits } = s.view.value;
		const l = lines.value;
		const [from, to] = rangeOf(metric, l);
		const unit = s.unitOf(metric);
		void theme();
		void width.value;
		chart.current?.set({
			lines: l, from, to, log, logX, full, limits: limits[metric], xLabel: unit,
			ticksX: unit,
			whole: unit === 'step' || metric.startsWith('epoch/') && unit === 'epoch',
			bytes: isBytes(metric), gutter: gutterOf(l, box.current),
		});
	});
	useSignalEffect(() => {
		const id = s.lit.value;
		chart.current?.highlight(id);
	});
	useSignalEffect(() => {
		const x = cursorIn(metric);
		chart.current?.cursor(x);
	});
	return chart;
}

interface CaptionOptions {
	metric: string;
	note: string | undefined;
	/** Returns true if any line is smoothed. */
	smooth: boolean;
	chart: RefObject<LineChart | null>;
	lines: ReadonlySignal<ChartLine[]>;
}

function Caption({ metric, note, smooth, chart, lines }: CaptionOptions) {
	const v = s.view.value;
	const big = large.value === metric;
	return (
		<figcaption>
			<b title={metric}>{metric}</b>
			{note && <span class="dim">{note}</span>}
			{smooth && <span class="dim">
				{v.smooth ? `smoothed ${v.smooth}` : 'means'}, raw values pale</span>}
			{s.zoomOf(metric)
				&& <button type="button" class="quiet" onClick={s.resetZoom}>Reset zoom</button>}
			<span class="grow" />
			<span class="acts">
				<button type="button" class="quiet" aria-pressed={big} aria-label={`Enlarge ${metric}`}
					title={big ? 'Close (Escape)' : 'Enlarge'}
					onClick={() => (large.value = big ? null : metric)}>{big ? '✕' : '⤢'}</button>
				<ChartTools of={metric} name={metric} chart={chart} metric={metric}
					lines={() => lines.value} formatX={(x) =>
						(s.isGrouped.value ? exactX : formatX)(metric, x)} />
			</span>
		</figcaption>
	);
}

export function ChartCard({ metric, note }: { metric: string; note?: string }) {
	const box = useRef<HTMLDivElement>(null);
	const lines = useComputed(() => {
		void s.seriesRev.value;
		void theme();
		return linesOf(metric, s.drawn.value);
	});
	const chart = useChart(metric, box, lines);
	const [w, h] = s.sizeOf(metric);
	const big = large.value === metric;
	const single = lines.value.length > 1 && lines.value.every((l) =>
		l.xs.length === 1 && Number.isFinite(l.ys[0]) && !l.band && l.end !== 'running');
	const none = s.isGrouped.value ? s.groupCurves.value.has(metric) && !lines.value.length : s.isBare(metric);
	return (
		<figure class={'card chart' + (big ? ' large' : '')} style={{ '--w': w, '--h': h }} onKeyDown={(e) => {
			if (e.key === 'Escape' && big && !s.zoomOf(metric)) large.value = null;
		}}>
			<Caption metric={metric} note={note} smooth={lines.value.some((l) => l.smooth)}
				chart={chart} lines={lines} />
			<div class="plot" ref={box} tabIndex={0} role="group" data-chart={metric}
				aria-label={summary(metric, lines.value)} />
			{single && <Bars lines={lines.value} text={valueText(metric)} />}
			{none && <p class="nothing">No points of the shown runs</p>}
		</figure>
	);
}
