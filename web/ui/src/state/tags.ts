// SPDX-License-Identifier: Apache-2.0
// Tags of the runs with the user's pending changes.
import { signal } from '@preact/signals';
import type { Run } from '../base/types.ts';

export interface Edit {
	/** null removes the tag. */
	to: string | null;
}

/** Unconfirmed changes: by run, then key. */
export const waiting = signal<ReadonlyMap<string, ReadonlyMap<string, Edit>>>(new Map());

/** A run's tags including pending changes. */
export function tagsOf(r: Run): Record<string, string> {
	const edits = waiting.value.get(r.id);
	if (!edits) return r.tags;
	const out = { ...r.tags };
	for (const [k, e] of edits)
		if (e.to === null) delete out[k];
		else out[k] = e.to;
	return out;
}

export function isReserved(key: string): boolean {
	return key.startsWith('mlflow.') || key.startsWith('dptrack.');
}
