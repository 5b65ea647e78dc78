// SPDX-License-Identifier: Apache-2.0
// Dragging by a pointer.

/** Follows the pointer that was pressed on an element until it is released or cancelled, which ends the drag
 * (see the event's type). */
export function follow(e: PointerEvent, el: HTMLElement, move: (m: PointerEvent) => void,
	end: (m: PointerEvent) => void): void {
	const over = new AbortController();
	const { signal } = over;
	el.setPointerCapture(e.pointerId);
	el.addEventListener('pointermove', move, { signal });
	for (const kind of ['pointerup', 'pointercancel'] as const) el.addEventListener(kind, (m) => {
		over.abort();
		end(m);
	}, { signal });
}
