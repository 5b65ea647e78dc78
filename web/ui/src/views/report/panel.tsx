// SPDX-License-Identifier: Apache-2.0
// A panel of a report: curves of its runs and all numbers in a table; live or frozen.
import { useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { lookAt, type Look } from '../../base/colour.ts';
import { clockText, count, isBytes, short, sinceStart, valueText, valueTexts, when } from '../../base/format.ts';
import { fellOut } from '../../base/goal.ts';
import { fieldText } from '../../base/group.ts';
import type { ReportPanel } from '../../base/report.ts';
import { seriesOf } from '../../base/series.ts';
import type { BucketColumns } from '../../base/types.ts';
import { lastPoint, LineChart, type ChartLine } from '../../charts/line/index.ts';
import { looksOfGroups } from '../../state/grouped.ts';
import * as s from '../../state/index.ts';
import { lookOf, needLooks, panelNow, type PanelData, type PanelRun } from '../../state/saved/reports.ts';
import { followed, Key, useLoaded } from '../base/bits.tsx';
import { colourOf, theme } from '../base/theme.ts';
import { FigureButton } from '../charts/figurebutton.tsx';
import { meanLine } from '../charts/grouplines.ts';
import { endOf, flagsOf, GROUP, smoothed } from '../charts/lines.ts';

const DASHES: number[][] = [[], [7, 3], [2, 2.5], [10, 3, 2, 3]];
const GUTTER = 128;

/** A run's series as numbers; non-finite values as the API's strings. */
interface Row {
	run: string;
	name: string;
	key: string;
	points: number;
	last: number | null;
	min: number | null;
	max: number | null;
}

function ends(c: BucketColumns): Pick<Row, 'points' | 'last' | 'min' | 'max'> {
	const known = (list: readonly (number | null)[]) =>
		list.filter((v): v is number => v !== null && !Number.isNaN(v));
	const [low, high] = [known(c.min), known(c.max)];
	return {
		points: c.count.reduce((a, n) => a + n, 0), last: c.last.at(-1) ?? null,
		min: low.length ? Math.min(...low) : null, max: high.length ? Math.max(...high) : null,
	};
}

function rowsOf(d: PanelData): Row[] {
	return d.series.map((t) => ({ run: t.run, name: nameIn(d, t.run), key: t.key, ...ends(t.columns) }));
}

const nameIn = (d: PanelData, id: string): string => d.runs.find((r) => r.id === id)?.name || id.slice(0, 8);

/** The look of a run as in the table of its experiment; of a deleted one, by its place in the panel. */
function lookIn(d: PanelData, id: string): Look {
	return lookOf(id) ?? lookAt(Math.max(0, d.runs.findIndex((r) => r.id === id)));
}

interface PanelLine extends ChartLine {
	look: Look;
	/** Unit of its x. */
	axis: string;
}

/** Name and look of a line of a metric: of several metrics each has its dash. */
function markOf(metrics: readonly string[], key: string, name: string, of: Look) {
	const look = metrics.length > 1
		? { ...of, dash: DASHES[Math.max(0, metrics.indexOf(key)) % DASHES.length]! } : of;
	return { name: metrics.length > 1 ? `${name} ${key}` : name, look, colour: colourOf(look), dash: look.dash };
}

function groupLines(p: ReportPanel, d: PanelData): PanelLine[] {
	const looks = looksOfGroups(d.groups.map((g) => (g.oldest === undefined ? undefined : lookIn(d, g.oldest))));
	return d.groups.flatMap((g, i) => g.curves.map((c) => ({
		...markOf(p.metrics, c.key, `${g.title ?? g.name} (${c.runs.length}${g.fallen ?? ''})`, looks[i]!),
		id: `${GROUP}${g.name}\n${c.key}`,
		axis: unitOf(p, c.key, c.buckets.map((b) => b.x), d.runs.find((r) => c.runs.includes(r.id))),
		...meanLine(c.buckets, (b) => b[p.line]),
		smooth: null, fit: true, badX: null, badToEnd: false, end: 'none' as const, flags: [],
	})));
}

/** The unit of x of a series; "epoch/…" counts epochs unless it is logged at optimiser steps. */
function unitOf(p: ReportPanel, key: string, xs: readonly number[], r?: PanelRun): string {
	if (p.x !== 'step') return AXIS[p.x];
	const last = r?.last_step ?? null;
	return key.startsWith('epoch/') && (last === null || (xs.at(-1) ?? 0) * 2 <= last) ? 'epoch' : 'step';
}

function linesOf(p: ReportPanel, d: PanelData): PanelLine[] {
	if (p.group.length) return groupLines(p, d);
	return d.series.map((t) => {
		const line = seriesOf(t.run, t.key, t.rank, t.columns);
		const r = d.runs.find((x) => x.id === t.run);
		const axis = unitOf(p, t.key, line.xs, r);
		return {
			...markOf(p.metrics, t.key, nameIn(d, t.run), lookIn(d, t.run)), id: t.run + '\n' + t.key,
			axis, xs: line.xs, ys: line.ys, smooth: smoothed(line, p.smooth),
			fit: !r || !fellOut(r) || d.runs.length === 1,
			badX: line.badX, badToEnd: line.badToEnd, end: r ? endOf(r) : 'none',
			flags: r ? flagsOf(r, t.key, line, axis, (x) => textOfX(p, x)) : [],
		};
	});
}

function rangeOf(p: ReportPanel, lines: readonly ChartLine[]): [number, number] {
	const seen = (x: number) => !p.logX || x > 0;
	if (p.range && seen(p.range[0])) return p.range;
	const all = lines.map((l) => l.xs.filter(seen)).flatMap((xs) => (xs.length ? [xs[0]!, xs.at(-1)!] : []));
	const [from, to] = [Math.min(...all), Math.max(...all)];
	if (!(from <= to)) return p.logX ? [1, 10] : [0, 1];
	return from < to ? [from, to] : p.logX ? [from / 2, to * 2] : [from - 0.5, to + 0.5];
}

const AXIS: Record<ReportPanel['x'], string> = { step: 'step', elapsed: 'time', epoch: 'epoch', clock: 'clock' };
const TICKS = { step: 'even', elapsed: 'time', epoch: 'even', clock: 'clock' } as const;

function textOfX(p: ReportPanel, x: number): string {
	return p.x === 'elapsed' ? sinceStart(x) : p.x === 'clock' ? clockText(x) : short(x);
}

export function titleOf(p: ReportPanel): string {
	return p.title || p.metrics.join(', ') || 'panel';
}

interface PlotOptions {
	p: ReportPanel;
	d: PanelData;
	name: string;
	chart: RefObject<LineChart | null>;
}

function Plot({ p, d, name, chart }: PlotOptions) {
	const box = useRef<HTMLDivElement>(null);
	const at = useSignal<number | null>(null);
	const lines = linesOf(p, d);
	const look = theme();
	useEffect(() => {
		const c = new LineChart(box.current!, {
			formatX: (x) => textOfX(p, x),
			formatY: valueText(p.metrics[0] ?? ''),
			sayY: (ys, units) => valueTexts(p.metrics[0] ?? '', ys, units),
			onCursor: (x) => {
				at.value = x;
				c.cursor(x);
			},
			onHover: (id) => c.highlight(id), onZoom: () => {}, onReset: () => {},
			onOpen: (id, why) => !p.group.length && s.openRun(id.split('\n')[0]!, why ? '' : undefined),
		});
		chart.current = c;
		return () => c.destroy();
	}, [p.x, p.metrics[0], p.group.length]);
	useEffect(() => void needLooks(d.runs.map((r) => r.id)).catch(s.report), [d]);
	useEffect(() => {
		const [from, to] = rangeOf(p, lines);
		const { log, logX, limits, full } = p;
		chart.current?.set({ lines, from, to, log, logX, limits, full,
			xLabel: lines[0]?.axis ?? AXIS[p.x], whole: p.x === 'step', ticksX: TICKS[p.x],
			bytes: isBytes(p.metrics[0] ?? ''),
			gutter: lines.length > 1 && (box.current?.clientWidth ?? 0) > 430 ? GUTTER : 0 });
	}, [d, JSON.stringify(p), look, lines.map((l) => l.colour + l.dash).join()]);
	const words = lines.map((l) => `${l.name} ends at ${short(l.ys[lastPoint(l.ys)] ?? NaN)}`);
	return <div class="plot" ref={box} tabIndex={0} role="group" data-chart={name}
		aria-label={`${name}, ${count(lines.length, 'line')}. ${words.slice(0, 30).join('; ')}`} />;
}

/** In narrow windows without names at the lines' ends. */
function Legend({ p, d }: { p: ReportPanel; d: PanelData }) {
	return <p class="legend" data-here>{linesOf(p, d).map((l) => (
		<span key={l.id}><Key look={l.look} on /> {l.name}</span>))}</p>;
}

const HEADS = ['Run', 'Metric', 'Points', 'Last', 'Min', 'Max'];

const text = (v: number | null) => (v === null ? '–' : String(v));

/** In full precision. */
function Numbers({ p, d }: { p: ReportPanel; d: PanelData }) {
	const within = p.range && ` from ${AXIS[p.x]} ${textOfX(p, p.range[0])} to ${textOfX(p, p.range[1])}`;
	return (
		<details class="numbers"><summary>The numbers of {count(d.series.length, 'line')}
			{within}</summary>
			<div class="scroll"><table>
				<thead><tr>{HEADS.map((h) => <th key={h} scope="col">{h}</th>)}</tr></thead>
				<tbody>{rowsOf(d).map((r) => (
					<tr key={r.run + r.key} data-run={r.run} data-key={r.key}>
						<th scope="row"><a href={s.runAddress(r.run)}
							onClick={followed(() => s.openRun(r.run))}>{r.name}</a></th>
						<td>{r.key}</td><td class="num">{r.points}</td>
						<td class="num">{text(r.last)}</td><td class="num">{text(r.min)}</td>
						<td class="num">{text(r.max)}</td></tr>))}</tbody>
			</table></div>
		</details>
	);
}

/** How many runs and metrics are not drawn, and which. */
function Left({ d: { left } }: { d: PanelData }) {
	const { runs, metrics, more } = left;
	if (!runs.length && !metrics.length) return null;
	const words = [...runs.length ? [count(runs.length, 'run') + (more ? '+' : '')] : [],
		...metrics.length ? [count(metrics.length, 'metric')] : []].join(', ');
	return (
		<details class="left"><summary>Not drawn: {words}</summary>
			<ul class="files">{runs.map((r) => <li key={r.id}><a href={s.runAddress(r.id)}
				onClick={followed(() => s.openRun(r.id))}>{r.name || r.id.slice(0, 8)}</a></li>)}
			{metrics.map((m) => <li key={m}>{m}</li>)}</ul></details>
	);
}

interface Options {
	p: ReportPanel;
	/** Frozen data; null: live. */
	frozen: PanelData | null;
	experiment: string;
	/** Key of the chart. */
	name: string;
	/** Freezes the panel or makes it live; null: not allowed. */
	toggle: (() => void) | null;
}

/** Data of a live panel, reloaded on changes. */
function useNow(p: ReportPanel, frozen: PanelData | null, experiment: string) {
	const { value, wrong } = useLoaded(() => (p.frozen === null ? panelNow(p, experiment) : null),
		[JSON.stringify(p), experiment, s.liveRev.value]);
	return { d: p.frozen === null ? value : frozen, wrong };
}

/** Reason for an empty panel, or ''. */
function nothing(p: ReportPanel, d: PanelData | null): string {
	if (!p.metrics.length) return 'This panel has no metrics';
	if (!d) return p.frozen === null ? '' : 'The frozen data of this panel is missing from the text';
	return d.series.length ? '' : d.runs.length ? 'Its runs have no points of these metrics' : 'No runs found';
}

export function PanelFigure({ p, frozen, experiment, name, toggle }: Options) {
	const { d, wrong } = useNow(p, frozen, experiment);
	const chart = useRef<LineChart | null>(null);
	const why = wrong || nothing(p, d);
	return (
		<figure class="card chart reportpanel" data-frozen={p.frozen !== null}>
			<figcaption><b>{titleOf(p)}</b>
				{p.frozen === null ? <span class="dim" data-here>live</span>
					: <span class="dim">{d ? `frozen ${when(d.time)}` : 'frozen'}</span>}
				{p.group.length > 0
					&& <span class="dim">{p.line} by {p.group.map(fieldText).join(', ')}</span>}
				{p.smooth > 0 && !p.group.length
					&& <span class="dim">smoothed {p.smooth}, raw values pale</span>}
				{d && <Left d={d} />}
				<span class="grow" />
				{d && !why && <FigureButton of={() => chart.current} name={name} />}
				{toggle && <button type="button" class="quiet" data-here onClick={toggle}
					aria-label={`${p.frozen === null ? 'Freeze' : 'Unfreeze'} ${name}`}
					title={p.frozen === null ? 'Keep its current data' : 'Show live data again'}>
					{p.frozen === null ? 'Freeze' : 'Unfreeze'}</button>}
			</figcaption>
			{p.wrong.length > 0 && <p class="problem" role="alert">Not understood: {p.wrong.join('; ')}</p>}
			{d && !why && <><Plot p={p} d={d} name={name} chart={chart} /><Legend p={p} d={d} />
				<Numbers p={p} d={d} />
				<script type="application/json" data-series>{JSON.stringify(d.sent)
					.replace(/</g, '\\u003c')}</script></>}
			{why && <p class="nothing">{why}</p>}
		</figure>
	);
}
