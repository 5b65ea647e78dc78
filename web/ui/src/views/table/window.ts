// SPDX-License-Identifier: Apache-2.0
// Virtual scrolling: which rows are rendered.
import { signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect } from 'preact/hooks';
import { afterFrame } from '../base/frame.ts';
import { printed } from '../base/theme.ts';
import { arranging } from './focus.ts';
import { tableHeight } from './height.ts';
import { ROW } from './row.tsx';

const OVERSCAN = 6;

/** Visible range of the element; height 0: not measured yet. */
const scrolled = signal({ top: 0, height: 0 });

/** Tracks the visible range, and marks a table with columns beyond its edges. Before the
 * first frame only visible rows are rendered. */
export function useScrolled(box: RefObject<HTMLDivElement | null>): void {
	useEffect(() => void arranging.load(), []);
	useLayoutEffect(() => {
		const el = box.current!;
		const measure = () => {
			scrolled.value = { top: el.scrollTop, height: el.clientHeight };
			el.toggleAttribute('data-less', el.scrollLeft > 0);
			el.toggleAttribute('data-more', el.scrollLeft + el.clientWidth < el.scrollWidth - 1);
		};
		let later = () => undefined as void;
		const watch = new ResizeObserver(() => {
			later();
			later = afterFrame(measure);
		});
		watch.observe(el);
		watch.observe(el.firstElementChild!); // the head is as wide as all columns
		el.addEventListener('scroll', measure, { passive: true });
		return () => {
			later();
			watch.disconnect();
			el.removeEventListener('scroll', measure);
			scrolled.value = { top: 0, height: 0 };
		};
	}, []);
}

/** Rows on paper. */
const PRINTED = 200;

const high = () => (printed.value ? PRINTED * ROW : scrolled.value.height || tableHeight());

/** Rows per page for Page Down. */
export function rowsOfPage(): number {
	return Math.floor(high() / ROW) - 2;
}

/** Scrolls a row into view, below the header and `above` pinned rows. */
export function reveal(el: HTMLElement, n: number, above = 0): void {
	if (n * ROW < el.scrollTop) el.scrollTop = n * ROW;
	else if ((n + 2 + above) * ROW > el.scrollTop + el.clientHeight)
		el.scrollTop = (n + 2 + above) * ROW - el.clientHeight;
}

/** Rendered rows: the visible ones and the active one, which the tab order needs. */
export function made(count: number, active: number): { from: number; indexes: number[] } {
	const { height } = scrolled.value;
	const top = printed.value ? 0 : scrolled.value.top;
	const beside = height && !printed.value ? OVERSCAN : 0;
	const from = Math.max(0, Math.floor(top / ROW) - beside);
	const to = Math.min(count, Math.ceil((top + high()) / ROW) + beside);
	const far = !printed.value && active >= 0 && active < count && (active < from || active >= to) ? [active] : [];
	return { from, indexes: [...far, ...Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i)] };
}
