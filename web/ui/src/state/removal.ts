// Runs that are deleted leave the page at once and can be had back as long as it says so.
import { batch, signal } from '@preact/signals';
import { restoreRun } from './server/api.ts';
import type { Run } from '../base/types.ts';
import { report, runs } from './runs.ts';

/** The run that was deleted last, while that can be undone with a button. */
export const removed = signal<Run | null>(null);

export async function undoRemoval(): Promise<void> {
	const r = removed.value;
	if (!r) return;
	try {
		const back = await restoreRun(r.id);
		batch(() => {
			removed.value = null;
			if (!runs.value.some((o) => o.id === r.id)) runs.value = [back, ...runs.value];
		});
	} catch (e) {
		report(e);
	}
}
