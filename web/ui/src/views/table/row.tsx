// SPDX-License-Identifier: Apache-2.0
// Rows of the table: the header, and one per visible run.
import type { Run } from '../../base/types.ts';
import { parentOf } from '../../base/nest.ts';
import * as s from '../../state/index.ts';
import { fellOut } from '../../base/goal.ts';
import { followed, Key, Name, Shape } from '../base/bits.tsx';
import { Icon } from '../base/icon.tsx';
import { hintOf, wayOf } from '../base/jump.tsx';
import { statements } from '../base/says.ts';
import { twoLines, type Column } from './column.ts';
import { active, arranging, expanded, sortBy, sortThen } from './focus.ts';
import { cursorTitle } from './readout.ts';
import { DEEPEST, INDENT, isFolded, nesting, toggleFold, visibleRows } from './rows.ts';

/** Pixels of a row. */
export const ROW = 27;
/** Characters at the end of a head that is cut. */
const HEAD_TAIL = 6;

function ariaSort(c: Column): 'ascending' | 'descending' | 'none' {
	const v = s.view.value;
	const g = s.goal.value;
	const id = v.sort ?? (g?.dir ? 'm:best:' + g.key : 'start');
	if (id !== c.id) return 'none';
	return (v.sort === null ? g?.dir !== 'min' : v.desc) ? 'descending' : 'ascending';
}

/** Selects all runs of the table, or none. */
function SelectAll() {
	const n = s.chosenRuns.value.length;
	const all = n > 0 && n === s.rows.value.length;
	return <input type="checkbox" class="pick" tabIndex={-1} aria-label="Select all runs" checked={all}
		indeterminate={n > 0 && !all} onClick={(e) => e.stopPropagation()} onPointerDown={(e) =>
			e.stopPropagation()}
		onChange={() => s.selectRuns(all ? [] : s.rows.value)} />;
}

/** Opens the menu of a head by the keys of menus, or by m. */
function menuKey(e: KeyboardEvent, c: Column): void {
	const down = e.altKey && e.key === 'ArrowDown';
	if (!down && e.key !== 'm' && e.key !== 'ContextMenu' && !(e.shiftKey && e.key === 'F10')) return;
	e.preventDefault();
	e.stopPropagation();
	s.openMenu(c.id, e.currentTarget as HTMLElement);
}

/** Place of a column that stays at the left. */
export function leftOf(c: Column): { left: string } | undefined {
	return c.left === undefined ? undefined : { left: c.left + 'px' };
}

export function HeadCell({ c, i }: { c: Column; i: number }) {
	const by = arranging.value.value;
	const order = ariaSort(c);
	const on = active.value.row === -1 && active.value.col === i;
	const reads = c.id === 'cursor';
	const title = reads ? cursorTitle.value : c.title;
	const second = s.view.value.then === c.id;
	const kind = (c.number ? ' num' : '') + (c.id === 'name' ? ' first' : '') + (reads ? ' reading' : '')
		+ (c.left === undefined ? '' : ' fixed') + (s.menuOf.value?.id === c.id ? ' open' : '');
	return (
		<div role="columnheader" class={'cell' + kind} aria-colindex={i + 1}
			aria-sort={c.sortable ? order : undefined}
			title={second ? `${c.hint}; the second sort` : c.hint} data-cell={'-1:' + i}
			tabIndex={on ? 0 : -1} style={leftOf(c)} onPointerDown={(e) => by?.dragHead(e, i)}
			onKeyDown={(e) => menuKey(e, c)} onContextMenu={(e) => {
				e.preventDefault();
				s.openMenu(c.id, e.currentTarget);
			}} onClick={(e) => !by?.wasDragged() && c.sortable && (e.shiftKey ? sortThen : sortBy)(c)}>
			{c.id === 'name' && <SelectAll />}
			<span class="lines">{twoLines(title).map((l) => <Name key={l} text={l}
				tail={HEAD_TAIL} />)}</span>
			{order !== 'none' && (
				<span class="arrow" aria-hidden="true">{order === 'descending' ? '▾' : '▴'}</span>
			)}
			{second && order === 'none' && <span class="arrow two" aria-hidden="true">
				{s.view.value.thenDesc ? '▾' : '▴'}</span>}
			<button type="button" class="headmenu" tabIndex={-1} aria-label={`Menu of ${c.title}`}
				aria-haspopup="dialog" onPointerDown={(e) => e.stopPropagation()} onClick={(e) => {
				e.stopPropagation();
				s.openMenu(c.id, e.currentTarget.parentElement!);
			}}><Icon name="down" /></button>
			<span class="edge" aria-hidden="true" onPointerDown={(e) => by?.dragEdge(e, c.id)}
				onClick={(e) => e.stopPropagation()} onDblClick={() => by?.size(c.id, null)} />
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
	const title = `${folded ? 'Show' : 'Hide'} the ${own?.below} below (+ and − on the keyboard)`;
	return !own ? null : (
		<span class="fold" style={{ paddingLeft: Math.min(own.depth, DEEPEST) * INDENT + 'px' }}>
			{own.below > 0 && <span class="eye" title={title} onClick={() => toggleFold(r.id)}>
				{folded ? '▸' : '▾'}</span>}
		</span>
	);
}

/** The check box of a run; with Shift it selects all up to the last one. */
export function Pick({ r, tab = -1 }: { r: Run; tab?: number }) {
	const on = s.selected.value.has(r.id);
	return <input type="checkbox" class="pick" tabIndex={tab} checked={on}
		aria-label={`Select ${s.nameOf(r.id, r)}`}
		title="Select (Space); Shift selects a range" onClick={(e) => {
			const box = e.currentTarget;
			if (e.shiftKey) s.selectTo(r.id, visibleRows.value);
			else s.toggleSelected(r.id);
			// the browser has toggled it too
			queueMicrotask(() => (box.checked = s.selected.value.has(r.id)));
		}} />;
}

/** Signs after a run's name: what is wrong (a failure leads to its reason, others to the charts), and its note. */
function Marks({ r }: { r: Run }) {
	return <>{statements(r).map((t) => t.alert && (
		<span key={t.kind} class={'eye mark say ' + t.kind} title={hintOf(r, t)} onClick={wayOf(r, t)!}>
			<Shape kind={t.kind} /></span>
	))}{r.notes && <span class="eye mark dim" title={r.notes} onClick={() => s.openRun(r.id, '')}>
		<Icon name="edit" /></span>}</>;
}

/** First cell: the check box, the run's key, which opens its colours, and its name, a link. */
function NameCell({ r, shown }: { r: Run; shown: boolean }) {
	const parent = parentOf(r);
	const pinned = s.isPinned(r);
	return (
		<>
			<Fold r={r} />
			<Pick r={r} />
			<span class="eye" title="Colour (c)" onClick={(e) => s.openColours(r.id, e.currentTarget)}>
				<Key look={s.looks.value.byRun.get(r.id)} on={shown} /></span>
			<a href={s.runAddress(r.id)} tabIndex={-1}
				onClick={followed(() => s.openRun(r.id))}><Name text={s.nameOf(r.id, r)} /></a>
			<Marks r={r} />
			{!nesting.value && parent !== null
				&& <span class="child" title={`Belongs to ${s.nameOf(parent)}`}>↳</span>}
			<span class="onrow">
				<span class="only shows" title={`${shown ? 'Hide' : 'Show'} in the charts (v)`}
					onClick={(e) => (e.shiftKey ? s.showTo(r.id, visibleRows.value)
						: s.toggleShown(r.id))}><Icon name="eye" /></span>
				<span class="only" title="Only this run in the charts (o)"
					onClick={() => s.showOnly(r.id)}><Icon name="only" /></span>
				<span class={pinned ? 'only on' : 'only'}
					title={pinned ? 'Unpin (p)' : 'Pin on top (p); b makes it the baseline'}
					onClick={() => s.togglePin(r)}><Icon name="pin" /></span>
			</span>
		</>
	);
}

export function kindOf(c: Column, i: number): string {
	return 'cell c-' + c.id.replace(/:.*/, '') + (c.number ? ' num' : '') + (i === 0 ? ' first' : '')
		+ (c.left === undefined ? '' : ' fixed');
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
	const on = s.selected.value.has(r.id);
	const kind = (s.lit.value === r.id ? ' lit' : '') + (on ? ' chosen' : '') + (divide ? ' divide' : '')
		+ (shown ? '' : ' off') + (fellOut(r) ? ' fallen' : '');
	return (
		<div role="row" class={'row' + kind} aria-rowindex={n + 2} aria-selected={on} data-shown={shown}
			aria-level={level(r)}
			aria-expanded={expanded(r)} data-run={r.id} style={{ top: at * ROW + 'px' }}
			onMouseEnter={() => (s.lit.value = r.id)}>
			{cols.map((c, i) => (
				<div key={c.id} role={i === 0 ? 'rowheader' : 'gridcell'} aria-colindex={i + 1}
					data-cell={n + ':' + i} class={kindOf(c, i)} style={leftOf(c)}
					tabIndex={a.row === n && a.col === i ? 0 : -1} title={c.full(r)}
					onClick={() => i > 0 && (active.value = { row: n, col: i })}>
					{i === 0 ? <NameCell r={r} shown={shown} /> : c.cell(r)}
				</div>
			))}
		</div>
	);
}
