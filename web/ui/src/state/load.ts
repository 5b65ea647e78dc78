// Asks the server for runs and experiments, in pages, and for the first screen's curves before anything is drawn.
import { batch, computed } from '@preact/signals';
import * as api from './api.ts';
import type { Run } from '../base/types.ts';
import { chartOrder, frontKeys, openAtFirst } from '../base/order.ts';
import { emptyView, isExpression, linkedTarget } from '../base/url.ts';
import { curve, experiments, filterProblem, goal, loading, loadingMore, metricKeys, notHeld, problem, report,
	runs } from './runs.ts';
import { fill, unwant, want } from './series.ts';
import { go, view } from './view.ts';

/** As in src/index.html, which asks for the first page before this script is there. */
const FIRST_PAGE = 200;
const NEXT_PAGE = 1000;
/** Runs that the page holds at most; a filter reaches the others. */
const HELD_MAX = 10000;

let loadSeq = 0;
/** The first request asks for the newest runs of all experiments: the browser has begun it with the page. */
let firstLoad = true;
/** What runs holds: the experiment and filter of the last load. */
let loaded = '';

/** What the server is asked for: an expression goes there, words are looked for here. */
export const serverFilter = computed(() => (isExpression(view.value.filter) ? view.value.filter : ''));

export const viewExperiment = computed(() => view.value.experiment);
export const viewPage = computed(() => view.value.page);

/** The charts that the first screen will show, as far as the size of the window tells. */
function firstKeys(): string[] {
	const { first, groups } = chartOrder(metricKeys.value, frontKeys(curve.value, goal.value?.key));
	const table = Math.min(36 + runs.value.length * 27, innerHeight * 0.56);
	const room = innerHeight - table - 142;
	const below = Math.max(0, room - Math.min(420, Math.max(260, room)) + 120);
	const perRow = Math.max(1, Math.floor((innerWidth - 14) / 430));
	const rest = groups.flatMap((g) => g.keys.slice(0, openAtFirst(g)));
	return innerWidth > 720 ? [...first, ...rest.slice(0, perRow * Math.ceil(below / 270))] : first;
}

/** Asks for the first screen's curves before the table is drawn; the charts take over when they are there. */
function ahead(): void {
	if (view.value.page !== 'compare') return;
	const width = innerWidth > 720 ? innerWidth / 2 - 207 : 320;
	const keys = firstKeys();
	for (const k of keys) want(k, width, ahead);
	void fill().then(() => keys.forEach((k) => unwant(k, ahead)));
}

export async function loadRuns(name: string | null, filter: string): Promise<void> {
	if (name !== null && loaded === name + '\n' + filter) return;
	const seq = ++loadSeq;
	const mine = () => seq === loadSeq;
	loading.value = true;
	problem.value = null;
	try {
		const any = name === null || (firstLoad && filter === '');
		if (firstLoad && !any) void api.getRuns({ limit: FIRST_PAGE }).catch(() => undefined);
		firstLoad = false;
		let { runs: list, next } =
			await api.getRuns({ experiment: any ? undefined : name, filter, limit: FIRST_PAGE });
		if (!mine()) return;
		const newest = name ?? list[0]?.experiment;
		list = list.filter((r) => r.experiment === newest);
		if (!list.length && next !== null && name !== null) {
			({ runs: list, next } = await api.getRuns({ experiment: name, filter, limit: FIRST_PAGE }));
			if (!mine()) return;
		}
		batch(() => {
			filterProblem.value = null;
			runs.value = list;
			loading.value = false;
			loaded = (newest ?? '') + '\n' + filter;
			if (name === null && newest !== undefined && view.value.page === 'compare')
				go({ experiment: newest });
		});
		ahead();
		if (next !== null && any) {
			// a page's token belongs to the question that gave it
			list = [];
			next = '';
		}
		await loadRest(newest, filter, list, next, mine);
	} catch (e) {
		if (!mine()) return;
		const err = e as api.ApiError;
		loading.value = false;
		if (filter !== '' && err.status === 400) filterProblem.value = err.message;
		else report(err);
	}
}

/** The pages after the first, added as they come; '' starts again at the first. */
async function loadRest(name: string | undefined, filter: string, list: Run[], next: string | null,
	mine: () => boolean): Promise<void> {
	loadingMore.value = next !== null;
	notHeld.value = false;
	while (next !== null && mine()) {
		const more: { runs: Run[]; next: string | null } = await api.getRuns({ experiment: name, filter,
			limit: NEXT_PAGE, page: next });
		if (!mine()) return;
		list = list.concat(more.runs);
		runs.value = list;
		next = list.length < HELD_MAX ? more.next : null;
		if (more.next !== null && next === null) notHeld.value = true;
	}
	if (mine()) loadingMore.value = false;
}

/** The list again, after the server was away. */
export function reloadRuns(): Promise<void> {
	loaded = '';
	return loadRuns(viewExperiment.value, serverFilter.value);
}

/**
 * Goes where an address of MLflow's clients leads that names no run: to the experiment, or the run that logged the
 * model.
 */
export async function followLink(hash: string): Promise<void> {
	const target = linkedTarget(hash);
	if (!target) return;
	try {
		const [all, run] =
			await Promise.all([api.getExperiments(), target.model ? api.runOfModel(target.model) : null]);
		experiments.value = all;
		const experiment = all.find((e) => e.id === target.experiment)?.name;
		if (run) go({ ...emptyView, page: 'run', run, experiment: experiment ?? null });
		else if (experiment !== undefined) go({ ...emptyView, experiment });
		else problem.value = `There is no experiment ${target.experiment} here.`;
	} catch (e) {
		report(e);
	}
}

export async function loadExperiments(): Promise<void> {
	try {
		experiments.value = await api.getExperiments();
	} catch (e) {
		report(e);
	}
}
