// The tags of runs as the reader has left them, whether or not the server has confirmed it.
import { computed, signal } from '@preact/signals';
import type { Run } from '../base/types.ts';
import { ARCHIVED, keysOf } from './runs.ts';

export interface Edit {
	/** null removes. */
	to: string | null;
}

/** Changes that the server has not confirmed: by run, then key. */
export const waiting = signal<ReadonlyMap<string, ReadonlyMap<string, Edit>>>(new Map());

/** A run's tags as the reader has left them. */
export function tagsOf(r: Run): Record<string, string> {
	const edits = waiting.value.get(r.id);
	if (!edits) return r.tags;
	const out = { ...r.tags };
	for (const [k, e] of edits)
		if (e.to === null) delete out[k];
		else out[k] = e.to;
	return out;
}

/** Tags of the runs that are here, without those that MLflow's clients keep for themselves. */
export const tagKeys = computed(() => keysOf(tagsOf).filter((k) => !isReserved(k)));

export function isReserved(key: string): boolean {
	return key.startsWith('mlflow.') || key === ARCHIVED;
}
