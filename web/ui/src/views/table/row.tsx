// SPDX-License-Identifier: Apache-2.0
// Rows of the table: the header, and one per visible run.
import type { Run } from '../../base/types.ts';
import { parentOf } from '../../base/nest.ts';
import * as s from '../../state/index.ts';
import { fellOut } from '../../base/goal.ts';
import { followed, Key, Name } from '../base/bits.tsx';
import { dragEdge, dragHead, size, wasDragged } from './arrange.ts';
import { twoLines, type Column } from './column.ts';
import { active, expanded, sortBy } from './focus.ts';
import { cursorTitle } from './readout.ts';
import { DEEPEST, INDENT, isFolded, nesting, toggleFold, visibleRows } from './rows.ts';

/** Pixels of a row. */
export const ROW = 27;

function ariaSort(c: Column): 'ascending' | 'descending' | 'none' {
	const v = s.view.value;
	const g = s.goal.value;
	const id = v.sort ?? (g ? 'm:best:' + g.key : 'start');
	if (id !== c.id) return 'none';
	return (v.sort === null ? g?.dir !== 'min' : v.desc) ? 'descending' : 'ascending';
}

export function HeadCell({ c, i }: { c: Column; i: number }) {
	const order = ariaSort(c);
	const on = active.value.row === -1 && active.value.col === i;
	const reads = c.id === 'cursor';
	const title = reads ? cursorTitle.value : c.title;
	const kind = (c.number ? ' num' : '') + (c.id === 'name' ? ' first' : '') + (reads ? ' reading' : '');
	return (
		<div role="columnheader" class={'cell' + kind} aria-colindex={i + 1}
			aria-sort={c.sortable ? order : undefined}
			title={c.hint} data-cell={'-1:' + i} tabIndex={on ? 0 : -1}
			onPointerDown={(e) => dragHead(e, i)}
			onClick={() => !wasDragged() && c.sortable && sortBy(c)}>
			<span class="lines">{twoLines(title).map((l) => <span key={l}>{l}</span>)}</span>
			{order !== 'none' && (
				<span class="arrow" aria-hidden="true">{order === 'descending' ? '▾' : '▴'}</span>
			)}
			<span class="edge" aria-hidden="true" onPointerDown={(e) => dragEdge(e, c.id)}
				onClick={(e) => e.stopPropagation()} onDblClick={() => size(c.id, null)} />
		</div>
	);
}

function level(r: Run): number | undefined {
	const own = nesting.value?.get(r.id);
	return own ? own.depth + 1 : undefined;
}

/** Nesting: an indent and a fold button. */
function Fold({ r }: { r: Run }) {
	const own = nesting.value?.get(r.id);
	const folded = isFolded(r.id);
	const title = `${folded ? 'show' : 'hide'} the ${own?.below} below (+ and − on the keyboard)`;
	return !own ? null : (
		<span class="fold" style={{ paddingLeft: Math.min(own.depth, DEEPEST) * INDENT + 'px' }}>
			{own.below > 0 && <span class="eye" title={title} onClick={() => toggleFold(r.id)}>
				{folded ? '▸' : '▾'}</span>}
		</span>
	);
}

/** First cell: the run's key, which toggles it in the charts, and its name, a link. */
function NameCell({ r, shown }: { r: Run; shown: boolean }) {
	const parent = parentOf(r);
	return (
		<>
			<Fold r={r} />
			<span class="eye" title={shown ? 'shown in the charts (space)' : 'hidden in the charts (space)'}
				onClick={(e) => (e.shiftKey ? s.showTo(r.id, visibleRows.value) : s.toggleShown(r.id))}>
				<Key look={s.looks.value.byRun.get(r.id)} on={shown} /></span>
			<a href={s.runAddress(r.id)} tabIndex={-1}
				onClick={followed(() => s.openRun(r.id))}><Name text={s.nameOf(r.id, r)} /></a>
			{!nesting.value && parent !== null
				&& <span class="child" title={`belongs to ${s.nameOf(parent)}`}>↳</span>}
			<span class="only" title="only this run in the charts (o); click further lines to add"
				onClick={() => s.showOnly(r.id)}>only</span>
			<span class={s.isPinned(r) ? 'only on' : 'only'}
				title="stays on top (p); b: the others are measured by it"
				onClick={() => s.togglePin(r)}>{s.isPinned(r) ? 'unpin' : 'pin'}</span>
		</>
	);
}

export function kindOf(c: Column, i: number): string {
	return 'cell c-' + c.id.replace(/:.*/, '') + (c.number ? ' num' : '') + (i === 0 ? ' first' : '');
}

interface RowOptions {
	r: Run;
	/** Index in the list, and among the scrolled rows. */
	n: number;
	at: number;
	cols: Column[];
	/** The first excluded run. */
	divide: boolean;
}

export function Row({ r, n, at, cols, divide }: RowOptions) {
	const a = active.value;
	const shown = s.isShown(r.id);
	const kind = (s.lit.value === r.id ? ' lit' : '') + (divide ? ' divide' : '') + (shown ? '' : ' off')
		+ (fellOut(r) ? ' fallen' : '');
	return (
		<div role="row" class={'row' + kind} aria-rowindex={n + 2} aria-selected={shown} aria-level={level(r)}
			aria-expanded={expanded(r)} data-run={r.id} style={{ top: at * ROW + 'px' }}
			onMouseEnter={() => (s.lit.value = r.id)}>
			{cols.map((c, i) => (
				<div key={c.id} role={i === 0 ? 'rowheader' : 'gridcell'} aria-colindex={i + 1}
					data-cell={n + ':' + i} class={kindOf(c, i)}
					tabIndex={a.row === n && a.col === i ? 0 : -1} title={c.full(r)}
					onClick={() => i > 0 && (active.value = { row: n, col: i })}>
					{i === 0 ? <NameCell r={r} shown={shown} /> : c.cell(r)}
				</div>
			))}
		</div>
	);
}
