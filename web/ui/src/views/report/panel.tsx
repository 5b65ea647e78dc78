// SPDX-License-Identifier: Apache-2.0
// A panel of a report: curves of its runs and all numbers in a table; live or frozen.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { lookAt, type Look } from '../../base/colour.ts';
import { count, isBytes, short, sinceStart, valueText, valueTexts, when } from '../../base/format.ts';
import type { ReportPanel } from '../../base/report.ts';
import { seriesOf } from '../../base/series.ts';
import type { BucketColumns } from '../../base/types.ts';
import { lastPoint, LineChart, type ChartLine } from '../../charts/line/index.ts';
import * as s from '../../state/index.ts';
import { lookOf, needLooks, panelNow, type PanelData } from '../../state/saved/reports.ts';
import { filled, parts, Str } from '../../strings/en.ts';
import { followed, Key } from '../base/bits.tsx';
import { colourOf, theme } from '../base/theme.ts';

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

function nameIn(d: PanelData, id: string): string {
	return d.runs.find((r) => r.id === id)?.name || id.slice(0, 8);
}

/** The look of a run as in the table of its experiment; of a deleted one, by its place in the panel. */
function lookIn(d: PanelData, id: string): Look {
	return lookOf(id) ?? lookAt(Math.max(0, d.runs.findIndex((r) => r.id === id)));
}

function linesOf(d: PanelData, metrics: readonly string[]): ChartLine[] {
	return d.series.map((t) => {
		const line = seriesOf(t.run, t.key, t.rank, t.columns);
		const name = nameIn(d, t.run);
		return {
			id: t.run + '\n' + t.key, name: metrics.length > 1 ? `${name} ${t.key}` : name,
			colour: colourOf(lookIn(d, t.run)),
			dash: metrics.length > 1 ? DASHES[Math.max(0, metrics.indexOf(t.key)) % DASHES.length]!
				: lookIn(d, t.run).dash,
			xs: line.xs, ys: line.ys, smooth: null, fit: true, badX: line.badX, badToEnd: line.badToEnd,
			end: 'none' as const, flags: [],
		};
	});
}

function rangeOf(lines: readonly ChartLine[]): [number, number] {
	const all = lines.flatMap((l) => (l.xs.length ? [l.xs[0]!, l.xs.at(-1)!] : []));
	const [from, to] = [Math.min(...all), Math.max(...all)];
	return !(from <= to) ? [0, 1] : from === to ? [from - 0.5, to + 0.5] : [from, to];
}

const AXIS: Record<ReportPanel['x'], string> = { step: 'step', elapsed: 'time', epoch: 'epoch' };

export function titleOf(p: ReportPanel): string {
	return p.title || p.metrics.join(', ') || 'panel';
}

function Plot({ p, d, name }: { p: ReportPanel; d: PanelData; name: string }) {
	const box = useRef<HTMLDivElement>(null);
	const chart = useRef<LineChart | null>(null);
	const at = useSignal<number | null>(null);
	const lines = linesOf(d, p.metrics);
	const look = theme();
	useEffect(() => {
		const c = new LineChart(box.current!, {
			formatX: (x) => (p.x === 'elapsed' ? sinceStart(x) : short(x)),
			formatY: valueText(p.metrics[0] ?? ''),
			sayY: (ys, unit) => valueTexts(p.metrics[0] ?? '', ys, unit),
			onCursor: (x) => {
				at.value = x;
				c.cursor(x);
			},
			onHover: (id) => c.highlight(id), onZoom: () => {}, onReset: () => {},
			onOpen: (id, why) => s.openRun(id.split('\n')[0]!, why ? '' : undefined),
		});
		chart.current = c;
		return () => c.destroy();
	}, [p.x, p.metrics[0]]);
	useEffect(() => void needLooks(d.runs.map((r) => r.id)).catch(s.report), [d]);
	useEffect(() => {
		const [from, to] = rangeOf(lines);
		chart.current?.set({ lines, from, to, log: p.log, full: true, xLabel: AXIS[p.x], whole: p.x === 'step',
			ticksX: p.x === 'elapsed' ? 'time' : 'even', bytes: isBytes(p.metrics[0] ?? ''),
			gutter: lines.length > 1 && (box.current?.clientWidth ?? 0) > 430 ? GUTTER : 0 });
	}, [d, p.log, p.x, p.metrics.join(), look, lines.map((l) => l.colour + l.dash).join()]);
	const words = lines.map((l) => filled(Str.xEndsAtX, l.name, short(l.ys[lastPoint(l.ys)] ?? NaN)));
	return <div class="plot" ref={box} tabIndex={0} role="group" data-chart={name}
		aria-label={`${name}, ${count(lines.length, Str.line)}. ${words.slice(0, 30).join('; ')}`} />;
}

/** In narrow windows without names at the lines' ends. */
function Legend({ d, metrics }: { d: PanelData; metrics: readonly string[] }) {
	const lookOf = (l: ChartLine) => ({ ...lookIn(d, l.id.split('\n')[0]!), dash: l.dash });
	return <p class="legend" data-here>{linesOf(d, metrics).map((l) => (
		<span key={l.id}><Key look={lookOf(l)} on /> {l.name}</span>))}</p>;
}

const HEADS = [Str.Run, Str.Metric, Str.Points, Str.Last, Str.Min, Str.Max];

const text = (v: number | null) => (v === null ? '–' : String(v));

/** In full precision. */
function Numbers({ d }: { d: PanelData }) {
	return (
		<details class="numbers"><summary>{parts(Str.TheNumbersOfX, count(d.series.length, Str.line))}</summary>
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
	const now = useSignal<PanelData | null>(null);
	const wrong = useSignal('');
	const rev = s.liveRev.value;
	useEffect(() => {
		let here = p.frozen === null;
		if (here) panelNow(p, experiment).then((d) => {
			if (!here) return;
			wrong.value = '';
			now.value = d;
		}, (e: Error) => here && (wrong.value = e.message));
		return () => {
			here = false;
		};
	}, [JSON.stringify(p), experiment, rev]);
	return { d: p.frozen === null ? now.value : frozen, wrong: wrong.value };
}

/** Reason for an empty panel, or ''. */
function nothing(p: ReportPanel, d: PanelData | null): string {
	if (!p.metrics.length) return Str.ThisPanelHasNoMetrics;
	if (!d) return p.frozen === null ? '' : Str.TheFrozenDataOfThisPanel;
	return d.series.length ? '' : d.runs.length ? Str.ItsRunsHaveNoPointsOf : Str.NoRunsFound;
}

export function PanelFigure({ p, frozen, experiment, name, toggle }: Options) {
	const { d, wrong } = useNow(p, frozen, experiment);
	const why = wrong || nothing(p, d);
	return (
		<figure class="card chart reportpanel" data-frozen={p.frozen !== null}>
			<figcaption><b>{titleOf(p)}</b>
				<span class="dim">{p.frozen === null ? Str.live
					: d ? filled(Str.frozenX, when(d.time)) : Str.frozen}</span>
				{d?.more && <span class="dim">{Str.notAllRunsOrMetricsAre}</span>}
				<span class="grow" />
				{toggle && <button type="button" class="quiet" data-here onClick={toggle}
					aria-label={`${p.frozen === null ? Str.Freeze : Str.Unfreeze} ${name}`}
					title={p.frozen === null ? Str.KeepItsCurrentData
						: Str.ShowLiveDataAgain}>
					{p.frozen === null ? Str.Freeze : Str.Unfreeze}</button>}
			</figcaption>
			{p.wrong.length > 0 && <p class="problem" role="alert">{parts(Str.NotUnderstoodX,
				p.wrong.join('; '))}</p>}
			{d && !why && <><Plot p={p} d={d} name={name} /><Legend d={d} metrics={p.metrics} />
				<Numbers d={d} />
				<script type="application/json" data-series>{JSON.stringify(d.sent)
					.replace(/</g, '\\u003c')}</script></>}
			{why && <p class="nothing">{why}</p>}
		</figure>
	);
}
