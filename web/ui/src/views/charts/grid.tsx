// The charts below the table: the training curve and the goal first, then every other metric in groups by prefix.
// A group draws a few charts at once; charts off the screen neither draw nor ask for data.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import * as s from '../../state/index.ts';
import { natural } from '../../base/format.ts';
import type { Run } from '../../base/types.ts';
import { AT_ONCE, chartOrder, frontKeys, openAtFirst, type ChartGroup } from '../../base/order.ts';
import { GroupHead, Key } from '../base/bits.tsx';
import { ChartCard } from './card.tsx';

/** Values of a param that the legend names. */
const LEGEND_MAX = 6;

const open = signal<Record<string, number>>({});
const find = signal('');
/** A dash that is every hue's. */
const DIM = { light: 'var(--dim)', dark: 'var(--dim)' };

/** Values of a param with the first run of each. */
function values(key: string | null): [string, Run][] {
	const seen = new Map<string, Run>();
	if (key !== null) for (const r of [...s.drawn.value].reverse()) seen.set(r.params[key] ?? '–', r);
	return [...seen].sort((a, b) => natural(a[0], b[0])).slice(0, LEGEND_MAX);
}

/** What colours and dashes mean, with the first run's look of each value. */
function Legend() {
	const { hueParam, dashParam, byRun } = s.looks.value;
	return (
		<span class="looks wide">
			{hueParam && <b>{hueParam.replace(/_/g, ' ')}</b>}
			{values(hueParam).map(([v, r]) => (
				<span key={v} title={`${hueParam} ${v}`}>
					<Key look={{ ...byRun.get(r.id)!, dash: [] }} on />{v}</span>
			))}
			{dashParam && <b>{dashParam.replace(/_/g, ' ')}</b>}
			{values(dashParam).map(([v, r]) => (
				<span key={v} title={`${dashParam} ${v}`}>
					<Key look={{ ...DIM, dash: byRun.get(r.id)?.dash ?? [] }} on />{v}</span>
			))}
		</span>
	);
}

export function Toolbar() {
	const v = s.view.value;
	const hasEpoch = s.runs.value.some((r) => s.stepsPerEpoch(r) !== null);
	const axis = (x: 'step' | 'epoch' | 'time', off = false) => (
		<button type="button" aria-pressed={v.x === x} disabled={off}
			title={off ? 'needs the param steps_per_epoch' : undefined}
			onClick={() => s.go({ x, zoom: null })}>{x}</button>
	);
	return (
		<div class="toolbar" role="toolbar" aria-label="Charts">
			<span class="segmented" role="group"
				aria-label="x axis">{axis('step')}{axis('epoch', !hasEpoch)}{axis('time')}</span>
			<button type="button" aria-pressed={v.log} onClick={() => s.go({ log: !v.log })}>log y</button>
			<button type="button" aria-pressed={v.full} title="let runs that fell out stretch the axis too"
				onClick={() => s.go({ full: !v.full })}>full range</button>
			<label class="smooth">smoothing
				<input type="range" min="0" max="0.99" step="0.01" value={v.smooth}
					onInput={(e) => s.go({ smooth: Number(e.currentTarget.value) })} />
				<output>{v.smooth || 'off'}</output>
			</label>
			{v.zoom && <button type="button" onClick={s.resetZoom}>reset zoom</button>}
			<span class="grow" />
			<Legend />
			<input class="find" type="search" placeholder="find a chart" aria-label="Find a chart"
				value={find.value}
				onInput={(e) => (find.value = e.currentTarget.value)} />
		</div>
	);
}

function Group({ group }: { group: ChartGroup }) {
	const { name, keys } = group;
	const n = open.value[name] ?? (find.value ? AT_ONCE : openAtFirst(group));
	const show = (count: number) => (open.value = { ...open.value, [name]: count });
	return (
		<section class="group" aria-label={name}>
			<GroupHead open={n > 0} name={name} count={keys.length}
				toggle={() => show(n > 0 ? 0 : Math.min(AT_ONCE, keys.length))} />
			{n > 0 && <div class="charts">
				{keys.slice(0, n).map((k) => <ChartCard key={k} metric={k} />)}</div>}
			{n > 0 && n < keys.length && (
				<button type="button" onClick={() => show(n + AT_ONCE)}>
					{Math.min(AT_ONCE, keys.length - n)} more of {keys.length - n}
				</button>
			)}
		</section>
	);
}

/** after: what stands between the charts in front and the groups. */
export function ChartGrid({ keys, after }: { keys: readonly string[]; after?: ComponentChildren }) {
	const words = find.value;
	const g = s.goal.value;
	const { first, groups } = chartOrder(keys, frontKeys(s.curve.value, g?.key), words);
	return (
		<>
			<div class={'charts first n' + first.length}>
				{first.map((k) => <ChartCard key={k} metric={k}
					note={k === g?.key ? `goal: ${g.dir}` : undefined} />)}
			</div>
			{!words && after}
			{groups.map((c) => <Group key={c.name} group={c} />)}
			{words && !groups.length && <p class="nothing">no metric holds “{words}”</p>}
		</>
	);
}
