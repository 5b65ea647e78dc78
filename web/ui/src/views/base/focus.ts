// SPDX-License-Identifier: Apache-2.0
// Keyboard focus: an opened part takes the focus before the next key, and returns it when closed.
import type { RefObject } from 'preact';
import { useLayoutEffect } from 'preact/hooks';

export const TAKES_KEYS = 'button, a[href], input, select, textarea, [tabindex="0"]';

/** Focuses a field and selects its text. */
export function selectIn(field: HTMLInputElement | HTMLTextAreaElement | null): void {
	field?.focus();
	field?.select();
}

/** Returns true if nothing has the focus. */
export function isLost(): boolean {
	return document.activeElement === null || document.activeElement === document.body;
}

/** Restores the focus; if its element is gone, to the first focusable one in the nearest remaining parent. */
function giveBack(before: Element | null, around: readonly Element[]): void {
	if (!isLost()) return;
	if (before instanceof HTMLElement && before.isConnected && before !== document.body) before.focus();
	else around.find((e) => e.isConnected)?.querySelector<HTMLElement>(TAKES_KEYS)?.focus();
}

const NARROW_PX = 720;
/** Pixels between a panel and its button, and the edges of the window. */
const APART = 5;
const EDGE = 8;

/** Places a fixed panel below its button or above it, where there is room. */
function place(el: HTMLElement): void {
	const bottom = innerHeight - parseFloat(getComputedStyle(el).getPropertyValue('--bottom'));
	const button = el.parentElement!.getBoundingClientRect();
	const from = Math.max(EDGE, button.bottom + APART);
	const to = Math.min(bottom - EDGE, button.top - APART);
	const below = el.offsetHeight <= bottom - EDGE - from || bottom - from >= to;
	Object.assign(el.style, below ? { top: from + 'px', bottom: 'auto', maxHeight: bottom - EDGE - from + 'px' }
		: { top: 'auto', bottom: innerHeight - to + 'px', maxHeight: to - EDGE + 'px' });
}

/** In a narrow window, where panels are fixed: places a panel next to its button. If its choices change the height of
 * the page, the button stays in place. */
export function usePlace(box: RefObject<HTMLElement | null>): void {
	useLayoutEffect(() => {
		const el = box.current!;
		if (innerWidth > NARROW_PX || getComputedStyle(el).position !== 'fixed') return undefined;
		const app = document.querySelector<HTMLElement>('.app')!;
		const topNow = () => el.parentElement!.getBoundingClientRect().top;
		let [top, height] = [topNow(), app.offsetHeight];
		const resized = new ResizeObserver(() => {
			scrollBy(0, topNow() - top);
			[top, height] = [topNow(), app.offsetHeight];
			place(el);
		});
		resized.observe(app); // at once, too
		const see = () => {
			if (app.offsetHeight === height) top = topNow(); // otherwise the browser scrolled
		};
		addEventListener('scroll', see);
		return () => {
			resized.disconnect();
			removeEventListener('scroll', see);
		};
	}, []);
}

/** Moves the focus among the items of a menu by arrows, Home and End. */
export function stepItems(e: KeyboardEvent & { currentTarget: HTMLElement }): void {
	const list = [...e.currentTarget.querySelectorAll<HTMLElement>('.item:not(:disabled)')];
	const at = list.findIndex((i) => i === document.activeElement);
	const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 };
	const to = steps[e.key];
	if (to === undefined || at < 0) return;
	e.preventDefault(); // the page does not scroll
	e.stopPropagation();
	list[(to + list.length) % list.length]!.focus();
}

interface Options {
	/** Selects the text of the field. */
	select?: boolean;
	/** Takes the focus again whenever this changes. */
	of?: unknown;
}

/** Focuses a part when it appears: the first element that matches one of the selectors, in their order, else the
 * part. Restores the focus when it disappears, unless something else has it. */
export function useFocus(box: RefObject<HTMLElement | null>, selectors: readonly string[],
	{ select = false, of }: Options = {}): void {
	useLayoutEffect(() => { // before the next key event
		const el = box.current!;
		const before = document.activeElement;
		const around: Element[] = [];
		for (let e = el.parentElement; e; e = e.parentElement) around.push(e);
		const to = selectors.map((q) => el.querySelector<HTMLElement>(q)).find((e) => e !== null) ?? el;
		if (select) selectIn(to as HTMLInputElement);
		else to.focus();
		// its replacement is drawn after this render
		return () => queueMicrotask(() => giveBack(before, around));
	}, [of]);
}
