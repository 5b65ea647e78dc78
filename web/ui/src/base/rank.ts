// SPDX-License-Identifier: Apache-2.0
// Order of the rows: by the goal or any column; excluded runs last, missing values last.
import { formulaOf } from './formula.ts';
import { bestOf, directionOf, fellOut, type Direction, type Goal } from './goal.ts';
import { natural } from './format.ts';
import type { Metric, Run } from './types.ts';

/** Sort value of a cell; undefined is missing. */
type Cell = string | number | undefined;

/** Prefix of column ids of formulas. */
export const DERIVED = 'f:';

/** Ids: name, status, start, time, notes, experiment, p:PARAM, t:TAG, f:FORMULA, m:best|last|min|max|first:KEY. */
interface MetricColumn {
	what: 'best' | 'last' | 'min' | 'max' | 'first';
	key: string;
}

export function metricColumn(id: string): MetricColumn | null {
	const m = /^m:(best|last|min|max|first):(.+)$/.exec(id);
	return m ? { what: m[1] as MetricColumn['what'], key: m[2]! } : null;
}

export function metricValue(m: Metric | undefined, what: MetricColumn['what'],
	dir: Direction | null): number | undefined {
	if (!m) return undefined;
	const v = what === 'best' ? bestOf(m, dir) : m[what];
	return v ?? undefined;
}

/** Metrics that a column reads. */
export function metricsOfColumn(id: string): string[] {
	const m = metricColumn(id);
	if (m) return [m.key];
	const f = id.startsWith(DERIVED) ? formulaOf(id.slice(DERIVED.length)) : '';
	return typeof f === 'string' ? [] : f.names.filter((n) => n.what !== null).map((n) => n.key);
}

/** Value of a formula for a run; undefined if it is invalid or a name is missing. */
function derived(r: Run, text: string): number | undefined {
	const f = formulaOf(text);
	if (typeof f === 'string') return undefined;
	let whole = true;
	const v = f.value(({ key, what }) => {
		const own = what === null ? r.params[key] : r.metrics[key]?.[what];
		whole &&= own !== undefined && own !== null && own !== '';
		return whole ? Number(own) : NaN;
	});
	return whole ? v : undefined;
}

export function runTime(r: Run, now = Date.now()): number | undefined {
	if (r.start_time === null) return undefined;
	const end = r.end_time ?? (r.status === 'running' ? now : null);
	return end === null ? undefined : end - r.start_time;
}

/** A column's value of a run: a number if possible; undefined if missing. */
export function cell(r: Run, id: string, dirOf: (key: string) => Direction | null): Cell {
	const m = metricColumn(id);
	if (m) return metricValue(r.metrics[m.key], m.what, dirOf(m.key));
	if (id.startsWith('p:')) return r.params[id.slice(2)];
	if (id.startsWith('t:')) return r.tags[id.slice(2)];
	if (id.startsWith(DERIVED)) return derived(r, id.slice(DERIVED.length));
	switch (id) {
	case 'status': return r.status;
	case 'start': return r.start_time ?? undefined;
	case 'time': return runTime(r);
	case 'notes': return r.notes || undefined;
	case 'experiment': return r.experiment;
	default: return r.name;
	}
}

function missing(v: Cell): boolean {
	return v === undefined || v === '' || (typeof v === 'number' && !Number.isFinite(v));
}

/** Missing values last. */
export function compareCells(a: Cell, b: Cell, desc: boolean): number {
	if (missing(a) || missing(b)) return Number(missing(a)) - Number(missing(b));
	const d = typeof a === 'number' && typeof b === 'number' ? a - b : natural(String(a), String(b));
	return desc ? -d : d;
}

const byMetric = (sort: string | null): boolean => sort === null || metricsOfColumn(sort).length > 0;

interface Then {
	id: string;
	desc: boolean;
}

/** Sorts by the goal (best first, or by age if it is unknown which value is best) if sort is null, else by the column;
 * then by a second one, by age, by id. */
export function orderRuns(list: readonly Run[], goal: Goal | null, sort: string | null, desc: boolean,
	then: Then | null = null, said?: ReadonlyMap<string, Direction>): Run[] {
	const dirOf = (key: string) => (goal?.key === key ? goal.dir : directionOf(key, said));
	const id = sort ?? (goal?.dir ? 'm:best:' + goal.key : 'start');
	const down = sort === null ? goal?.dir !== 'min' : desc;
	const keyed = list.map((r) => ({ r, v: cell(r, id, dirOf), w: then ? cell(r, then.id, dirOf) : undefined,
		out: byMetric(sort) && fellOut(r) ? 1 : 0 }));
	keyed.sort((a, b) => a.out - b.out || compareCells(a.v, b.v, down) || compareCells(a.w, b.w, !!then?.desc)
		|| (b.r.start_time ?? 0) - (a.r.start_time ?? 0) || (a.r.id < b.r.id ? -1 : 1));
	return keyed.map((k) => k.r);
}

/** Index of the first excluded run; the number of rows without any. */
export function partition(list: readonly Run[], sort: string | null): number {
	if (!byMetric(sort)) return list.length;
	const i = list.findIndex(fellOut);
	return i < 0 ? list.length : i;
}
