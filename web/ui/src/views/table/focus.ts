// SPDX-License-Identifier: Apache-2.0
// The cell in the tab order: its position, how keys move it, and key actions.
import { batch, computed, signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { metricColumn } from '../../base/rank.ts';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { wayOf } from '../base/jump.tsx';
import { statements } from '../base/says.ts';
import type { Column } from './column.ts';
import { columns } from './columns.tsx';
import { isFolded, nesting, toggleFold, visibleRows } from './rows.ts';

/** The focused cell; row -1 is the header. */
export const active = signal({ row: 0, col: 0 });
/** Full text of a focused cell that is truncated. */
export const tip = signal<{ text: string; left: number; top: number } | null>(null);

/** What moves and sizes columns, loaded with the first frame. */
export const arranging = s.part(() => import('./arrange.ts'));
/** The chooser of columns is open. */
export const picking = signal(false);
/** Number of differing params without a column. */
export const paramsLeft = computed(() => {
	const on = new Set(columns.value.map((c) => c.id));
	return s.knownSplit.value.differ.filter((k) => !on.has('p:' + k)).length;
});

/** Sorts runs that are equal in the first sort by this column: one way, the other way, no longer. */
export function sortThen(c: Column): void {
	const { then, thenDesc } = s.view.value;
	if (then !== c.id) s.go({ then: c.id, thenDesc: false });
	else s.go(thenDesc ? { then: null, thenDesc: false } : { thenDesc: true });
}

/** Position from data-cell: row and column. */
const CELL = /^(-?\d+):(\d+)$/;

/** Full text of the cell around an element; '' outside the rows. */
export function fullText(el: HTMLElement): string {
	const m = CELL.exec(el.closest<HTMLElement>('[data-cell]')?.dataset.cell ?? '');
	const r = m ? visibleRows.value[Number(m[1])] : undefined;
	return (r && columns.value[Number(m![2])]?.full(r)) ?? '';
}

function showTip(cell: HTMLElement): void {
	const text = cell.scrollWidth > cell.clientWidth ? fullText(cell) : '';
	const box = cell.getBoundingClientRect();
	tip.value = text === '' ? null
		: { text, left: Math.max(8, Math.min(box.left, innerWidth - 428)), top: box.bottom + 2 };
}

/** Returns true if the key is for the field that has the focus: text, or Space on a check box. */
export function isForField(e: KeyboardEvent): boolean {
	const field = e.target as HTMLInputElement;
	return field.tagName === 'INPUT' && (field.type !== 'checkbox' || e.key === ' ');
}

/** Handles focus of a cell, or of a check box in it. One that returns after a click elsewhere, as the element that had
 * it is gone, highlights nothing. */
export function focused({ target, relatedTarget }: FocusEvent): void {
	const cell = (target as HTMLElement).closest<HTMLElement>('[data-cell]');
	const m = cell && CELL.exec(cell.dataset.cell!);
	if (!m) return;
	const at = { row: Number(m[1]), col: Number(m[2]) };
	showTip(cell);
	batch(() => {
		if (at.row !== active.value.row || at.col !== active.value.col) active.value = at;
		if (at.row >= 0 && relatedTarget) s.lit.value = visibleRows.value[at.row]?.id ?? null;
	});
}

/** When current, the focus follows the active cell before the next key; a later focus would move the cell back. */
export function useChase(box: RefObject<HTMLElement | null>): { current: boolean } {
	const chase = useRef(false);
	const a = active.value;
	useEffect(() => () => void (s.lit.value = null), []);
	useLayoutEffect(() => {
		if (!chase.current) return;
		chase.current = false;
		const cell = box.current!.querySelector<HTMLElement>(`[data-cell="${a.row}:${a.col}"]`);
		cell?.focus({ preventScroll: true });
		cell?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
	});
	return chase;
}

/** Ends the highlight of the focused row once the focus leaves the table. */
export function unfocused(e: FocusEvent): void {
	tip.value = null;
	const box = e.currentTarget as HTMLElement;
	if (!box.contains(e.relatedTarget as Node | null) && !box.matches(':hover')) s.lit.value = null;
}

export function sortBy(c: Column): void {
	const v = s.view.value;
	const g = s.goal.value;
	const m = metricColumn(c.id);
	if (m?.what === 'best' && g?.key === m.key && v.sort !== null) return s.go({ sort: null, desc: false });
	const start = m ? s.dirOf(m.key) === 'max' : false;
	if (v.sort !== c.id) s.go({ sort: c.id, desc: start });
	else if (v.desc === start) s.go({ desc: !start });
	else s.go({ sort: null, desc: false });
}

/** Whether the children of a run are shown; undefined without children. */
export function expanded(r: Run): boolean | undefined {
	return nesting.value?.get(r.id)?.below ? !isFolded(r.id) : undefined;
}

/** Handles an action key; returns true if bound. */
export function act(key: string, n: number, col: number, shift: boolean): boolean {
	const c = columns.value[col];
	if (n < 0) {
		if ((key === 'Enter' || key === ' ') && c?.sortable) (shift ? sortThen : sortBy)(c);
		return key === 'Enter' || key === ' ';
	}
	const r = visibleRows.value[n];
	if (!r) return false;
	if (key === 'X' || (key === ' ' && shift)) s.selectTo(r.id, visibleRows.value);
	else if (key === 'x' || key === ' ') s.toggleSelected(r.id);
	else if (key === 'v') s.toggleShown(r.id);
	else if (key === 'V') s.showTo(r.id, visibleRows.value);
	else if (key === 'p') s.togglePin(r);
	else if (key === 'b') s.toggleBaseline(r);
	else if (key === 'o') s.showOnly(r.id);
	else if (key === 'c') s.openColours(r.id, document.activeElement!);
	else if ((key === '+' || key === '-') && expanded(r) === (key === '-')) toggleFold(r.id);
	else if (key === 'Enter') {
		const ways = c?.id === 'status' ? statements(r).map((t) => wayOf(r, t)) : [];
		(ways.find((w) => w !== null) ?? (() => s.openRun(r.id)))();
	} else return false;
	return true;
}

/** Moves the cell by a key, page: rows per page; returns true if the key moves. */
export function move(key: string, page: number): boolean {
	const { row, col } = active.value;
	const rows = visibleRows.value.length - 1;
	const cols = columns.value.length - 1;
	const to: Record<string, [number, number]> = {
		ArrowDown: [row + 1, col], j: [row + 1, col], ArrowUp: [row - 1, col], k: [row - 1, col],
		ArrowLeft: [row, col - 1], ArrowRight: [row, col + 1], Home: [row, 0], End: [row, cols],
		PageDown: [row + page, col], PageUp: [Math.max(0, row - page), col],
	};
	const t = to[key];
	if (!t) return false;
	active.value = { row: Math.min(rows, Math.max(-1, t[0])), col: Math.min(cols, Math.max(0, t[1])) };
	return true;
}
