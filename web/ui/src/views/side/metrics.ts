// SPDX-License-Identifier: Apache-2.0
// Metrics of runs side by side: best and last value, and the difference to the first run.
import { decimalsBy, fixed, natural, signed } from '../../base/format.ts';
import { bestOf, type Direction, type Goal } from '../../base/goal.ts';
import type { SideRow } from '../../base/side.ts';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';

export interface MetricRow extends SideRow {
	/** Displayed texts; cells have full precision. */
	texts: string[];
	/** Difference to the first run, or ''. */
	deltas: string[];
	/** Which are the best. */
	best: ReadonlySet<number>;
}

/** dir: which values are the best; null: none is. */
function row(name: string, values: readonly (number | null | undefined)[], dir: Direction | null): MetricRow {
	const there = values.map((v) => v ?? NaN);
	const d = decimalsBy(there);
	const finite = there.filter(Number.isFinite);
	const top = dir === 'max' ? Math.max(...finite) : Math.min(...finite);
	const first = there[0]!;
	const deltas = there.map((v, i) => (i && v !== first && Number.isFinite(v) && Number.isFinite(first)
		? signed(v - first, d) : ''));
	const apart = dir !== null && new Set(finite).size > 1;
	return {
		name, differs: new Set(values.map((v) => (v == null ? '' : String(v)))).size > 1,
		cells: values.map((v) => (v == null ? undefined : String(v))), texts: there.map((v) => fixed(v, d)),
			deltas,
		best: new Set(apart ? there.flatMap((v, i) => (v === top ? [i] : [])) : []),
	};
}

/** The goal first, then metrics whose better direction is known, then by name; rows for the best and the last value, or
 * one if both are equal. Of the others the last value. */
export function metricRows(runs: readonly Run[], goal: Goal | null): MetricRow[] {
	const keys = [...new Set(runs.flatMap((r) => Object.keys(r.metrics)))]
		.sort((a, b) => Number(b === goal?.key) - Number(a === goal?.key)
			|| Number(s.dirOf(b) !== null) - Number(s.dirOf(a) !== null) || natural(a, b));
	return keys.flatMap((k) => {
		const dir = s.dirOf(k);
		const last = row(`${k} last`, runs.map((r) => r.metrics[k]?.last), dir);
		if (!dir) return [last];
		const best = row(`${k} ${dir}`, runs.map((r) => bestOf(r.metrics[k], dir)), dir);
		return best.cells.join() === last.cells.join() ? [{ ...last, name: k }] : [best, last];
	});
}
