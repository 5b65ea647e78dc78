// SPDX-License-Identifier: Apache-2.0
// Keys of the page: the help on them is open; a key that works wherever no text field has the focus.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

export const asking = signal(false);

/** Binds a key, unless a text field has the focus or a dialog is open; ? also closes the help. The first act stays. */
export function useKey(which: string, act: () => void): void {
	useEffect(() => {
		const key = (e: KeyboardEvent) => {
			if (e.key !== which || e.ctrlKey || e.metaKey || e.altKey
				|| /^(INPUT|SELECT|TEXTAREA)$/.test((e.target as HTMLElement).tagName)
				|| (which !== '?' && document.querySelector('[role=dialog]'))) return;
			e.preventDefault();
			act();
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	}, []);
}
