// Changes of tags: at once on the page, taken back where the server refuses them.
import { batch, computed, signal } from '@preact/signals';
import * as api from './api.ts';
import type { Run } from '../base/types.ts';
import { opened, runs } from './runs.ts';

interface Edit {
	/** null removes. */
	to: string | null;
}

/** Changes that the server has not confirmed: by run, then key. */
const waiting = signal<ReadonlyMap<string, ReadonlyMap<string, Edit>>>(new Map());
const AT_ONCE = 6;

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
export const tagKeys = computed(() => {
	const set = new Set<string>();
	for (const r of runs.value) for (const k in tagsOf(r)) if (!isReserved(k)) set.add(k);
	return [...set].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
});

export function isReserved(key: string): boolean {
	return key.startsWith('mlflow.');
}

/** Notes the change for all of the runs, or, once it is settled, forgets it where no newer one has taken its place. */
function note(ids: readonly string[], key: string, edit: Edit, settled: boolean): void {
	const all = new Map(waiting.value);
	for (const id of ids) {
		const own = new Map(all.get(id));
		if (!settled) own.set(key, edit);
		else if (own.get(key) === edit) own.delete(key);
		if (own.size) all.set(id, own);
		else all.delete(id);
	}
	waiting.value = all;
}

/** What the server says the runs' tags are now. */
function take(said: ReadonlyMap<string, Run>): void {
	if (runs.value.some((r) => said.has(r.id)))
		runs.value = runs.value.map((r) => (said.has(r.id) ? { ...r, tags: said.get(r.id)!.tags } : r));
	const one = opened.value;
	if (one && said.has(one.id)) opened.value = { ...one, tags: said.get(one.id)!.tags };
}

export interface Refused {
	id: string;
	why: string;
}

/** Sets a tag of runs, or removes it (null); resolves to what was refused. told hears how many are done. */
export async function changeTag(ids: readonly string[], key: string, value: string | null,
	told: (done: number) => void = () => undefined): Promise<Refused[]> {
	const edit: Edit = { to: value };
	const refused: Refused[] = [];
	const said = new Map<string, Run>();
	let next = 0;
	note(ids, key, edit, false);
	const one = async () => {
		for (let id = ids[next++]; id !== undefined; id = ids[next++]) {
			try {
				said.set(id, await (value === null ? api.removeTag(id, key) : api.setTag(id, key, value)));
			} catch (e) {
				refused.push({ id, why: (e as Error).message });
			}
			told(said.size + refused.length);
		}
	};
	await Promise.all(Array.from({ length: AT_ONCE }, one));
	batch(() => {
		take(said);
		note(ids, key, edit, true);
	});
	return refused;
}
