// SPDX-License-Identifier: Apache-2.0
// Charts below the table: those at the top (the training curve and the goal unless chosen), then groups by prefix. A
// group draws a few charts at first; charts off the screen neither draw nor request data.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import * as s from '../../state/index.ts';
import { AT_ONCE, chartOrder, frontKeys, openAtFirst, type ChartGroup } from '../../base/order.ts';
import { GroupHead } from '../base/bits.tsx';
import { afterFrame } from '../base/frame.ts';
import { lazy } from '../base/lazy.tsx';
import { ChartCard } from './card.tsx';

const Panels = lazy(() => import('./panels.tsx').then((m) => m.Panels));
const Grouping = lazy(() => import('./grouping.tsx').then((m) => m.Grouping));
const Legend = lazy(() => import('./legend.tsx').then((m) => m.Legend));
/** The first frame of the page is drawn. */
const begun = signal(false);

/** Delays content that the table and the first charts do not wait for. */
function Deferred({ of }: { of: () => ComponentChildren }) {
	useEffect(() => afterFrame(() => (begun.value = true)), []);
	return <>{begun.value && of()}</>;
}

/** Words and tooltips of the x axis. */
const AXES: Record<'step' | 'epoch' | 'time' | 'clock', [string, string?]> = { step: ['Step'], epoch: ['Epoch'],
	time: ['Time', 'Since the start of each run'], clock: ['Clock', 'Date and time of day'] };

export function Toolbar() {
	const v = s.view.value;
	const hasEpoch = s.runs.value.some((r) => s.stepsPerEpoch(r) !== null);
	const axis = (x: keyof typeof AXES, off = false) => (
		<button type="button" aria-pressed={v.x === x} disabled={off}
			title={off ? 'Needs the param steps_per_epoch' : AXES[x][1]}
			onClick={() => s.go({ x, zoom: null, epochZoom: null, ...x === 'clock' && { logX: false } })}>
			{AXES[x][0]}</button>
	);
	return (
		<div class="toolbar" role="toolbar" aria-label="Charts">
			<span class="segmented" role="group" aria-label="X axis">
				{axis('step')}
				{(hasEpoch || v.x === 'epoch') && axis('epoch', !hasEpoch)}
				{axis('time')}{axis('clock')}</span>
			{v.x !== 'clock' && <button type="button" aria-pressed={v.logX}
				title="X by factors: what is early takes more room"
				onClick={() => s.go({ logX: !v.logX })}>Log x</button>}
			<button type="button" aria-pressed={v.log} onClick={() => s.go({ log: !v.log })}>Log y</button>
			<button type="button" aria-pressed={v.full}
				title="Stretch the axis to spikes and runs that fell out"
				onClick={() => s.go({ full: !v.full })}>Full range</button>
			<label class="smooth">Smooth
				<input type="range" min="0" max="0.99" step="0.01" value={v.smooth}
					onInput={(e) => s.go({ smooth: Number(e.currentTarget.value) })} />
				<output>{v.smooth || 'off'}</output>
			</label>
			{(v.zoom || v.epochZoom) && <button type="button" onClick={s.resetZoom}>Reset zoom</button>}
			{v.page === 'compare' && s.split.value.differ.length > 0 && <Grouping />}
			<span class="grow" />
			{!s.isGrouped.value && <Deferred of={() => <Legend />} />}
			<input class="find" type="search" placeholder="Find a chart" aria-label="Find a chart"
				value={v.find} title="Every word must occur in the metric's name"
				onInput={(e) => s.go({ find: e.currentTarget.value })} />
		</div>
	);
}

/** Columns that charts take next to each other; a whole row without any. */
function wide(keys: readonly string[]) {
	return { '--n': keys.reduce((n, k) => n + s.sizeOf(k)[0], 0) || 99 };
}

function Group({ group }: { group: ChartGroup }) {
	const { name, keys } = group;
	const { groups, find } = s.view.value;
	const n = find ? groups[name] || AT_ONCE : groups[name] ?? openAtFirst(group);
	const shown = keys.slice(0, n);
	const show = (count: number) => s.go({ groups: { ...groups, [name]: count } });
	return (
		<section class="group" aria-label={name} style={wide(shown)}>
			<GroupHead open={n > 0} name={name} count={keys.length}
				toggle={() => show(n > 0 ? 0 : Math.min(AT_ONCE, keys.length))} />
			{n > 0 && <div class="charts">{shown.map((k) => <ChartCard key={k} metric={k} />)}</div>}
			{n > 0 && n < keys.length && (
				<button type="button" onClick={() => show(n + AT_ONCE)}>
					{keys.length - n > AT_ONCE ? `Show ${AT_ONCE} more of ${keys.length - n}`
						: `Show ${keys.length - n} more`}
				</button>
			)}
		</section>
	);
}

interface GridOptions {
	keys: readonly string[];
	/** Content below the groups. */
	after?: ComponentChildren;
	/** The first charts alone. */
	only?: boolean;
}

/** Groups that appear later are added at the end. */
export function ChartGrid({ keys, after, only }: GridOptions) {
	const words = only ? '' : s.view.value.find;
	const g = s.goal.value;
	const { first, groups } = chartOrder(keys, frontKeys(s.curve.value, g?.key), s.view.value, words);
	const order = useRef<string[]>([]);
	order.current = [...order.current, ...groups.map((c) => c.name).filter((n) => !order.current.includes(n))];
	groups.sort((a, b) => order.current.indexOf(a.name) - order.current.indexOf(b.name));
	return (
		<>
			<div class="charts first" style={wide(first)}>
				{first.map((k) => <ChartCard key={k} metric={k}
					note={k !== g?.key ? undefined : g.dir ? `goal: ${g.dir}` : 'goal'} />)}
			</div>
			{!words && !only && <Panels />}
			<div class="sections">
				<Deferred of={() => groups.map((c) => <Group key={c.name} group={c} />)} /></div>
			{words && !groups.length && <p class="nothing">No metric contains “{words}”.</p>}
			{!words && after}
		</>
	);
}
