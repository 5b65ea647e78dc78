// SPDX-License-Identifier: Apache-2.0
// Changes of tags: shown at once, reverted if the server refuses. Loaded on demand.
import { batch } from '@preact/signals';
import type { Run } from '../base/types.ts';
import { request, runOf } from './server/api.ts';
import { opened, runs } from './runs.ts';
import { isReserved, waiting, type Edit } from './tags.ts';

/** Maximum number of parallel requests. */
const AT_ONCE = 6;

/** Reason why a key is invalid, or ''. */
export function keyProblem(key: string): string {
	if (key.trim() === '') return 'A tag needs a name.';
	if (!isReserved(key)) return '';
	return "Reserved name: “mlflow.…” belong to MLflow's clients, “dptrack.…” to dptrack.";
}

/** Records a pending change of all runs. Once the server has replied, removes it unless a newer one has replaced it. */
function note(ids: readonly string[], key: string, edit: Edit, answered: boolean): void {
	const all = new Map(waiting.value);
	for (const id of ids) {
		const own = new Map(all.get(id));
		if (!answered) own.set(key, edit);
		else if (own.get(key) === edit) own.delete(key);
		if (own.size) all.set(id, own);
		else all.delete(id);
	}
	waiting.value = all;
}

/** Stores the runs' tags as the server reports them. */
function take(said: ReadonlyMap<string, Run>): void {
	if (runs.value.some((r) => said.has(r.id)))
		runs.value = runs.value.map((r) => (said.has(r.id) ? { ...r, tags: said.get(r.id)!.tags } : r));
	const one = opened.value;
	if (one && said.has(one.id)) opened.value = { ...one, tags: said.get(one.id)!.tags };
}

/** The run after a change of one of its tags. */
async function ask(id: string, key: string, value: string | null): Promise<Run> {
	const address = `runs/${encodeURIComponent(id)}/tags/${encodeURIComponent(key)}`;
	return runOf(await (value === null ? request(address, undefined, 'DELETE')
		: request(address, { value }, 'PUT')));
}

interface Refused {
	id: string;
	why: string;
}

/** Sets a tag of runs, or removes it (null); resolves to the refusals. onDone receives the number of finished runs. */
export async function changeTag(ids: readonly string[], key: string, value: string | null,
	onDone: (done: number) => void = () => undefined): Promise<Refused[]> {
	const edit: Edit = { to: value };
	const refused: Refused[] = [];
	const said = new Map<string, Run>();
	let next = 0;
	note(ids, key, edit, false);
	const one = async () => {
		for (let id = ids[next++]; id !== undefined; id = ids[next++]) {
			try {
				said.set(id, await ask(id, key, value));
			} catch (e) {
				refused.push({ id, why: (e as Error).message });
			}
			onDone(said.size + refused.length);
		}
	};
	await Promise.all(Array.from({ length: AT_ONCE }, one));
	batch(() => {
		take(said);
		note(ids, key, edit, true);
	});
	return refused;
}
