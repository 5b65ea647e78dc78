// SPDX-License-Identifier: Apache-2.0
// Keeps the keyboard focus in the page when its element goes; loaded after the first screen.
import * as s from '../../state/index.ts';
import { isLost, TAKES_KEYS } from './focus.ts';

/** When the focused element goes: focuses a new undo, a new page's heading, the rest of its section, or the table. */
export function keepFocus(): void {
	let held: Element | null, around: Element[], page: string, offer: typeof s.done.value;
	const here = () => `${s.view.value.page} ${s.view.value.run}`;
	const hold = () => {
		[held, around] = [isLost() ? null : document.activeElement, []];
		for (let e = held?.parentElement; e && !e.matches('main, .app'); e = e.parentElement) around.push(e);
		[page, offer] = [here(), s.done.value];
	};
	hold();
	for (const kind of ['focusin', 'click']) addEventListener(kind, hold, true);
	const move = () => {
		if (!held || held.isConnected || !isLost()) return;
		const stays = page === here();
		const near = stays && around.find((e) => e.isConnected)?.querySelector<HTMLElement>(TAKES_KEYS);
		const at = (q: string) => document.querySelector<HTMLElement>(q);
		const to = (s.done.value !== offer && at('[title="z"]')) || near || stays && at('.grid [tabindex="0"]')
			|| at('h1') || at('main');
		if (to && to.tabIndex < 0) to.tabIndex = -1; // makes it focusable
		to?.focus({ preventScroll: true });
	};
	// after giveBack, which is queued earlier
	new MutationObserver(() => queueMicrotask(move)).observe(document.body, { childList: true, subtree: true });
}
