// SPDX-License-Identifier: Apache-2.0
// Comparison table: an ARIA grid with virtual rows of fixed height. One cell is in the tab order; arrows move it, Space
// selects the run, v toggles it in the charts, Enter opens it or activates the cell.
import { useSignalEffect } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import * as s from '../../state/index.ts';
import type { Column } from './column.ts';
import { columns, shownMetrics } from './columns.tsx';
import { act, active, arranging, focused, fullText, isForField, move, tip, unfocused, useChase } from './focus.ts';
import { HeadCell, Row, ROW } from './row.tsx';
import { fallenAt, nesting, pinCount, visibleRows } from './rows.ts';
import { made, reveal, rowsOfPage, useScrolled } from './window.ts';

/** Handles a key on the cell; a row that it moves stays active. Returns true if bound. */
function actOn(e: KeyboardEvent, at: { row: number; col: number }, chase: { current: boolean }): boolean {
	const list = visibleRows.value;
	const r = list[at.row];
	if (!act(e.key, at.row, at.col, e.shiftKey)) return false;
	const row = r && visibleRows.value !== list ? visibleRows.value.indexOf(r) : -1;
	if (row >= 0) {
		chase.current = true;
		active.value = { row, col: at.col };
	}
	return true;
}

/** Key handler of the table. */
function useKeys(box: RefObject<HTMLDivElement | null>): (e: KeyboardEvent) => void {
	const chase = useChase(box);
	return (e) => {
		if (e.ctrlKey || e.metaKey || isForField(e)) return;
		const at = active.value;
		const to = at.row < 0 ? arranging.value.value?.arrange(e, at.col) ?? null : null;
		if (to !== null) {
			chase.current = to !== at.col;
			active.value = { row: -1, col: to };
			return e.preventDefault();
		}
		if (e.altKey) return;
		if (move(e.key, rowsOfPage())) {
			const n = active.value.row;
			chase.current = n !== at.row || active.value.col !== at.col;
			if (n >= 0) {
				if (n >= pinCount.value) reveal(box.current!, n - pinCount.value, pinCount.value);
				s.lit.value = visibleRows.value[n]?.id ?? null;
			}
		} else if (!actOn(e, at, chase)) return;
		e.preventDefault();
	};
}

function onCopy(e: ClipboardEvent): void {
	if (getSelection()?.toString()) return;
	const text = fullText(e.target as HTMLElement);
	if (text === '') return;
	e.clipboardData?.setData('text/plain', text);
	e.preventDefault();
}

/** Column widths as grid-template-columns; the notes take the remaining width. */
export function template(cols: readonly Column[]): string {
	const widths = cols.map((c) => {
		if (c.id === 'notes' && !c.sized) return `minmax(${c.width}px, 1fr)`;
		return c.wanted ? `minmax(${c.width}px, ${c.wanted}px)` : c.width + 'px';
	});
	return widths.join(' ') + (cols.some((c) => c.id === 'notes' && !c.sized) ? '' : ' 1fr');
}

export function Table() {
	const box = useRef<HTMLDivElement>(null);
	const list = visibleRows.value;
	const cols = columns.value;
	const pins = pinCount.value;
	const { indexes } = made(list.length - pins, active.value.row - pins);
	useScrolled(box);
	useSignalEffect(() => void s.needMetrics(shownMetrics.value));
	useEffect(() => {
		if (active.value.row >= list.length)
			active.value = { row: Math.max(0, list.length - 1), col: active.value.col };
	}, [list.length]);
	const onKey = useKeys(box);
	const divide = nesting.value ? 0 : fallenAt.value;
	const row = (n: number, at: number) => <Row key={list[n]!.id} r={list[n]!} n={n} at={at} cols={cols}
		divide={n > pins && n === divide} />;
	return (
		<div class="grid" role={nesting.value ? 'treegrid' : 'grid'} ref={box} aria-label="Runs"
			aria-rowcount={list.length + 1}
			aria-colcount={cols.length} aria-multiselectable="true" onKeyDown={onKey} onCopy={onCopy}
			onFocusIn={focused} onFocusOut={unfocused}
			onScroll={() => (tip.value = null)} onMouseLeave={() => (s.lit.value = null)}
			style={{ '--cols': template(cols), '--min': cols.reduce((w, c) => w + c.width, 0) + 'px' }}>
			<div class="row head" role="row"
				aria-rowindex={1}>{cols.map((c, i) => <HeadCell key={c.id} c={c} i={i} />)}</div>
			{pins > 0 && <div class="pins" role="rowgroup" style={{ height: pins * ROW + 'px' }}>
				{list.slice(0, pins).map((_, n) => row(n, n))}</div>}
			<div class="body" role="rowgroup" style={{ height: (list.length - pins) * ROW + 'px' }}>
				{indexes.map((at) => row(at + pins, at))}
			</div>
			{tip.value && <div class="tip" role="tooltip"
				style={{ left: tip.value.left + 'px',
				top: tip.value.top + 'px' }}>{tip.value.text}</div>}
		</div>
	);
}
