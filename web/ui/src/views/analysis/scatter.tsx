// SPDX-License-Identifier: Apache-2.0
// Scatter plot of runs over any two columns, coloured by a third, with the Pareto front.
import { useComputed, useSignal, useSignalEffect } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { count } from '../../base/format.ts';
import { fellOut } from '../../base/goal.ts';
import { paretoFront } from '../../base/why/pareto.ts';
import { relationOf } from '../../base/why/relation.ts';
import { tellingParams } from '../../base/params.ts';
import type { Run } from '../../base/types.ts';
import { emptyScatter, type Scatter as Choice } from '../../base/url.ts';
import { ScatterChart, type ScatterData } from '../../charts/scatter.ts';
import { lookAt } from '../../base/colour.ts';
import * as s from '../../state/index.ts';
import { Chooser } from '../base/chooser.tsx';
import { colourOf } from '../base/theme.ts';
import { FigureButton, type FigureSettings, type Item, type MakeSource } from '../charts/figurebutton.tsx';
import { axisChoices, axisOf, axisScale, metricsOf, type Axis, type ScaleWish } from './axes.ts';
import { gradeOf } from './grade.ts';
import { litSaid, numberOn, Picked, rowsOn, Said, scatterSaid, TableOf, useRunsChart } from './said.tsx';

const PARAMS_MAX = 30;
const LOG = ' (log)';

type Spot = [number | null, number | null];

/** The param of the default x axis and what it was found for; it does not change under the reader. */
let kept = { of: '', param: '' };

/** The param whose rank correlation with the goal is strongest, if one is certain; else the most relevant. */
function firstParam(): string {
	const g = s.goal.value;
	const of = `${s.experiment.value}\n${g?.key}`;
	if (kept.of === of || !s.rows.value.length) return kept.param;
	const params = tellingParams(s.split.value, PARAMS_MAX).filter((k) => !/seed/.test(k));
	const counting = s.rows.value.filter((r) => !fellOut(r));
	const numbers = (id: string) => counting.map((r) => Number(axisOf(id, counting).value(r) ?? NaN));
	const target = numbers('m:best:' + g?.key);
	const found = params.map((param) => ({ param, ...relationOf(numbers('p:' + param), target, params.length) }))
		.filter((f) => f.sure).sort((a, b) => Math.abs(b.r) - Math.abs(a.r));
	kept = { of, param: found[0]?.param ?? params[0] ?? '' };
	return kept.param;
}

/** The choice with defaults: the strongest param and the goal. */
function chosen(): Choice {
	const c = s.view.value.scatter ?? emptyScatter;
	const first = firstParam();
	const goal = s.goal.value ? 'm:best:' + s.goal.value.key : 'time';
	return { ...c, x: c.x || (first ? 'p:' + first : 'start'), y: c.y || goal };
}

/** Colour of a run by a column: categorical, or from pale to strong. */
function colours(axis: Axis | null, list: readonly Run[]): (r: Run) => string {
	if (!axis) return (r) => colourOf(s.looks.value.byRun.get(r.id));
	const scale = axisScale(axis, list, { log: null });
	const words = [...new Set(list.map((r) => axis.value(r)))].filter((v) => typeof v === 'string');
	if (words.length) return (r) => colourOf(lookAt(words.indexOf(axis.value(r) as string)));
	return (r) => gradeOf(scale.at(axis.value(r)) ?? 0);
}

function frontOf(list: readonly Run[], x: Axis, y: Axis, at: (r: Run) => Spot): [number, number][] {
	const counting = list.filter((r) => !fellOut(r));
	const pairs = counting.map((r) => ({ x: numberOn(x)(r), y: numberOn(y)(r) }));
	return paretoFront(pairs, x.dir ?? 'min', y.dir ?? 'min')
		.map((i) => at(counting[i]!)).filter((p): p is [number, number] => p[0] !== null && p[1] !== null);
}

function pictureOf(list: readonly Run[], c: Choice, wishes: readonly ScaleWish[] = [
	{ log: c.log.includes('x') || null }, { log: c.log.includes('y') }]): ScatterData {
	const [x, y] = [axisOf(c.x, list), axisOf(c.y, list)];
	const [sx, sy] = [axisScale(x, list, wishes[0]!), axisScale(y, list, wishes[1]!)];
	const colour = colours(c.colour ? axisOf(c.colour, list) : null, list);
	const at = (r: Run): Spot => [sx.at(x.value(r)), sy.at(y.value(r))];
	return {
		x: { title: x.title + (sx.log ? LOG : ''), ticks: sx.ticks },
		y: { title: y.title + (sy.log ? LOG : ''), ticks: sy.ticks },
		points: list.map((r) => {
			const [px, py] = at(r);
			return { id: r.id, name: s.nameOf(r.id, r), colour: colour(r), x: px, y: py, back: fellOut(r) };
		}),
		front: c.front ? frontOf(list, x, y, at) : [],
	};
}

/** The plot as a figure: the runs and columns of now. */
const figureOf = (drawn: ScatterChart): MakeSource => async (onPaper) => {
	const [list, c] = [s.rows.value, chosen()];
	const { data, style } = await onPaper(drawn);
	if (!data) return null;
	const { x: { title: x }, y: { title: y } } = data;
	const axes = [c.x, c.y].map((id) => axisOf(id, list));
	const dataOf = (f: FigureSettings, items: readonly Item[]): ScatterData => {
		const shown = new Map(items.map((i) => [i.id, i]));
		const d = pictureOf(list.filter((r) => shown.has(r.id)), c, [{ log: f.logX, ends: [f.from, f.to] },
			{ log: f.log, ends: [f.low, f.high] }]);
		return { ...d, x: { ...d.x, title: f.x }, y: { ...d.y, title: f.y },
			points: d.points.map((p) => ({ ...p, ...shown.get(p.id) })) };
	};
	return { kind: 'points', range: [NaN, NaN], axes: [], style,
		items: data.points.filter((p) => p.x !== null && p.y !== null).map(({ id, name, colour }) =>
			({ id, name, colour, dash: [] })),
		first: { x, y, logX: x.endsWith(LOG), log: y.endsWith(LOG) },
		plot: (el) => {
			const chart = new ScatterChart(el, { onHover() {}, onOpen() {}, onPick() {} });
			return { chart, set: (f, items) => chart.set(dataOf(f, items)),
				rows: (f, items) => rowsOn(axes, [f.x, f.y], list, items) };
		} };
};

function Options({ c }: { c: Choice }) {
	const list = axisChoices();
	const go = (patch: Partial<Choice>) => s.go({ scatter: { ...s.view.value.scatter ?? emptyScatter, ...patch } });
	const label = (id: string) => list.find((a) => a.id === id)?.label ?? id;
	const toggle = (axis: 'x' | 'y') => {
		const on = new Set(c.log.split('').filter(Boolean));
		if (!on.delete(axis)) on.add(axis);
		go({ log: [...on].sort().join('') as Choice['log'] });
	};
	return (
		<>
			<Chooser name="X axis" now={label(c.x)} list={list} choose={(x) => go({ x })} />
			<Chooser name="Y axis" now={label(c.y)} list={list} choose={(y) => go({ y })} />
			<Chooser name="Colour" now={c.colour ? label(c.colour) : "The run's own"}
				list={[{ id: '', label: "The run's own" }, ...list]} choose={(colour) => go({
					colour })} />
			{(['x', 'y'] as const).map((a) => <button key={a} type="button" aria-pressed={c.log.includes(a)}
				onClick={() => toggle(a)}>Log {a}</button>)}
			<button type="button" aria-pressed={c.front} title="Runs that no other beats in both"
				onClick={() => go({ front: !c.front })}>Pareto front</button>
		</>
	);
}

export function Scatter() {
	const box = useRef<HTMLDivElement>(null);
	const picked = useSignal<string[]>([]);
	const c = chosen();
	const chart = useRunsChart(box, (el) => new ScatterChart(el, { onHover: (id) => (s.lit.value = id),
		onOpen: s.openRun, onPick: (ids) => (picked.value = ids) }),
	(drawn) => drawn.set(pictureOf(s.rows.value, chosen())));
	useSignalEffect(() => {
		const now = chosen();
		void s.needMetrics(metricsOf([now.x, now.y, now.colour]));
	});
	const axes = useComputed(() => {
		const { x, y, colour } = chosen();
		return [x, y, ...colour ? [colour] : []].map((id) => axisOf(id, s.rows.value));
	});
	const said = useComputed(() => scatterSaid(s.rows.value, axes.value[0]!, axes.value[1]!));
	const label = `${count(s.rows.value.length, 'run')} by ${axes.value[0]!.title} and `
		+ `${axes.value[1]!.title}; arrows walk through the runs`;
	return (
		<div class="card chart scatter">
			<p class="options"><Options c={c} /> <TableOf name="Scatter" axes={() => axes.value} />
				<FigureButton name="Scatter" of={() => chart.current && figureOf(chart.current)} />
				{picked.value.length ? <Picked ids={picked.value} clear={() => (picked.value = [])} />
					: <span class="dim">Drag a rectangle to pick runs; by keyboard, press Space at
						two corners</span>}</p>
			<div class="plot" ref={box} tabIndex={0} role="group" data-scatter
				aria-label={label} aria-describedby="scatter-said" />
			<span class="unseen" aria-live="polite">{litSaid(axes.value)}</span>
			<Said id="scatter-said" said={said} />
		</div>
	);
}
