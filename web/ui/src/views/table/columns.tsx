// SPDX-License-Identifier: Apache-2.0
// Columns of the comparison table: available, default, and their cells.
import { computed } from '@preact/signals';
import type { Run } from '../../base/types.ts';
import { duration, when } from '../../base/format.ts';
import { isLoss } from '../../base/goal.ts';
import { tellingParams } from '../../base/params.ts';
import { DERIVED, metricsOfColumn, runTime } from '../../base/rank.ts';
import * as s from '../../state/index.ts';
import { Says } from '../base/jump.tsx';
import { PhaseBar, phasesOf, shares } from '../base/phases.tsx';
import { firstWords, statements, withReason } from '../base/says.ts';
import { keepLeft, sample, widthOf, type Column } from './column.ts';
import { reading } from './readout.ts';
import { DEEPEST, INDENT, nesting } from './rows.ts';
import { deltaColumn, derivedColumn, experimentColumn, paramColumn, tagColumn, valueColumn } from './values.tsx';

const NAME_MAX = 190;
const STATUS_MAX = 280;
const STATUS_WANTED = 420;
/** Most room of a name, however long, and room of what precedes and follows it. */
const NAME_WANTED = 278;
const LEAD = 76;
const ONROW = 48;

function cursorColumn(): Column {
	return {
		id: 'cursor', title: 'At cursor', hint: 'Value at the cursor of a chart', number: true,
		sortable: false, width: 74, cell: reading, full: reading,
	};
}

function statusColumn(): Column {
	const wanted = widthOf('Status',
		sample(s.rows.value, (r) => statements(r).map((t) => t.text + 'xxxx').join('')), STATUS_WANTED);
	return {
		id: 'status', title: 'Status', hint: 'How the run ended, and what to look at', number: false,
		sortable: true,
		width: Math.min(STATUS_MAX, wanted), wanted,
		cell: (r) => <Says r={r} list={statements(r)} tab={-1} />,
		full: (r) => statements(r).map((t) => withReason(r, t)).join('; '),
	};
}

function notesColumn(): Column {
	return {
		id: 'notes', title: 'Notes', hint: "First words; the whole note on the run's page", number: false,
		sortable: true,
		width: 100, cell: (r) => firstWords(r.notes), full: (r) => r.notes,
	};
}

function timeColumn(id: 'time' | 'start'): Column {
	const text = (r: Run) => {
		const t = runTime(r);
		return id === 'start' ? when(r.start_time) : t === undefined ? '' : duration(t);
	};
	return {
		id, title: id === 'time' ? 'Duration' : 'Started', hint: id, number: true, sortable: true,
		width: id === 'time' ? 74 : 128, cell: text, full: text,
	};
}

function phaseColumn(): Column {
	return {
		id: 'phase', title: 'Phases', hint: 'Share of each phase in the time of a step', number: false,
		sortable: false, width: 88, cell: (r) => <PhaseBar run={r} />,
		full: (r) => shares(phasesOf(r) ?? []),
	};
}

function nameColumn(): Column {
	let indent = s.haveParents.value ? 14 : 0;
	for (const n of nesting.value?.values() ?? [])
		indent = Math.max(indent, INDENT + Math.min(n.depth, DEEPEST) * INDENT + 7);
	const wanted = LEAD + indent + widthOf('Run', sample(s.rows.value, (r) => r.name
		+ 'xxx'.repeat(statements(r).filter((t) => t.alert).length + (r.notes ? 1 : 0))), NAME_WANTED);
	return {
		id: 'name', title: 'Run', hint: 'Name; Enter opens the run', number: false, sortable: true,
		width: Math.min(LEAD + indent + NAME_MAX, wanted) + ONROW, wanted: wanted + ONROW,
		cell: (r) => s.nameOf(r.id, r), full: (r) => r.name,
	};
}

function make(id: string): Column | null {
	if (id.startsWith('p:')) return paramColumn(id.slice(2));
	if (id.startsWith('t:')) return tagColumn(id.slice(2));
	if (id.startsWith('m:')) return valueColumn(id);
	if (id.startsWith(DERIVED)) return derivedColumn(id);
	switch (id) {
	case 'name': return nameColumn();
	case 'delta': return deltaColumn();
	case 'cursor': return cursorColumn();
	case 'status': return statusColumn();
	case 'notes': return notesColumn();
	case 'experiment': return experimentColumn();
	case 'time': case 'start': return timeColumn(id);
	case 'phase': return phaseColumn();
	default: return null;
	}
}

/** Default column ids: of several experiments theirs, the goal, how the run ended, differing params, losses, time. */
const defaultColumns = computed<string[]>(() => {
	const keys = new Set(s.metricKeys.value);
	const g = s.goal.value;
	const ids = s.view.value.also.length ? ['experiment'] : [];
	if (g?.dir) ids.push('m:best:' + g.key);
	if (g) ids.push('delta');
	ids.push('status', ...tellingParams(s.knownSplit.value, 8).map((k) => 'p:' + k));
	if (g) ids.push('m:last:' + g.key);
	ids.push(...measured(keys, g?.key));
	if (s.rows.value.some((r) => phasesOf(r))) ids.push('phase');
	if (s.rows.value.some((r) => r.notes)) ids.push('notes');
	return [...new Set(ids)];
});

let keptColumns: { of: string; ids: string[] } = { of: '', ids: [] };

/** Further metrics as default columns, fixed at page load: a live run's first evaluation adds none. */
function measured(keys: ReadonlySet<string>, goal: string | undefined): string[] {
	const of = `${s.shownExperiments.value.join()}\n${goal}`;
	if (keptColumns.of === of || !keys.size) return keptColumns.of === of ? keptColumns.ids : [];
	keptColumns = { of, ids: extraOf(keys, goal) };
	return keptColumns.ids;
}

function extraOf(keys: ReadonlySet<string>, goal: string | undefined): string[] {
	const extra = [...keys]
		.filter((k) => k !== goal && /^(epoch|val|eval|test)\//.test(k) && /loss|perplexity/.test(k)
		&& !/train/.test(k)).slice(0, 1).map((k) => 'm:best:' + k);
	if (!extra.length && s.curve.value && isLoss(s.curve.value)) extra.push('m:last:' + s.curve.value);
	if (keys.has('epoch/samples_per_s')) extra.push('m:last:epoch/samples_per_s');
	if (keys.has('epoch/seconds')) extra.push('m:last:epoch/seconds');
	else extra.push('time');
	return extra;
}

export const columns = computed<Column[]>(() => {
	const { widths, fixed } = s.view.value;
	const chosen = s.view.value.columns ?? defaultColumns.value;
	const ids = ['name', ...chosen.filter((id) => fixed.includes(id)),
		...chosen.filter((id) => !fixed.includes(id))];
	const own = (c: Column): Column => (widths[c.id]
		? { ...c, width: widths[c.id]!, wanted: undefined, sized: true } : c);
	return keepLeft(ids.map(make).filter((c): c is Column => c !== null).map(own), fixed);
});

/** Metrics whose numbers the table shows, is sorted by, or compares. */
export const shownMetrics = computed<string[]>(() => {
	const ids = [...s.view.value.columns ?? defaultColumns.value, s.view.value.sort ?? '', s.view.value.then ?? ''];
	const keys = ids.flatMap(metricsOfColumn);
	return [...new Set(s.goal.value ? [s.goal.value.key, ...keys] : keys)];
});

/** Columns that every experiment has. */
const FIXED = [
	{ id: 'status', label: 'Status' }, { id: 'delta', label: 'Difference' },
	{ id: 'cursor', label: 'At cursor' }, { id: 'time', label: 'Duration' },
	{ id: 'start', label: 'Started' }, { id: 'phase', label: 'Phases' }, { id: 'notes', label: 'Notes' },
	{ id: 'experiment', label: 'Experiment' },
];

/** All available columns, in groups. */
export const pickable = computed<{ id: string; label: string }[]>(() => [
	...(s.view.value.columns ?? []).filter((id) => id.startsWith(DERIVED))
		.map((id) => ({ id, label: '= ' + id.slice(DERIVED.length) })),
	...s.paramKeys.value.map((k) => ({ id: 'p:' + k, label: k })),
	...FIXED,
	...s.tagKeys.value.map((k) => ({ id: 't:' + k, label: `Tag ${k}` })),
	...s.metricKeys.value.flatMap((k) => (['best', 'last', 'min', 'max', 'first'] as const)
		.map((w) => ({ id: `m:${w}:${k}`, label: `${k} ${w}` }))),
]);
