// Changes of experiments, and what is deleted; loaded with the page that shows them.
import { batch, signal } from '@preact/signals';
import type { Experiment, Run } from '../../base/types.ts';
import { experimentsOf, getRuns, request, restoreRun } from '../server/api.ts';
import { experiments, go, loadExperiments, reloadRuns, report, view } from '../index.ts';

const RUNS_MAX = 200;

interface Trash {
	experiments: Experiment[];
	runs: Run[];
	/** There are more runs than these. */
	more: boolean;
}

/** null until it is known. */
export const trash = signal<Trash | null>(null);

const addressOf = (id: string) => 'experiments/' + encodeURIComponent(id);

export async function renameExperiment(e: Experiment, name: string): Promise<void> {
	await request(addressOf(e.id), { name }, 'PATCH');
	batch(() => {
		experiments.value = experiments.value?.map((o) => (o.id === e.id ? { ...o, name } : o)) ?? null;
		if (view.value.experiment === e.name) go({ experiment: name });
	});
}

export async function deleteExperiment(e: Experiment): Promise<void> {
	await request(addressOf(e.id), undefined, 'DELETE');
	batch(() => {
		experiments.value = experiments.value?.filter((o) => o.id !== e.id) ?? null;
		if (view.value.experiment === e.name) go({ experiment: null });
	});
	if (trash.value) await loadTrash();
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
	await Promise.all([loadTrash(), loadExperiments(), reloadRuns()]);
}
