// SPDX-License-Identifier: Apache-2.0
// Possible axes of runs: params, metrics, times; by column id, with the values of the runs.
import type { Run } from '../../base/types.ts';
import { duration, natural, paramText, short, when } from '../../base/format.ts';
import { fellOut, type Direction } from '../../base/goal.ts';
import { cell, DERIVED, metricColumn, metricsOfColumn } from '../../base/rank.ts';
import { scaleOf, type Scale, type Value } from '../../charts/scale.ts';
import * as s from '../../state/index.ts';
import type { Choice } from '../base/chooser.tsx';

export interface Axis {
	id: string;
	title: string;
	/** The best value is at its end; null if unknown. */
	dir: Direction | null;
	value(r: Run): Value;
	/** Its values are numbers. */
	numeric: boolean;
	/** Runs whose values define the axis; the others are clamped to its ends. */
	fit(r: Run): boolean;
	format(v: number): string;
}

function titleOf(id: string): string {
	const m = metricColumn(id);
	if (m) return m.what === 'best' && m.key === s.goal.value?.key ? s.shortKey(m.key)
		: `${s.shortKey(m.key)} ${m.what}`;
	if (id.startsWith(DERIVED)) return id.slice(DERIVED.length);
	if (/^[pt]:/.test(id)) return id.slice(2).replace(/_/g, ' ');
	return { time: 'Duration', start: 'Started' }[id] ?? id;
}

export function axisOf(id: string, list: readonly Run[]): Axis {
	const m = metricColumn(id);
	const raw = (r: Run) => (id.startsWith('t:') ? s.tagsOf(r)[id.slice(2)] : cell(r, id, s.dirOf));
	const isNumber = (v: unknown) => v === undefined || typeof v === 'number' || (v !== ''
		&& !Number.isNaN(Number(v)));
	const numeric = list.every((r) => isNumber(raw(r)));
	return {
		id, numeric, title: titleOf(id), dir: m ? s.dirOf(m.key) : null,
		fit: m ? (r) => !fellOut(r) : () => true,
		format: id === 'time' ? duration : id === 'start' ? when : m ? short : (v) => paramText(String(v)),
		value: (r) => {
			const v = raw(r);
			return v === undefined || v === '' ? null : numeric ? Number(v) : String(v);
		},
	};
}

export interface ScaleWish {
	/** Logarithmic; null: automatic. */
	log: boolean | null;
	quantile?: boolean;
	flip?: boolean;
	ends?: readonly [number | null, number | null];
}

export function axisScale(a: Axis, list: readonly Run[], wish: ScaleWish): Scale {
	const isThere = (v: Value) => v !== null && !(typeof v === 'number' && !Number.isFinite(v));
	return scaleOf(list.filter(a.fit).map(a.value).sort((x, y) => natural(String(x ?? ''), String(y ?? ''))),
		{ ...wish, format: a.format, missing: list.some((r) => !isThere(a.value(r))) });
}

/** All possible axes. */
export function axisChoices(): Choice[] {
	const params = [...s.split.value.differ, ...s.split.value.same.map(([k]) => k)];
	const metrics = s.metricKeys.value.flatMap((k) => (['best', 'last', 'min', 'max'] as const)
		.map((w) => ({ id: `m:${w}:${k}`, label: `${k} ${w}` })));
	const g = s.goal.value;
	return [
		...g ? [{ id: 'm:best:' + g.key, label: `Goal: ${g.key}` }] : [],
		...params.map((k) => ({ id: 'p:' + k, label: k })),
		{ id: 'time', label: 'Duration' }, { id: 'start', label: 'Started' }, { id: 'status', label: 'Status' },
		...s.tagKeys.value.map((k) => ({ id: 't:' + k, label: `Tag ${k}` })),
		...(s.view.value.columns ?? []).filter((id) => id.startsWith(DERIVED))
			.map((id) => ({ id, label: id.slice(DERIVED.length) })), ...metrics,
	];
}

/** Metrics of the axes, whose numbers must be loaded. */
export function metricsOf(ids: readonly string[]): string[] {
	return ids.flatMap(metricsOfColumn);
}
