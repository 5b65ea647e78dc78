// SPDX-License-Identifier: Apache-2.0
// Exports the table as CSV in displayed order, in full precision. Loaded on demand.
import { cell, DERIVED, metricColumn } from '../../base/rank.ts';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { saveCsv } from '../base/save.ts';
import { columns } from './columns.tsx';
import { visibleRows } from './rows.ts';

/** Names as in the server's exports. */
function nameOf(id: string): string {
	const m = metricColumn(id);
	if (m) return `metrics.${m.key}.${m.what === 'best' ? s.dirOf(m.key) ?? 'last' : m.what}`;
	if (id.startsWith('p:')) return 'params.' + id.slice(2);
	if (id.startsWith('t:')) return 'tags.' + id.slice(2);
	if (id.startsWith(DERIVED)) return id.slice(DERIVED.length);
	return { name: 'run_name', start: 'start_time', time: 'duration_ms' }[id] ?? id;
}

export function saveTable(title: string, list: readonly Run[] = visibleRows.value): void {
	const cols = columns.value.filter((c) => c.id !== 'cursor');
	const full = new Set(['status', 'notes', 'delta', 'phase']);
	saveCsv([['run_id', ...cols.map((c) => nameOf(c.id))],
		...list.map((r) => [r.id, ...cols.map((c) => (full.has(c.id) ? c.full(r) : cell(r, c.id, s.dirOf)))])],
	title);
}
