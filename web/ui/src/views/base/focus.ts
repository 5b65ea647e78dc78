// Where the keys go: what opens takes the focus before the next key comes, and gives it back when it goes.
import type { RefObject } from 'preact';
import { useLayoutEffect } from 'preact/hooks';

const TAKES_KEYS = 'button, a[href], input, select, textarea, [tabindex="0"]';

/** Gives the keys to a field with its text selected. */
export function selectIn(field: HTMLInputElement | HTMLTextAreaElement | null): void {
	field?.focus();
	field?.select();
}

/** Nothing has the focus: what had it is gone. */
function isLost(): boolean {
	return document.activeElement === null || document.activeElement === document.body;
}

/** To what had the focus before; where that is gone to the first thing that takes keys in the nearest that is left. */
function giveBack(before: Element | null, around: readonly Element[]): void {
	if (!isLost()) return;
	if (before instanceof HTMLElement && before.isConnected && before !== document.body) before.focus();
	else around.find((e) => e.isConnected)?.querySelector<HTMLElement>(TAKES_KEYS)?.focus();
}

interface Options {
	/** The text of the field is selected. */
	select?: boolean;
	/** The focus is taken again whenever this changes. */
	of?: unknown;
}

/**
 * A part takes the focus when it comes: the first element in it that one of the selectors finds, in their order; the
 * part itself where none does. When it goes, and nothing else has the focus by then, that goes back.
 */
export function useFocus(box: RefObject<HTMLElement | null>, selectors: readonly string[],
	{ select = false, of }: Options = {}): void {
	useLayoutEffect(() => { // before the next key comes
		const el = box.current!;
		const before = document.activeElement;
		const around: Element[] = [];
		for (let e = el.parentElement; e; e = e.parentElement) around.push(e);
		const to = selectors.map((q) => el.querySelector<HTMLElement>(q)).find((e) => e !== null) ?? el;
		if (select) selectIn(to as HTMLInputElement);
		else to.focus();
		// what takes its place is drawn when the render that takes it away has ended
		return () => queueMicrotask(() => giveBack(before, around));
	}, [of]);
}
