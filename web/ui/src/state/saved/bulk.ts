// SPDX-License-Identifier: Apache-2.0
// Bulk changes: runs are deleted, moved or archived; each change can be undone. Loaded on demand.
import { batch } from '@preact/signals';
import type { Run } from '../../base/types.ts';
import { count } from '../../base/format.ts';
import { ARCHIVED, done, loadExperiments, nameOf, reloadRuns, runs, settleUndo } from '../index.ts';
import { request, restoreRun } from '../server/api.ts';
import { changeTag } from '../tagging.ts';

/** Maximum number of parallel requests. */
const AT_ONCE = 6;
/** With more runs, undo is for all of them; the trash has each. */
const EACH_MAX = 8;

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
	return { ...out, done: list.filter((r) => out.done.includes(r)) };
}

/** Undoes a bulk change; the error counts the runs that could not be restored. */
export async function takeBack(list: readonly Run[], undo: (r: Run) => Promise<unknown>): Promise<void> {
	const back = await each(list, async (r) => {
		await undo(r);
		settleUndo(r.id);
	});
	await Promise.all([reloadRuns(), loadExperiments()]);
	if (back.refused) throw new Error(`${count(back.refused, 'run')} could not be restored: ${back.why}`);
}

type Undo = (r: Run) => Promise<unknown>;

/** Offers to undo what was done to runs, all at once or one by one. */
function offerUndo(list: readonly Run[], text: (list: readonly Run[]) => string, undo: Undo): void {
	const each = list.length > 1 && list.length <= EACH_MAX ? list : [];
	done.value = list.length ? { text: text(list), undo: () => takeBack(list, undo),
		each: each.map((r) => ({ name: nameOf(r.id, r), undo: () => takeBack([r], undo) })),
		without: (id) => offerUndo(list.filter((r) => r.id !== id), text, undo) } : null;
}

/** Removes the runs from the page and offers to undo it. */
function leave(gone: readonly Run[], text: (list: readonly Run[]) => string, undo: Undo): void {
	if (!gone.length) return;
	const ids = new Set(gone.map((r) => r.id));
	batch(() => {
		runs.value = runs.value.filter((r) => !ids.has(r.id));
		offerUndo(gone, text, undo);
	});
	void loadExperiments();
}

const said = (list: readonly Run[]) => (list.length === 1 ? nameOf(list[0]!.id, list[0]) : count(list.length, 'run'));
const are = (list: readonly Run[]) => (list.length === 1 ? 'is' : 'are');

export async function deleteRuns(list: readonly Run[]): Promise<Outcome> {
	const out = await each(list, (r) => request(addressOf(r), undefined, 'DELETE'));
	leave(out.done, (l) => `${said(l)} ${are(l)} deleted.`, (r) => restoreRun(r.id));
	return out;
}

export async function moveRuns(list: readonly Run[], experiment: string): Promise<Outcome> {
	const move = (r: Run, to: string) => request(addressOf(r), { experiment: to }, 'PATCH');
	const out = await each(list.filter((r) => r.experiment !== experiment), (r) => move(r, experiment));
	leave(out.done, (l) => `${said(l)} ${are(l)} in ${experiment} now.`, (r) => move(r, r.experiment));
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
	if (out.done.length) offerUndo(out.done, (l) => `${said(l)} ${are(l)} ${away ? 'archived' : 'restored'}.`,
		(r) => mark([r], !away));
	return out;
}
