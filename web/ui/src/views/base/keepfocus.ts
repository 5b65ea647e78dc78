// SPDX-License-Identifier: Apache-2.0
// Keeps the keyboard focus in the page when its element goes; loaded after the first screen.
import * as s from '../../state/index.ts';
import type { View } from '../../base/url.ts';
import { isLost, TAKES_KEYS } from './focus.ts';

/**
 * When the focused element goes: focuses a new undo, a new page's heading, the rest of its section, or the table.
 * A focus that was lost because the view changed before this was loaded moves at once; first: the view at the start.
 */
export function keepFocus(first: View): void {
	const key = (v: View) => `${v.page} ${v.run}`;
	let held: Element | null, around: Element[], page = '', offer: typeof s.done.value;
	const hold = () => {
		[held, around] = [isLost() ? null : document.activeElement, []];
		for (let e = held?.parentElement; e && !e.matches('main, .app'); e = e.parentElement) around.push(e);
		[page, offer] = [key(s.view.value), s.done.value];
	};
	const move = () => {
		const stays = page === key(s.view.value);
		const near = stays && around.find((e) => e.isConnected)?.querySelector<HTMLElement>(TAKES_KEYS);
		const at = (q: string) => document.querySelector<HTMLElement>(q);
		const to = (s.done.value !== offer && at('[title="z"]')) || near || stays && at('.grid [tabindex="0"]')
			|| at('h1') || at('main');
		if (to && to.tabIndex < 0) to.tabIndex = -1; // makes it focusable
		to?.focus({ preventScroll: true });
	};
	hold();
	for (const kind of ['focusin', 'click']) addEventListener(kind, hold, true);
	if (isLost() && page !== key(first)) {
		page = key(first);
		move();
	}
	const moved = () => held && !held.isConnected && isLost() && move();
	// after giveBack, which is queued earlier
	new MutationObserver(() => queueMicrotask(moved)).observe(document.body, { childList: true, subtree: true });
}
