// Which rows of a long table stand on the screen.
import { signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import { ROW } from './row.tsx';

const OVERSCAN = 6;

export const scrolled = signal({ top: 0, height: 600 });

/** Keeps scrolled at what the element shows. */
export function useScrolled(box: RefObject<HTMLDivElement | null>): void {
	useLayoutEffect(() => {
		const el = box.current!;
		const measure = () => (scrolled.value = { top: el.scrollTop, height: el.clientHeight });
		const watch = new ResizeObserver(measure);
		watch.observe(el);
		el.addEventListener('scroll', measure, { passive: true });
		return () => {
			watch.disconnect();
			el.removeEventListener('scroll', measure);
		};
	}, []);
}

/** Scrolls a row into sight, below the header and so many rows that stay on top. */
export function reveal(el: HTMLElement, n: number, above = 0): void {
	if (n * ROW < el.scrollTop) el.scrollTop = n * ROW;
	else if ((n + 2 + above) * ROW > el.scrollTop + el.clientHeight)
		el.scrollTop = (n + 2 + above) * ROW - el.clientHeight;
}

/** Places in a list whose rows are made: those on the screen, and that of the active one, which the tab order needs. */
export function made(count: number, active: number): { from: number; indexes: number[] } {
	const { top, height } = scrolled.value;
	const from = Math.max(0, Math.floor(top / ROW) - OVERSCAN);
	const to = Math.min(count, Math.ceil((top + height) / ROW) + OVERSCAN);
	const far = active >= 0 && active < count && (active < from || active >= to) ? [active] : [];
	return { from, indexes: [...far, ...Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i)] };
}
