// SPDX-License-Identifier: Apache-2.0
// Undo of removals.
import { signal } from '@preact/signals';
import { report } from './runs.ts';

interface Done {
	/** What was done, in words. */
	text: string;
	undo: () => Promise<void>;
	/** Undoes it for one run, if it was done to several. */
	each?: readonly { name: string; undo: () => Promise<void> }[];
	/** Offers only the rest after a run or an experiment was restored. */
	without: (id: string) => unknown;
}

/** The last action, while it can be undone. */
export const done = signal<Done | null>(null);

/** A run or an experiment was restored: undo no longer counts it. */
export function settleUndo(id: string): void {
	done.value?.without(id);
}

/** Undoes the last action, or a part of it, which may leave the rest to undo. */
export async function undoLast({ undo }: Pick<Done, 'undo'>): Promise<void> {
	const last = done.value;
	try {
		await undo();
		if (done.value === last) done.value = null;
	} catch (e) {
		report(e);
	}
}
