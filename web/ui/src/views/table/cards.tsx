// SPDX-License-Identifier: Apache-2.0
// Runs as cards, for narrow screens: name, goal, differing params, sparkline, status.
import { useEffect } from 'preact/hooks';
import { computed, signal } from '@preact/signals';
import { fitRange } from '../../charts/line/index.ts';
import { sparkPath } from '../../charts/spark.ts';
import type { Run } from '../../base/types.ts';
import { count, cut, decimalsBy, fixed, paramText, signed, type Decimals } from '../../base/format.ts';
import { bestOf, fellOut, inPoints } from '../../base/goal.ts';
import { tellingParams } from '../../base/params.ts';
import * as s from '../../state/index.ts';
import { Key, Name } from '../base/bits.tsx';
import { Says } from '../base/jump.tsx';
import { statements } from '../base/says.ts';
import { colourOf } from '../base/theme.ts';
import { linesOf } from '../charts/lines.ts';
import type { Column } from './column.ts';
import { columns } from './columns.tsx';
import { Pick } from './row.tsx';
import { visibleRows } from './rows.ts';
import '../base/later.ts';

const W = 92;
const H = 34;
const FIRST = 100;
/** Initial number of cards above the charts. */
const FEW = 6;
const FEW_FROM = 12;
/** Sufficient for the chart of a narrow screen too, which shares the series. */
const SPARK_BUCKETS = 320;

/** Common axes of all sparklines, as in their chart: a run that ended early is shorter. */
const sparkRange = computed(() => {
	void s.seriesRev.value;
	const g = s.goal.value;
	const { lo, hi } = fitRange(g ? linesOf(g.key, s.shown.value) : [],
		{ from: -Infinity, to: Infinity, log: false, full: false });
	const ends = g ? s.shown.value.flatMap((r) => s.seriesFor(r.id, g.key)?.xs ?? []) : [];
	return { lo, hi, from: ends.reduce((a, x) => Math.min(a, x), Infinity),
		to: ends.reduce((a, x) => Math.max(a, x), -Infinity) };
});

function Spark({ r }: { r: Run }) {
	void s.seriesRev.value;
	const g = s.goal.value;
	const t = g ? s.seriesFor(r.id, g.key) : null;
	if (!t?.xs.length) return <svg class="spark" width={W} height={H} aria-hidden="true" />;
	return (
		<svg class="spark" width={W} height={H} viewBox={`-2 -2 ${W + 4} ${H + 4}`} aria-hidden="true">
			<path d={sparkPath(t.xs, t.ys, sparkRange.value, W, H)}
				stroke={colourOf(s.looks.value.byRun.get(r.id))}
				stroke-dasharray={(s.looks.value.byRun.get(r.id)?.dash ?? []).join(' ')} />
		</svg>
	);
}

/** The baseline run. */
const measure = () => s.baseline.value ?? s.best.value;

/** Formatting of the goal: decimals, and unit of the difference to a run. */
interface Scale {
	value(r: Run): number | null;
	decimals: Decimals;
	points: boolean;
	/** Value of the baseline run. */
	base: number | null;
}

function scaleOf(list: readonly Run[]): Scale {
	const g = s.goal.value;
	const value = (r: Run) => (g ? bestOf(r.metrics[g.key], g.dir) : null);
	const values = list.map((r) => value(r) ?? NaN);
	return {
		value, decimals: decimalsBy(values), points: g !== null && inPoints(g.key, values),
		base: measure() ? value(measure()!) : null,
	};
}

function Value({ r, scale }: { r: Run; scale: Scale }) {
	const v = scale.value(r);
	const text = fixed(v, scale.decimals);
	const isBase = measure()?.id === r.id;
	const delta = v === null || scale.base === null || isBase ? null : (v - scale.base) * (scale.points ? 100 : 1);
	return (
		<span class="value">
			{s.best.value?.id === r.id ? <b class="best">{text}</b> : text}
			{isBase && s.baseline.value && <small>baseline</small>}
			{delta !== null && <small>{signed(delta, scale.points ? 1 : scale.decimals)}</small>}
		</span>
	);
}

/** Further values of a card: the most relevant params, or the chosen columns. */
function What({ r, params }: { r: Run; params: readonly string[] }) {
	const own = (c: Column) => c.id !== 'name' && c.id !== 'delta' && c.full(r) !== '';
	return (
		<span class="what">{s.view.value.columns ? columns.value.filter(own).map((c) => (
			<span key={c.id}>{cut(c.title)} <b>{c.cell(r)}</b></span>
		)) : params.map((k) => r.params[k] === undefined ? null : (
			<span key={k}>{cut(k.replace(/_/g, ' '))} <b>{cut(paramText(r.params[k]!))}</b></span>
		))}</span>
	);
}

function Card({ r, scale, params, divide }: { r: Run; scale: Scale; params: readonly string[]; divide: boolean }) {
	const look = s.looks.value.byRun.get(r.id);
	const open = (e: MouseEvent) => {
		e.preventDefault();
		s.openRun(r.id);
	};
	return (
		<li class={'card run' + (divide ? ' divide' : '') + (fellOut(r) ? ' fallen' : '')}>
			<Pick r={r} tab={0} />
			<button type="button" class="eye" aria-pressed={s.isShown(r.id)}
				aria-label={`${r.name} in the charts`}
				onClick={() => s.toggleShown(r.id)}><Key look={look} on={s.isShown(r.id)} /></button>
			<a class="name" href={s.runAddress(r.id)} onClick={open}><Name text={s.nameOf(r.id, r)} /></a>
			<Value r={r} scale={scale} />
			<What r={r} params={params} />
			<Spark r={r} />
			<Says r={r} list={statements(r).filter((t) => t.kind !== 'finished')} />
		</li>
	);
}

/** Show all cards above the charts. */
const whole = signal(false);

export function Cards() {
	const key = s.goal.value?.key;
	useEffect(() => {
		if (key === undefined) return undefined;
		s.want(key, SPARK_BUCKETS, Cards);
		return () => s.unwant(key, Cards);
	}, [key]);
	const list = visibleRows.value;
	const scale = scaleOf(list);
	const params = tellingParams(s.split.value, 8);
	const few = !whole.value && list.length > FEW_FROM;
	const some = list.slice(0, few ? FEW : FIRST);
	const more = list.length - FIRST;
	return (
		<ol class="cards" aria-label="Runs">
			{some.map((r, i) => (
				<Card key={r.id} r={r} scale={scale} params={params}
					divide={i > 0 && i === s.fallenFrom.value} />
			))}
			{list.length > FEW_FROM && <li><button type="button" onClick={() => (whole.value = few)}>
				{few ? `All ${list.length} runs` : `The first ${FEW} runs`}</button></li>}
			{!few && more > 0 && <li class="dim">
				{count(more, 'more run')}: filter to see {more === 1 ? 'it' : 'them'}</li>}
		</ol>
	);
}
