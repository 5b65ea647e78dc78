// SPDX-License-Identifier: Apache-2.0
// Changes of experiments, and the trash; loaded with their page.
import { batch, computed, signal } from '@preact/signals';
import { bestOf, bestRun, defaultGoal, saidOf, type Goal } from '../../base/goal.ts';
import type { Experiment, Run } from '../../base/types.ts';
import { experimentsOf, getRuns, num, request, restoreRun } from '../server/api.ts';
import { levelIn } from '../access.ts';
import { done, experiments, go, loadExperiments, reloadRuns, report, settleUndo, view } from '../index.ts';
import { takeBack } from './bulk.ts';

const RUNS_MAX = 200;
/** Number of runs among which the best of an experiment is searched. */
const BEST_OF = 200;

interface Trash {
	experiments: Experiment[];
	runs: Run[];
	/** More deleted runs exist. */
	more: boolean;
}

/** null until loaded. */
export const trash = signal<Trash | null>(null);

/** A deleted thing. */
export interface Gone {
	kind: 'experiment' | 'run';
	id: string;
	name: string;
	experiment: string;
	began: number | null;
	deleted: number | null;
	/** What the session may do in the experiment. */
	may: string;
}

/** What is in the trash; null until loaded. */
export const gone = computed<Gone[] | null>(() => trash.value && [
	...trash.value.experiments.map((e) => ({ kind: 'experiment' as const, id: e.id, name: e.name,
		experiment: e.name, began: null, deleted: null, may: e.may })),
	...trash.value.runs.map((r) => ({ kind: 'run' as const, id: r.id, name: r.name, experiment: r.experiment,
		began: r.start_time, deleted: r.deleted_time, may: levelIn(r.experiment) })),
]);

const addressOf = (id: string) => 'experiments/' + encodeURIComponent(id);

/** Puts a new name in the place of an experiment that is shown; null: it is gone. */
function replaceShown(was: string, name: string | null): void {
	const { experiment: first, also } = view.value;
	if (first !== was && !also.includes(was)) return;
	const [now = null, ...rest] = [first!, ...also].flatMap((n) => (n === was ? name ?? [] : n));
	go({ experiment: now, also: rest });
}

export async function renameExperiment(e: Experiment, name: string): Promise<void> {
	await request(addressOf(e.id), { name }, 'PATCH');
	batch(() => {
		experiments.value = experiments.value?.map((o) => (o.id === e.id ? { ...o, name } : o)) ?? null;
		replaceShown(e.name, name);
	});
}

export async function deleteExperiment(e: Experiment): Promise<void> {
	await request(addressOf(e.id), undefined, 'DELETE');
	batch(() => {
		experiments.value = experiments.value?.filter((o) => o.id !== e.id) ?? null;
		replaceShown(e.name, null);
	});
	if (trash.value) await loadTrash();
	done.value = { text: `${e.name} is deleted, with its runs.`, undo: () => restore('experiment', e.id),
		without: (id) => id === e.id && (done.value = null) };
}

/** Archives an experiment or restores it. */
export async function archiveExperiment(e: Experiment, archived: boolean): Promise<void> {
	const put = async (to: boolean) => {
		await request(addressOf(e.id), { archived: to }, 'PATCH');
		experiments.value = experiments.value?.map((o) => (o.id === e.id ? { ...o, archived: to } : o)) ?? null;
	};
	await put(archived);
	done.value = { text: `${e.name} is ${archived ? 'archived' : 'restored'}.`,
		undo: () => put(!archived), without: () => {} };
}

export interface Best {
	goal: Goal;
	run: Run;
	value: number;
}

/** Best of an experiment's newest runs by its default goal, or null. */
export async function bestOfExperiment(e: Experiment): Promise<Best | null> {
	const all = { experiment: e.name, limit: BEST_OF };
	const { keys, runs } = await getRuns({ ...all, keys: true, metrics: [''], fields: ['alerts'] });
	const goal = defaultGoal(keys, runs.length, saidOf(runs));
	const run = goal && bestRun((await getRuns({ ...all, metrics: [goal.key] })).runs, goal);
	const value = run && bestOf(run.metrics[goal.key], goal.dir);
	return goal && run && value !== null && value !== undefined ? { goal, run, value } : null;
}

export async function loadTrash(): Promise<void> {
	try {
		const [gone, runs] = await Promise.all([request('experiments?deleted=only'),
			getRuns({ limit: RUNS_MAX, deleted: true, metrics: [''], fields: ['alerts'] })]);
		const ids = new Set(experimentsOf(gone).map((e) => e.name));
		trash.value = { experiments: experimentsOf(gone), runs: runs.runs.filter((r) => !ids.has(r.experiment)),
			more: runs.next !== null };
	} catch (e) {
		report(e);
	}
}

export async function restore(kind: 'experiment' | 'run', id: string): Promise<void> {
	if (kind === 'run') await restoreRun(id);
	else await request(addressOf(id) + '/restore', {});
	settleUndo(id);
	await Promise.all([loadTrash(), loadExperiments(), reloadRuns()]);
}

/** Restores all runs of the trash that are shown. */
export async function restoreAll(): Promise<void> {
	try {
		await takeBack(trash.value?.runs ?? [], (r) => restoreRun(r.id));
	} finally {
		await loadTrash();
	}
}

/** Removes them for good; dry: only counts. Resolves to the bytes of their files. */
export async function purge(list: readonly Gone[], dry: boolean): Promise<number> {
	const runs = list.filter((g) => g.kind === 'run').map((g) => g.id);
	const wishes = [...runs.length ? [{ runs }] : [],
		...list.filter((g) => g.kind === 'experiment').map((g) => ({ experiment: g.name }))];
	let files = 0;
	try {
		for (const w of wishes) files += num((await request('purge', { ...w, dry_run: dry })).artifact_bytes);
	} finally {
		if (!dry) await loadTrash();
	}
	if (!dry) list.forEach((g) => settleUndo(g.id));
	return files;
}
