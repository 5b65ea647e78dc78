// SPDX-License-Identifier: Apache-2.0
// Parallel coordinates: an axis for each differing param and for the goal, a line per run. The brushed runs can be
// charted.
import { useComputed, useSignal, useSignalEffect, type Signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Run } from '../../base/types.ts';
import { count } from '../../base/format.ts';
import { fellOut } from '../../base/goal.ts';
import { tellingParams } from '../../base/params.ts';
import { isBrushed, ParallelChart, type ParallelData } from '../../charts/parallel.ts';
import * as s from '../../state/index.ts';
import { Chooser } from '../base/chooser.tsx';
import { colourOf } from '../base/theme.ts';
import { axisChoices, axisOf, axisScale, metricsOf, type Axis } from './axes.ts';
import { gradeOf } from './grade.ts';
import { parallelSaid, placeOf, Said, TableOf } from './said.tsx';
import './styles.ts';

const AXIS_PX = 92;
const AXES_MAX = 10;
/** With more runs, lines are coloured by the goal. */
const OWN_COLOURS = 24;
/** Lines with equal values are spread over this share of the axis. */
const SPREAD = 0.035;
/** Maximum of runs that can be charted. */
const SHOW_MAX = 100;

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
	const scales = axes.map((a) => axisScale(a, list, { log: null, flip: a.dir === 'min' }));
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
			title: a.title + (scales[k]!.log ? ' (log)' : ''), ticks: scales[k]!.ticks,
			brush: brushes[a.title] ?? null, spread: scales[k]!.discrete ? SPREAD : 0,
		})),
		lines: list.map((r, i) => ({
			id: r.id, name: s.nameOf(r.id, r), back: fellOut(r),
			at: axes.map((_, k) => placeOf(r, i, k)), ...lookOf(r, i),
		})),
	};
}

/** Number of brushed runs and the actions for them. */
function Brushed({ ids, clear }: { ids: readonly string[]; clear: () => void }) {
	const most = ids.length > SHOW_MAX;
	const show = () => s.setShown(new Set(ids.slice(0, SHOW_MAX)));
	return (
		<><b>{count(ids.length, 'run')}</b> within the brushes
			<button type="button" disabled={!ids.length} onClick={show}>
				Show {most ? `${SHOW_MAX} of them`
					: 'only these'} in the charts</button>
			<button type="button" onClick={clear}>Clear</button></>
	);
}

/** Events of the chart: brushed runs, drawn axes, the axis with the keyboard focus. */
interface ChartEvents {
	brushed: Signal<string[]>;
	axes: Signal<Axis[]>;
	chosen: Signal<number | null>;
}

/** Keeps the chart in its element up to date. */
function useParallel(box: RefObject<HTMLDivElement | null>, { brushed, axes: drawn, chosen }: ChartEvents): void {
	const chart = useRef<ParallelChart | null>(null);
	const titles = useRef<string[]>([]);
	useEffect(() => {
		const c = new ParallelChart(box.current!, {
			onHover: (id) => (s.lit.value = id), onOpen: s.openRun, onAxis: (i) => (chosen.value = i),
			onBrush: (i, range) => {
				const { [titles.current[i]!]: _, ...others } = s.view.value.brushes;
				s.go({ brushes: range ? { ...others, [titles.current[i]!]: range } : others });
			},
		});
		chart.current = c;
		return () => c.destroy();
	}, []);
	useSignalEffect(() => {
		const list = [...s.rows.value].reverse();
		const axes = idsOf(box.current?.clientWidth ?? 1000).map((id) => axisOf(id, list));
		titles.current = axes.map((a) => a.title);
		drawn.value = axes;
		const picture = pictureOf(list, axes, s.view.value.brushes);
		chart.current?.set(picture);
		brushed.value = picture.lines.filter((l) => isBrushed(picture.axes, l)).map((l) => l.id);
	});
	useSignalEffect(() => {
		const id = s.lit.value;
		chart.current?.highlight(id);
	});
}

/** Choice of axes, in selection order; by default the drawn ones. */
function Axes({ now }: { now: readonly string[] }) {
	const toggle = (id: string) => s.go({ axes: now.includes(id) ? now.filter((a) => a !== id) : [...now, id] });
	return (
		<>
			<Chooser name="Axes" now={String(now.length)} list={axisChoices()} on={now}
				choose={toggle} />
			{s.view.value.axes && <button type="button" class="quiet"
				onClick={() => s.go({ axes: null })}>Default axes</button>}
		</>
	);
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
	useParallel(box, { brushed, axes, chosen });
	const lit = s.lit.value === null ? undefined : s.runs.value.find((r) => r.id === s.lit.value);
	const axis = chosen.value === null ? undefined : axes.value[chosen.value];
	const spoken = [axis && `Axis ${axis.title}`, lit
		&& `${s.nameOf(lit.id, lit)}: ${placeOf(axes.value, lit)}`]
		.filter(Boolean).join('; ');
	const lost = s.rows.value.filter(fellOut).length;
	const label = `Params and goal of ${count(s.rows.value.length, 'run')}; up and down walk through the runs, `
		+ 'left and right through the axes';
	return (
		<div class="card chart parallel">
			<p class="options">
				<Axes now={axes.value.map((a) => a.id)} />
				{Object.keys(brushes).length > 0
					? <Brushed ids={brushed.value} clear={() => s.go({ brushes: {} })} />
					: <span class="dim">Drag along an axis to pick runs; by keyboard, press Space at
						the first and at the last. The best is at the top.</span>}
				{lost > 0 && <span class="dim">grey: {count(lost, 'run')} failed or diverged</span>}
				<TableOf name="Params and goal" axes={() => axes.value} />
			</p>
			<div class="plot" ref={box} tabIndex={0} role="group" data-parallel
				aria-label={label} aria-describedby="parallel-said" />
			<span class="unseen" aria-live="polite">{spoken}</span>
			<Said id="parallel-said" said={said} />
		</div>
	);
}
