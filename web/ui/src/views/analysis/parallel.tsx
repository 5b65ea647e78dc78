// SPDX-License-Identifier: Apache-2.0
// Parallel coordinates: an axis for each differing param and for the goal, a line per run. The brushed runs can be
// charted.
import { useComputed, useSignal, useSignalEffect, type Signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useRef } from 'preact/hooks';
import type { Run } from '../../base/types.ts';
import { count } from '../../base/format.ts';
import { fellOut } from '../../base/goal.ts';
import { tellingParams } from '../../base/params.ts';
import { isBrushed, ParallelChart, type ParallelData } from '../../charts/parallel.ts';
import * as s from '../../state/index.ts';
import { Opener, Panel } from '../base/bits.tsx';
import { Chooser } from '../base/chooser.tsx';
import { colourOf } from '../base/theme.ts';
import { FigureButton, type FigureSettings, type MakeSource } from '../charts/figurebutton.tsx';
import { axisChoices, axisOf, axisScale, metricsOf, type Axis } from './axes.ts';
import { gradeOf } from './grade.ts';
import { litSaid, parallelSaid, Picked, rowsOn, Said, TableOf, useRunsChart } from './said.tsx';
import './styles.ts';

const AXIS_PX = 92;
const AXES_MAX = 10;
/** With more runs, lines are coloured by the goal. */
const OWN_COLOURS = 24;
/** Lines with equal values are spread over this share of the axis. */
const SPREAD = 0.035;

/** Brushed ranges by axis title. */
type Brushes = Record<string, [number, number]>;

/** The axes: the user's choice, or the most relevant params and the goal. */
function idsOf(width: number): string[] {
	const chosen = s.view.value.axes;
	if (chosen) return chosen;
	const g = s.goal.value;
	const most = Math.max(2, Math.min(AXES_MAX, Math.floor((width - 114) / AXIS_PX)));
	return [...tellingParams(s.split.value, most).map((k) => 'p:' + k), ...g ? ['m:best:' + g.key] : []];
}

/** Lines sorted so that the best is drawn last, in front. */
function pictureOf(list: readonly Run[], axes: readonly Axis[], brushes: Brushes): ParallelData {
	const wished = s.view.value.scales;
	const scales = axes.map((a) => axisScale(a, list, { flip: a.dir === 'min',
		quantile: wished[a.id] === 'quantile', log: wished[a.id] ? wished[a.id] === 'log' : null }));
	const last = list.length - 1;
	const lookOf = (r: Run, i: number) => {
		if (list.length > OWN_COLOURS) return { colour: gradeOf(i / last), dash: [] };
		const look = s.looks.value.byRun.get(r.id);
		return { colour: colourOf(look), dash: look?.dash ?? [] };
	};
	const placeOf = (r: Run, i: number, k: number) => {
		const at = scales[k]!.at(axes[k]!.value(r));
		return at !== null && scales[k]!.discrete && last > 0 ? at + (i / last - 0.5) * SPREAD : at;
	};
	return {
		axes: axes.map((a, k) => ({
			title: a.title + (scales[k]!.log ? ' (log)' : scales[k]!.quantile ? ' (quantile)' : ''),
			ticks: scales[k]!.ticks,
			brush: brushes[a.title] ?? null, spread: scales[k]!.discrete ? SPREAD : 0,
		})),
		lines: list.map((r, i) => ({
			id: r.id, name: s.nameOf(r.id, r), back: fellOut(r),
			at: axes.map((_, k) => placeOf(r, i, k)), ...lookOf(r, i),
		})),
	};
}

/** The plot as a figure: as it is drawn, without its brushes. */
const figureOf = (drawn: ParallelChart, axes: readonly Axis[]): MakeSource => async (onPaper) => {
	const list = s.rows.value;
	const { data, style } = await onPaper(drawn);
	if (!data) return null;
	const titles = data.axes.map((a) => a.title);
	const namesOf = (f: FigureSettings) => titles.map((t) => f.names[t] || t);
	return { kind: 'axes', range: [NaN, NaN], axes: titles, style, items: data.lines,
		first: { width: 174, height: 80 },
		plot: (el) => {
			const chart = new ParallelChart(el, { onHover() {}, onOpen() {}, onAxis() {}, onBrush() {} });
			return { chart, rows: (f, items) => rowsOn(axes, namesOf(f), list, items),
				set: (f, items) => chart.set({ lines: items as ParallelData['lines'],
					axes: data.axes.map((a, i) =>
						({ ...a, brush: null, title: namesOf(f)[i]! })) }) };
		} };
};

/** Keeps the chart in its element up to date, and what it says: brushed runs, its axes, the one with the focus. */
function useParallel(box: RefObject<HTMLDivElement | null>, brushed: Signal<string[]>, drawn: Signal<Axis[]>,
	chosen: Signal<number | null>): RefObject<ParallelChart | null> {
	const titles = useRef<string[]>([]);
	return useRunsChart(box, (el) => new ParallelChart(el, {
		onHover: (id) => (s.lit.value = id), onOpen: s.openRun, onAxis: (i) => (chosen.value = i),
		onBrush: (i, range) => {
			const { [titles.current[i]!]: _, ...others } = s.view.value.brushes;
			s.go({ brushes: range ? { ...others, [titles.current[i]!]: range } : others });
		},
	}), (c) => {
		const list = [...s.rows.value].reverse();
		const axes = idsOf(box.current?.clientWidth ?? 1000).map((id) => axisOf(id, list));
		titles.current = axes.map((a) => a.title);
		drawn.value = axes;
		const picture = pictureOf(list, axes, s.view.value.brushes);
		c.set(picture);
		brushed.value = picture.lines.filter((l) => isBrushed(picture.axes, l)).map((l) => l.id);
	});
}

/** Choice of axes, in selection order; by default the drawn ones. */
function Axes({ now }: { now: readonly string[] }) {
	const toggle = (id: string) => s.go({ axes: now.includes(id) ? now.filter((a) => a !== id) : [...now, id] });
	return (
		<>
			<Chooser name="Axes" now={String(now.length)} list={axisChoices()} on={now} choose={toggle} />
			{s.view.value.axes && <button type="button" class="quiet"
				onClick={() => s.go({ axes: null })}>Default axes</button>}
		</>
	);
}

const SCALES = [['', 'automatic'], ['linear', 'linear'], ['log', 'log'], ['quantile', 'quantile']];

/** How each axis of numbers is scaled. A range of the axis is one of places, so it goes. */
function Scales({ axes }: { axes: readonly Axis[] }) {
	const open = useSignal(false);
	const { scales, brushes } = s.view.value;
	const choose = (a: Axis, how: string) => {
		const [{ [a.id]: _, ...others }, { [a.title]: __, ...ranges }] = [scales, brushes];
		s.go({ scales: how ? { ...others, [a.id]: how } : others, brushes: ranges });
	};
	return <Opener word="Scales" open={open} panel={(close) => <Panel label="Scales of the axes" close={close}>
		{axes.filter((a) => a.numeric).map((a) => <label key={a.id} class="choice">{a.title} <select
			value={scales[a.id] ?? ''} onChange={(e) => choose(a, e.currentTarget.value)}>
			{SCALES.map(([how, word]) => <option key={how} value={how}>{word}</option>)}</select></label>)}
	</Panel>} />;
}

export function Parallel() {
	useSignalEffect(() => void s.needMetrics(metricsOf(s.view.value.axes ?? [])));
	const box = useRef<HTMLDivElement>(null);
	const brushes = s.view.value.brushes;
	const brushed = useSignal<string[]>([]);
	const axes = useSignal<Axis[]>([]);
	const said = useComputed(() => parallelSaid(s.rows.value, axes.value));
	/** The axis with the keyboard focus. */
	const chosen = useSignal<number | null>(null);
	const chart = useParallel(box, brushed, axes, chosen);
	const axis = chosen.value === null ? undefined : axes.value[chosen.value];
	const spoken = [axis && `Axis ${axis.title}`, litSaid(axes.value)].filter(Boolean).join('; ');
	const lost = s.rows.value.filter(fellOut).length;
	const label = `Params and goal of ${count(s.rows.value.length, 'run')}; up and down walk through the runs, `
		+ 'left and right through the axes';
	return (
		<div class="card chart parallel">
			<p class="options">
				<Axes now={axes.value.map((a) => a.id)} />
				<Scales axes={axes.value} />
				{Object.keys(brushes).length > 0
					? <Picked ids={brushed.value} where=" within the brushes"
						clear={() => s.go({ brushes: {} })} />
					: <span class="dim">Drag along an axis to pick runs; by keyboard, press Space at
						the first and at the last. The best is at the top.</span>}
				{lost > 0 && <span class="dim">grey: {count(lost, 'run')} failed or diverged</span>}
				<TableOf name="Params and goal" axes={() => axes.value} />
				<FigureButton name="Params and goal"
					of={() => chart.current && figureOf(chart.current, axes.value)} />
			</p>
			<div class="plot" ref={box} tabIndex={0} role="group" data-parallel
				aria-label={label} aria-describedby="parallel-said" />
			<span class="unseen" aria-live="polite">{spoken}</span>
			<Said id="parallel-said" said={said} />
		</div>
	);
}
