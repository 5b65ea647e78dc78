// SPDX-License-Identifier: Apache-2.0
// Undo of removals.
import { signal } from '@preact/signals';
import { report } from './runs.ts';

interface Done {
	/** What was done, in words. */
	text: string;
	undo: () => Promise<void>;
}

/** The last action, while it can be undone. */
export const done = signal<Done | null>(null);

export async function undoLast(): Promise<void> {
	const last = done.value;
	if (!last) return;
	try {
		await last.undo();
		if (done.value === last) done.value = null;
	} catch (e) {
		report(e);
	}
}
