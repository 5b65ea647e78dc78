// SPDX-License-Identifier: Apache-2.0
// Bulk changes: runs are deleted, moved or archived; each change can be undone. Loaded on demand.
import { batch } from '@preact/signals';
import type { Run } from '../../base/types.ts';
import { count } from '../../base/format.ts';
import { filled, Str } from '../../strings/en.ts';
import { ARCHIVED, done, loadExperiments, reloadRuns, runs } from '../index.ts';
import { request, restoreRun } from '../server/api.ts';
import { changeTag } from '../tagging.ts';

/** Maximum number of parallel requests. */
const AT_ONCE = 6;

export interface Outcome {
	done: readonly Run[];
	/** Reason of the first refusal, or ''. */
	why: string;
	refused: number;
}

const addressOf = (r: Run) => 'runs/' + encodeURIComponent(r.id);

async function each(list: readonly Run[], change: (r: Run) => Promise<unknown>): Promise<Outcome> {
	const out = { done: [] as Run[], why: '', refused: 0 };
	let next = 0;
	const some = async () => {
		for (let r = list[next++]; r; r = list[next++]) {
			try {
				await change(r);
				out.done.push(r);
			} catch (e) {
				out.why ||= (e as Error).message;
				out.refused++;
			}
		}
	};
	await Promise.all(Array.from({ length: AT_ONCE }, some));
	return out;
}

/** Undoes a bulk change; the error counts the runs that could not be restored. */
export async function takeBack(list: readonly Run[], undo: (r: Run) => Promise<unknown>): Promise<void> {
	const back = await each(list, undo);
	await Promise.all([reloadRuns(), loadExperiments()]);
	if (back.refused) throw new Error(filled(Str.xCouldNotBeRestoredX, count(back.refused, Str.run), back.why));
}

/** Removes the runs from the page and offers to undo it. */
function leave(gone: readonly Run[], text: string, undo: (r: Run) => Promise<unknown>): void {
	if (!gone.length) return;
	const ids = new Set(gone.map((r) => r.id));
	batch(() => {
		runs.value = runs.value.filter((r) => !ids.has(r.id));
		done.value = { text, undo: () => takeBack(gone, undo) };
	});
	void loadExperiments();
}

const said = (list: readonly Run[]) => (list.length === 1 ? list[0]!.name : count(list.length, Str.run));
const are = (list: readonly Run[]) => (list.length === 1 ? Str.is : Str.are);

export async function deleteRuns(list: readonly Run[]): Promise<Outcome> {
	const out = await each(list, (r) => request(addressOf(r), undefined, 'DELETE'));
	leave(out.done, filled(Str.xXDeleted, said(out.done), are(out.done)), (r) => restoreRun(r.id));
	return out;
}

export async function moveRuns(list: readonly Run[], experiment: string): Promise<Outcome> {
	const move = (r: Run, to: string) => request(addressOf(r), { experiment: to }, 'PATCH');
	const out = await each(list.filter((r) => r.experiment !== experiment), (r) => move(r, experiment));
	leave(out.done, filled(Str.xXInXNow, said(out.done), are(out.done), experiment), (r) => move(r, r.experiment));
	return out;
}

/** Archives runs or restores them. */
export async function archiveRuns(list: readonly Run[], away: boolean): Promise<Outcome> {
	const mark = async (l: readonly Run[], on: boolean) => {
		const refused = await changeTag(l.map((r) => r.id), ARCHIVED, on ? 'true' : 'false');
		const no = new Set(refused.map((f) => f.id));
		return { done: l.filter((r) => !no.has(r.id)), why: refused[0]?.why ?? '', refused: refused.length };
	};
	const out = await mark(list, away);
	if (out.done.length)
		done.value = { text: `${said(out.done)} ${are(out.done)} ${away ? Str.archived : Str.restored}.`,
			undo: async () => void await mark(out.done, !away) };
	return out;
}
