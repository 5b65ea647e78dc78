// SPDX-License-Identifier: Apache-2.0
// User-defined panels: several metrics, or all that match a pattern, over the view's axis or another metric. Stored in
// the address.
import { useComputed, useSignal, useSignalEffect, type ReadonlySignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { isBytes, valueText, valueTexts } from '../../base/format.ts';
import { FORMULA, over, panelMetrics, panelWords, patternOf, type Panel } from '../../base/panel.ts';
import { LineChart, type ChartLine, type NearLine } from '../../charts/line/index.ts';
import * as s from '../../state/index.ts';
import { DIM, Key } from '../base/bits.tsx';
import { Chooser } from '../base/chooser.tsx';
import { theme } from '../base/theme.ts';
import { LayoutTools } from './arrange.tsx';
import { ChartTools } from './tools.tsx';
import { exactX, formatX, GROUP, linesOf, rangeOf, summary } from './lines.ts';

const DASHES: number[][] = [[], [7, 3], [2, 2.5], [10, 3, 2, 3]];
/** The dash of a panel's n-th metric, when it has several. */
const dashOf = (n: number): number[] => DASHES[n % DASHES.length]!;
const GUTTER = 150;
/** Separates the run from the metric in a line's id. */
const OF = '\n';
/** Prefix of the keys of panel limits. */
const LIMITS = 'panel ';
/** The key whose unit is that of the view. */
const VIEW = '';

/** Lines of a metric in the panel: over the view's axis, or over another metric of the same run. */
function metricLines(key: string, at: number, p: Panel, many: boolean): ChartLine[] {
	return linesOf(key, s.drawn.value).flatMap((l) => {
		const name = many ? `${l.name} ${s.shortKey(key)}` : l.name;
		const line = { ...l, id: l.id + OF + key, name, label: at ? '' : l.name,
			dash: many ? dashOf(at) : l.dash, flags: [] };
		if (!p.x) return [{ ...line, xs: l.xs.map((x) => s.fromUnit(key, x) ?? x) }];
		const x = s.seriesFor(l.id, p.x);
		return x ? [{ ...line, ...over(x, l), smooth: null, band: undefined, badX: null, badToEnd: false }]
			: [];
	});
}

function rangeOver(lines: readonly ChartLine[]): [number, number] {
	const ends = lines.flatMap((l) => (l.xs.length ? [l.xs[0]!, l.xs[l.xs.length - 1]!] : []));
	const [from, to] = [Math.min(...ends), Math.max(...ends)];
	return !(from <= to) ? [0, 1] : from === to ? [from - 0.5, to + 0.5] : [from, to];
}

const panelX = (p: Panel, x: number) => (p.x ? valueText(p.x)(x) : formatX(VIEW, x));

/** All points of a metric in a range of the view's axis. */
async function nearOf(key: string, from: number, to: number): Promise<NearLine[]> {
	const list = await s.pointsNear(key, s.toUnit(key, from) ?? from, s.toUnit(key, to) ?? to);
	return list.map((l) => ({ ...l, id: l.id + OF + key, xs: l.xs.map((x) => s.fromUnit(key, x) ?? x) }));
}

/** Creates the chart and requests its points while it is visible; returns the cleanup. */
function begin(el: HTMLElement, chart: { current: LineChart | null }, p: Panel, keys: readonly string[]): () => void {
	const runOf = (id: string | null) => id && id.split(OF)[0]!;
	const c = new LineChart(el, {
		formatX: (x) => panelX(p, x), exactX: (x) => (p.x ? panelX(p, x) : exactX(VIEW, x, keys[0])),
		formatY: valueText(keys[0] ?? ''), sayY: (ys, units) => valueTexts(keys[0] ?? '', ys, units),
		near: p.x ? undefined
			: async (from, to) => (await Promise.all(keys.map((k) => nearOf(k, from, to)))).flat(),
		onCursor: (x) => !p.x && keys[0] && s.setCursor(keys[0], x === null ? null : s.toUnit(keys[0], x)),
		onHover: (id) => (s.lit.value = runOf(id)),
		onZoom: (from, to) => !p.x && s.zoomTo(VIEW, from, to), onReset: s.resetZoom,
		onOpen: (id) => !id.startsWith(GROUP) && s.openRun(runOf(id)!),
	});
	chart.current = c;
	const all = p.x ? [...keys, p.x] : keys;
	const seen = new IntersectionObserver((e) => {
		const visible = e[e.length - 1]!.isIntersecting;
		for (const k of all)
			if (visible) {
				s.want(k, el.clientWidth - GUTTER, c);
				s.wantGroups(k);
			} else s.unwant(k, c);
	}, { rootMargin: '120px' });
	seen.observe(el);
	return () => {
		seen.disconnect();
		for (const k of all) s.unwant(k, c);
		c.destroy();
		chart.current = null;
	};
}

interface Drawing {
	box: RefObject<HTMLDivElement | null>;
	p: Panel;
	keys: readonly string[];
	lines: ReadonlySignal<ChartLine[]>;
}

function useChart({ box, p, keys, lines }: Drawing): RefObject<LineChart | null> {
	const chart = useRef<LineChart | null>(null);
	/** Number of charts created, so that a new one receives existing lines. */
	const made = useSignal(0);
	useEffect(() => {
		const end = begin(box.current!, chart, p, keys);
		made.value++;
		return end;
	}, [p.x, keys.join()]);
	useSignalEffect(() => {
		const { log, full, limits, x: unit } = s.view.value;
		const l = lines.value;
		void made.value;
		const [from, to] = p.x ? rangeOver(l) : rangeOf(VIEW, l);
		void theme();
		chart.current?.set({
			lines: l, from, to, log, full, limits: limits[LIMITS + titleOf(p)],
			bytes: isBytes(keys[0] ?? ''), xLabel: p.x ? s.shortKey(p.x) : unit, whole: !p.x
				&& unit === 'step',
			ticksX: p.x ? 'even' : unit,
			gutter: l.length > 1 && (box.current?.clientWidth ?? 0) > 440 ? GUTTER : 0,
		});
	});
	useSignalEffect(() => {
		const id = s.lit.value;
		chart.current?.highlight(id && (lines.value.find((l) => l.id.startsWith(id + OF))?.id ?? null));
	});
	useSignalEffect(() => {
		const c = s.cursor.value;
		if (!p.x) chart.current?.cursor(c && s.fromUnit(c.key, c.x));
	});
	return chart;
}

const titleOf = (p: Panel) => p.metrics + (p.x ? ` over ${p.x}` : '');

interface CardOptions {
	p: Panel;
	change: (to: Panel | null) => void;
}

/** Choice of metrics and x axis, and removal. */
function Choices({ p, change }: CardOptions) {
	const all = s.metricKeys.value;
	const list = all.map((k) => ({ id: k, label: k }));
	const formula = p.metrics.startsWith(FORMULA);
	const on = patternOf(p.metrics) === null && !formula ? p.metrics.split(',').filter(Boolean) : [];
	const toggle = (k: string) =>
		change({ ...p, metrics: (on.includes(k) ? on.filter((o) => o !== k) : [...on, k]).join() });
	return (
		<>
			<Chooser name="Metrics" now={on.length ? String(on.length) : 'Choose'} list={list} on={on}
				choose={toggle} />
			<input aria-label="Pattern of metrics, or a formula" class="pattern"
				placeholder="Or a pattern: loss|error, a formula: = train/loss - val/loss"
					title="A formula: + - * / ^ between blanks, params.lr, abs exp log sqrt min max"
				value={formula ? p.metrics
					: patternOf(p.metrics) === null ? '' : p.metrics.slice(1, -1)}
				onChange={(e) => {
					e.currentTarget.closest('.panel')!.scrollIntoView({ block: 'nearest' });
					change({ ...p, metrics: panelWords(e.currentTarget.value) });
				}} />
			<Chooser name="Over" now={p.x || s.view.value.x} choose={(x) => change({ ...p, x })}
				list={[{ id: '', label: "The view's axis" }, ...list]} />
			<button type="button" class="quiet" aria-label="Remove the panel"
				onClick={() => change(null)}>✕</button>
		</>
	);
}

function Card({ p, change }: CardOptions) {
	const box = useRef<HTMLDivElement>(null);
	const { keys, more } = panelMetrics(p, s.metricKeys.value);
	const shown = useSignal(keys);
	if (shown.value.join() !== keys.join()) shown.value = keys;
	const lines = useComputed(() => {
		void s.seriesRev.value;
		void theme();
		return shown.value.flatMap((k, i) => metricLines(k, i, p, shown.value.length > 1));
	});
	const chart = useChart({ box, p, keys, lines });
	const title = titleOf(p);
	const wrong = patternOf(p.metrics) === '' ? 'This pattern cannot be read' : 'No metric is chosen';
	const refused = s.refusedFormulas.value[p.metrics];
	return (
		<figure class="card chart panel" data-panel={p.metrics}>
			<figcaption><Choices p={p} change={change} />
				{keys.length > 1 && keys.map((k, i) => <span key={k} class="dim" title={k}>
					<Key look={{ ...DIM, dash: dashOf(i) }} on /> {s.shortKey(k)}</span>)}
				<span class="grow" />
				{more > 0 && <span class="dim">{more} more match</span>}
				<ChartTools of={LIMITS + title} name={title} chart={chart} metric={keys[0] ?? ''}
					lines={() => lines.value} formatX={(x) => panelX(p, x)} />
			</figcaption>
			<div class="plot" ref={box} tabIndex={0} role="group" data-chart={'panel ' + title}
				aria-label={summary(title, lines.value)} />
			{(!keys.length || refused) && <p class="nothing">{refused ?? wrong}</p>}
		</figure>
	);
}

export function Panels() {
	const list = s.view.value.panels;
	const change = (i: number, to: Panel | null) =>
		s.go({ panels: to ? list.map((p, k) => (k === i ? to : p)) : list.filter((_, k) => k !== i) });
	return (
		<section class="group panels" aria-label="Panels">
			{list.length > 0 && <div class="charts">{list.map((p, i) => (
				<Card key={i + p.x} p={p} change={(to) => change(i, to)} />))}</div>}
			<span class="options"><button type="button"
				title="Several metrics in one chart, or a metric over another"
				onClick={() => s.go({ panels: [...list, { metrics: '', x: '' }] })}>Add panel</button>
			<LayoutTools /></span>
		</section>
	);
}
