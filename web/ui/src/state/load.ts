// SPDX-License-Identifier: Apache-2.0
// Loads runs and experiments in pages, and the first screen's curves before anything is drawn.
import { batch, computed } from '@preact/signals';
import * as api from './server/api.ts';
import type { Run } from '../base/types.ts';
import { isExpression, readFilter } from '../base/filter/filter.ts';
import { defaultCurve, defaultGoal, isLoss, saidOf } from '../base/goal.ts';
import { chartOrder, frontKeys, openAtFirst } from '../base/order.ts';
import { FIRST } from '../base/params.ts';
import { DERIVED, metricsOfColumn } from '../base/rank.ts';
import { emptyView, isBare, linkedTarget, parseView, PLAIN, savedAlone } from '../base/url.ts';
import { changesToken, countKeys, curve, deletedRuns, experiments, filterProblem, goal, heldMetrics, keyRuns, loading,
	loadingMore, lookParams, metricKeys, liveRev, notHeld, problem, report, runs,
	shownExperiments } from './runs.ts';
import { fill, grow, unwant, want } from './series.ts';
import { pageWidth } from './sidebar.ts';
import { go, view } from './view.ts';

/** The first request, as in web/api/native/api_page.c: number of runs, limits of metrics and params for a complete
 * reply, and the metrics to ask for beyond them. */
export const FIRST_PAGE = 200;
const METRICS_MAX = 48;
export const PARAMS_MAX = 32;
const FRONT = ['train/loss', 'loss', 'val/loss', 'val_loss', 'eval/loss', 'epoch/val_loss', 'epoch/top1', 'val/top1'];
const PHASES_MAX = 12;
export const NEXT_PAGE = 1000;
/** Maximum number of runs in the page; a filter finds the others. */
export const HELD_MAX = 10000;

let loadSeq = 0;
/** Experiments and filter of the last load, as JSON. */
let loaded = '';

/** The filter for the server, which evaluates expressions; words are matched here, an unfinished one is ignored. */
export const serverFilter = computed(() => {
	const { kind } = readFilter(view.value.filter);
	return kind === 'whole' || kind === 'wrong' ? view.value.filter : '';
});

/** undefined: the most recent one. */
type Names = readonly string[] | undefined;

export const viewExperiments = computed<Names>(() =>
	(view.value.experiment === null ? undefined : shownExperiments.value));
export const viewPage = computed(() => view.value.page);

/** Charts of the first screen, estimated from the size of the window. */
function firstKeys(): string[] {
	const { first, groups } = chartOrder(metricKeys.value, frontKeys(curve.value, goal.value?.key), view.value);
	const table = Math.min(36 + runs.value.length * 27, innerHeight * 0.56);
	const room = innerHeight - table - 196;
	const below = Math.max(0, room - Math.min(420, Math.max(260, room)) + 120);
	const perRow = Number(getComputedStyle(document.documentElement).getPropertyValue('--cols'));
	const rest = groups.flatMap((g) => g.keys.slice(0, openAtFirst(g)));
	return innerWidth > 720 ? [...first, ...rest.slice(0, perRow * Math.ceil(below / 270))] : first;
}

/** Asks for the first screen's curves before the table is drawn; later the charts do so. */
function ahead(): void {
	if (view.value.page !== 'compare') return;
	const width = innerWidth > 720 ? pageWidth() / 2 - 211 : 320;
	const keys = firstKeys();
	for (const k of keys) want(k, width, ahead);
	void fill().then(() => keys.forEach((k) => unwant(k, ahead)));
}

/** Options of a list request: all metrics if there are few, else those in use. */
function question(more: { experiment: Names; filter: string; limit: number; page?: string }) {
	const held = heldMetrics.value;
	return { ...more, keys: true, ...(held ? { metrics: [...held] } : { most: METRICS_MAX }) };
}

interface FirstPage {
	list: Run[];
	next: string | null;
	/** Some params of the runs are not loaded yet. */
	some: boolean;
	deleted: readonly Run[];
}

/** The newest runs of the experiments, with the metrics in front; mine: false once another load has started. */
async function firstPage(names: Names, filter: string, mine: () => boolean): Promise<FirstPage | null> {
	heldMetrics.value = null;
	const got = await api.getRuns({ experiment: names, filter, limit: FIRST_PAGE, keys: true,
		most: METRICS_MAX, metrics: FRONT, paramsMost: PARAMS_MAX, params: FIRST });
	changesToken.value ??= got.token;
	if (!mine()) return null;
	let { runs: list, next } = got;
	const newest = names?.[0] ?? list[0]?.experiment;
	if (newest !== undefined && got.view && isBare(view.value)) openSaved({ ...got.view, experiment: newest });
	// the keys, and with them the goal, are those of all listed experiments
	if (!names && list.some((r) => r.experiment !== newest)) return firstPage([newest!], filter, mine);
	if (!names && next !== null) next = '';
	countKeys(got.keys, true);
	const here = new Set(FRONT.filter((k) => keyRuns.value.has(k)));
	const lack = got.leftOut ? frontMetrics(list).filter((k) => !here.has(k)) : [];
	const params = got.paramsLeftOut && readsParams();
	if (lack.length || params) {
		const fields = [...lack.length ? ['metrics'] : [], ...params ? ['params'] : []];
		const more = await api.getRuns({ experiment: names ?? newest, filter, limit: FIRST_PAGE,
			metrics: lack, fields });
		if (!mine()) return null;
		list = withMore(list, more.runs);
	}
	if (got.leftOut) heldMetrics.value = new Set([...here, ...lack]);
	const some = got.paramsLeftOut && !params;
	lookParams.value = some ? new Set(list.flatMap((r) => Object.keys(r.params))) : null;
	return { list, next, some, deleted: got.deleted };
}

/** Returns true if the view uses a param that the user chose. */
function readsParams(): boolean {
	const v = view.value;
	const ids = [...v.columns ?? [], v.sort ?? '', v.then ?? ''];
	return ids.some((id) => id.startsWith('p:') || id.startsWith(DERIVED)) || v.group.length > 0
		|| v.hue !== null || v.dash !== null || (v.filter !== '' && !isExpression(v.filter));
}

/** Metrics of the table and the charts of the first screen, as far as known. */
function frontMetrics(list: readonly Run[]): string[] {
	const keys = keyRuns.value;
	const v = view.value;
	const goalKey = v.goal ?? defaultGoal(keys, list.length, saidOf(list))?.key;
	const columns = [...v.columns ?? [], v.sort ?? '', v.then ?? ''].flatMap(metricsOfColumn);
	const phases = [...keys.keys()].filter((k) => k.startsWith('phase/')).slice(0, PHASES_MAX);
	const own = defaultCurve([...keys.keys()], goalKey ?? null);
	return [...new Set([goalKey, own && isLoss(own) ? own : null, ...columns, ...phases])]
		.filter((k): k is string => !!k && keys.has(k));
}

/** Merges further data of runs with the same ids. */
function withMore(list: readonly Run[], more: readonly Run[]): Run[] {
	const byId = new Map(more.map((r) => [r.id, r]));
	return list.map((r) => {
		const m = byId.get(r.id);
		return m ? { ...r, metrics: { ...r.metrics, ...m.metrics }, params: { ...r.params, ...m.params } } : r;
	});
}

export async function loadRuns(names: Names, filter: string): Promise<void> {
	if (loaded === JSON.stringify([names, filter])) return;
	const seq = ++loadSeq;
	const mine = () => seq === loadSeq;
	loading.value = true;
	problem.value = null;
	try {
		const page = await firstPage(names, filter, mine);
		if (!page) return;
		const of = names ?? page.list.slice(0, 1).map((r) => r.experiment);
		batch(() => {
			filterProblem.value = null;
			runs.value = page.list;
			deletedRuns.value = page.deleted;
			loading.value = false;
			loaded = JSON.stringify([of, filter]);
			if (!names && of.length && view.value.page === 'compare') go({ experiment: of[0]! });
		});
		ahead();
		if (page.some) {
			const rest = await api.getRuns({ experiment: of, filter, limit: FIRST_PAGE,
				fields: ['params'] });
			if (mine()) runs.value = withMore(runs.value, rest.runs);
		}
		// a page token belongs to the request that returned it
		await loadRest(of, filter, page.next === '' ? [] : runs.value, page.next, mine);
	} catch (e) {
		if (!mine()) return;
		const err = e as api.ApiError;
		loading.value = false;
		if (filter !== '' && err.status === 400) filterProblem.value = err.message;
		else report(err);
	}
}

/** Loads the pages after the first; '' starts again at the first. */
async function loadRest(names: Names, filter: string, list: readonly Run[], next: string | null,
	mine: () => boolean): Promise<void> {
	loadingMore.value = next !== null;
	notHeld.value = false;
	while (next !== null && mine()) {
		const q = { experiment: names, filter, limit: NEXT_PAGE, page: next };
		let more = await api.getRuns(question(q));
		if (!mine()) return;
		if (more.leftOut) {
			heldMetrics.value = new Set(keyRuns.value.keys());
			more = await api.getRuns(question(q));
			if (!mine()) return;
		}
		countKeys(more.keys, list.length === 0);
		list = list.concat(more.runs);
		runs.value = [...list];
		next = list.length < HELD_MAX ? more.next : null;
		if (more.next !== null && next === null) notHeld.value = true;
	}
	if (mine()) loadingMore.value = false;
	void needMetrics([]);
}

/** Metrics whose numbers the page needs and does not have for all runs. */
const lacking = new Set<string>();
let fetching = false;

/** Loads the numbers of these metrics for all runs; columns fill in when they arrive. */
export async function needMetrics(keys: readonly string[]): Promise<void> {
	const held = heldMetrics.value;
	if (held) for (const k of keys) if (!held.has(k) && keyRuns.value.has(k)) lacking.add(k);
	if (!held || !lacking.size || fetching || loading.value || loadingMore.value) return;
	const now = [...lacking].slice(0, METRICS_MAX);
	const of = loaded;
	fetching = true;
	try {
		await fetchMetrics(now, () => of === loaded);
	} catch (e) {
		report(e);
	} finally {
		now.forEach((k) => lacking.delete(k));
		fetching = false;
	}
	if (lacking.size) void needMetrics([]);
}

async function fetchMetrics(keys: readonly string[], mine: () => boolean): Promise<void> {
	const [experiment, filter] = JSON.parse(loaded) as [string[], string];
	const found: Run[] = [];
	let next: string | null = '';
	while (next !== null && found.length < runs.value.length) {
		const more: Awaited<ReturnType<typeof api.getRuns>> = await api.getRuns({ experiment, filter,
			limit: NEXT_PAGE, page: next, metrics: keys, fields: ['metrics'] });
		if (!mine()) return;
		found.push(...more.runs);
		next = more.next;
	}
	batch(() => {
		runs.value = withMore(runs.value, found);
		heldMetrics.value = heldMetrics.value && new Set([...heldMetrics.value, ...keys]);
	});
}

/** Reloads the list after the server was unavailable. */
export function reloadRuns(): Promise<void> {
	loaded = '';
	return loadRuns(viewExperiments.value, serverFilter.value);
}

/** Resolves an address of MLflow's clients without a run: opens the experiment, or the run that logged the model. */
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

/** Shows a view as it was saved, in its experiment's current name. */
export function openSaved(v: { id: string; query: string; experiment: string }): void {
	go({ ...emptyView, ...parseView(v.query), experiment: v.experiment, saved: v.id });
}

/** Opens the saved view if the address contains only that; returns an error or null. */
export async function openLinked(): Promise<unknown> {
	const id = savedAlone(location.search);
	if (id === null) return null;
	try {
		openSaved(await api.request('views/' + id) as unknown as Parameters<typeof openSaved>[0]);
		return null;
	} catch (e) {
		go({ saved: PLAIN });
		return e;
	}
}

export async function loadExperiments(): Promise<void> {
	try {
		experiments.value = await api.getExperiments();
	} catch (e) {
		report(e);
	}
}

/** Catches up after a gap in live updates: the list, and new points of drawn runs. */
export function refresh(): void {
	void reloadRuns().then(() => grow(runs.value)).finally(() => liveRev.value++);
	if (viewPage.value === 'experiments') void loadExperiments();
}
