// SPDX-License-Identifier: Apache-2.0
// Pivot table of two params: mean, standard deviation and number of runs of the goal, or of another column.
import { useSignal, useSignalEffect } from '@preact/signals';
import { count, decimalsBy, fixed } from '../../base/format.ts';
import { fallenText, PLUS_MINUS } from '../../base/group.ts';
import { tellingParams } from '../../base/params.ts';
import { pivotOf, type Pivot as Found, type PivotCell } from '../../base/why/pivot.ts';
import type { TextTable } from '../../base/text/texttable.ts';
import type { Run } from '../../base/types.ts';
import { emptyPivot, type Pivot as Choice } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { Opener } from '../base/bits.tsx';
import { Chooser } from '../base/chooser.tsx';
import { CopyText } from '../base/copytext.tsx';
import { axisChoices, axisOf, metricsOf, type Axis } from './axes.ts';

const SHOW_MAX = 100;
/** Number of background shades of cells. */
const SHADES = 5;

/** The choice with defaults: the two most relevant params, the goal. */
function chosen(): Choice {
	const c = s.view.value.pivot ?? emptyPivot;
	const [first, second] = tellingParams(s.split.value, 8).filter((k) => !/seed/.test(k)).map((k) => 'p:' + k);
	const rows = c.rows || first || 'status';
	const columns = c.columns || [second, first, 'status'].find((id) => id !== undefined && id !== rows) || rows;
	return { rows, columns, value: c.value || (s.goal.value ? 'm:best:' + s.goal.value.key : 'time') };
}

interface Table {
	found: Found;
	rows: Axis;
	columns: Axis;
	value: Axis;
	/** Decimals of the cells, and the best mean; null if no direction is better. */
	decimals: ReturnType<typeof decimalsBy>;
	best: number | null;
	worst: number | null;
}

function tableOf(c: Choice): Table {
	const list = s.rows.value;
	const [rows, columns, value] = [axisOf(c.rows, list), axisOf(c.columns, list), axisOf(c.value, list)];
	const word = (a: Axis) => (r: Run) => {
		const v = a.value(r);
		return v === null ? undefined : typeof v === 'number' ? a.format(v) : v;
	};
	const number = (r: Run) => {
		const v = value.value(r);
		return typeof v === 'number' ? v : null;
	};
	const found = pivotOf(list, { row: word(rows), column: word(columns), value: number });
	const means = found.cells.flat().flatMap((o) => (o && o.n > 0 ? [o.mean] : []));
	const ends = means.length && value.dir ? [Math.min(...means), Math.max(...means)] : null;
	return { found, rows, columns, value, decimals: decimalsBy(means),
		best: ends && ends[value.dir === 'max' ? 1 : 0]!, worst: ends && ends[value.dir === 'max' ? 0 : 1]! };
}

function textOf(t: Table, c: PivotCell): string {
	const d = t.decimals(c.mean);
	const write = (v: number) => (t.value.id === 'time' ? t.value.format(v) : fixed(v, d));
	return c.n === 0 ? 'no value' : write(c.mean) + (Number.isNaN(c.std) ? '' : ` ± ${write(c.std)}`);
}

/** Shade of a mean by its order among all; 0: unknown. */
function shadeOf(t: Table, c: PivotCell): number {
	if (t.best === null || t.worst === null || t.best === t.worst || c.n === 0) return 0;
	return Math.round(((c.mean - t.worst) / (t.best - t.worst)) * SHADES);
}

function Cell({ t, c, of }: { t: Table; c: PivotCell | null; of: string }) {
	if (!c) return <td class="num none" title={`${of}: no run`}>·</td>;
	const lacking = c.runs.length - c.left - c.n;
	const all = count(c.runs.length, 'run') + (lacking && c.n ? `, ${lacking} without a value` : '');
	return (
		<td class={`num shade${shadeOf(t, c)}` + (c.n && c.mean === t.best ? ' best' : '')}>
			<button type="button" class="quiet"
				title={`${of}: ${all}; shows them alone in the charts. ${PLUS_MINUS}`}
				onClick={() => s.setShown(new Set(c.runs.slice(0, SHOW_MAX).map((r) => r.id)))}>
				{textOf(t, c)} <span class="dim">{c.left
					? `mean of ${c.n}${fallenText(c.runs)}` : `n ${c.n}`}</span></button>
		</td>
	);
}

function Grid({ t }: { t: Table }) {
	const { rows, columns, cells } = t.found;
	const [rowTitle, columnTitle] = [t.rows.title, t.columns.title];
	return (
		<div class="scroll" tabIndex={0} role="region" aria-label={`${rowTitle} by ${columnTitle}`}>
			<table>
				<caption class="unseen">{t.value.title} by {rowTitle} and {columnTitle}
					: mean, standard deviation, number of runs</caption>
				<thead><tr><th scope="col">{rowTitle} ╲ {columnTitle}</th>{columns.map((k) => (
					<th key={k} scope="col" class="num">{k}</th>))}</tr></thead>
				<tbody>{rows.map((row, i) => (
					<tr key={row}><th scope="row">{row}</th>{columns.map((k, j) => (
						<Cell key={k} t={t} c={cells[i]![j]!}
							of={`${rowTitle} ${row}, ${columnTitle} ${k}`} />))}
					</tr>))}</tbody>
			</table>
		</div>
	);
}

function textTable(t: Table): TextTable {
	const { rows, columns, cells } = t.found;
	return {
		head: [`${t.rows.title} / ${t.columns.title}`, ...columns],
		numbers: [false, ...columns.map(() => true)],
		rows: rows.map((row, i) => [{ text: row, best: false }, ...cells[i]!.map((c) => (
			{ text: c ? textOf(t, c) : '', best: c !== null && c.n > 0 && c.mean === t.best }))]),
	};
}

export function Pivot() {
	const copying = useSignal(false);
	const c = chosen();
	useSignalEffect(() => {
		const now = chosen();
		void s.needMetrics(metricsOf([now.rows, now.columns, now.value]));
	});
	const list = axisChoices();
	const label = (id: string) => list.find((a) => a.id === id)?.label ?? id;
	const go = (patch: Partial<Choice>) => s.go({ pivot: { ...s.view.value.pivot ?? emptyPivot, ...patch } });
	const t = tableOf(c);
	return (
		<div class="card pivot">
			<p class="options">
				<Chooser name="Rows" now={label(c.rows)} list={list} choose={(rows) => go({ rows })} />
				<Chooser name="Columns" now={label(c.columns)} list={list}
					choose={(columns) => go({ columns })} />
				<Chooser name="Cells" now={label(c.value)} list={list}
					choose={(value) => go({ value })} />
				<Opener word="Copy" open={copying} panel={(close) => <CopyText
					label="Copy the pivot" table={() => textTable(t)} close={close} />} />
				{t.found.left > 0 && <span class="dim">{count(t.found.left,
					'more value')} found no place</span>}
			</p>
			<Grid t={t} />
		</div>
	);
}
