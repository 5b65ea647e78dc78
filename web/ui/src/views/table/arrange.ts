// SPDX-License-Identifier: Apache-2.0
// Order and width of columns: dragged by their headers and edges, or moved by keys. The name stays first.
import * as s from '../../state/index.ts';
import { follow } from '../base/drag.ts';
import { columns } from './columns.tsx';

const STEP = 10;
const WIDTH_MIN = 34;
const WIDTH_MAX = 900;
/** Shorter drags count as clicks. */
const DRAG = 6;

/** Moves a column to another's position; false if impossible. */
export function place(from: number, to: number): boolean {
	const ids = columns.value.map((c) => c.id);
	const { fixed } = s.view.value;
	if (from < 1 || to < 1 || to >= ids.length || from === to) return false;
	if (fixed.includes(ids[from]!) !== fixed.includes(ids[to]!)) return false;
	ids.splice(to, 0, ids.splice(from, 1)[0]!);
	s.go({ columns: ids.slice(1) });
	return true;
}

/** Takes a column out of the table. */
export function hide(id: string): void {
	s.go({ columns: columns.value.map((c) => c.id).filter((c) => c !== 'name' && c !== id) });
}

/** Keeps a column at the left while the others scroll, or no longer. */
export function fix(id: string): void {
	const { fixed } = s.view.value;
	s.go({ fixed: fixed.includes(id) ? fixed.filter((c) => c !== id) : [...fixed, id] });
}

/** null: automatic width. */
export function size(id: string, width: number | null): void {
	const { [id]: _, ...widths } = s.view.value.widths;
	if (width !== null) widths[id] = Math.round(Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, width)));
	s.go({ widths });
}

/** Alt and an arrow move the column of a header, with Shift resize it; returns its position, or null. */
export function arrange(e: KeyboardEvent, at: number): number | null {
	const by = e.key === 'ArrowLeft' ? -1 : e.key === 'ArrowRight' ? 1 : 0;
	const c = columns.value[at];
	if (!by || !e.altKey || !c) return null;
	if (e.shiftKey) size(c.id, c.width + by * STEP);
	else return place(at, at + by) ? at + by : at;
	return at;
}

/** Drags the edge of a header. */
export function dragEdge(e: PointerEvent, id: string): void {
	const width = (e.currentTarget as HTMLElement).parentElement!.offsetWidth;
	e.stopPropagation();
	follow(e, e.currentTarget as HTMLElement, (m) => size(id, width + m.clientX - e.clientX), () => undefined);
}

let dragged = false;

/** Drags a header to another position; the click that ends a drag is ignored (queried once). */
export function dragHead(e: PointerEvent, at: number): void {
	dragged = false;
	if (at < 1 || e.button !== 0 || e.pointerType === 'touch') return;
	follow(e, e.currentTarget as HTMLElement, () => undefined, (m) => {
		dragged = m.type === 'pointerup' && Math.abs(m.clientX - e.clientX) > DRAG;
		if (!dragged) return;
		const over = document.elementFromPoint(m.clientX, m.clientY)
			?.closest<HTMLElement>('[data-cell^="-1:"]');
		if (over) place(at, Number(over.dataset.cell!.slice(3)));
	});
}

export function wasDragged(): boolean {
	const was = dragged;
	dragged = false;
	return was;
}
