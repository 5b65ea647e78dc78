// Asks the server for runs and experiments, in pages, and for the first screen's curves before anything is drawn.
import { batch, computed } from '@preact/signals';
import * as api from './server/api.ts';
import type { Run } from '../base/types.ts';
import { defaultCurve, defaultGoal, isLoss } from '../base/goal.ts';
import { chartOrder, frontKeys, openAtFirst } from '../base/order.ts';
import { FIRST } from '../base/params.ts';
import { DERIVED, metricsOfColumn } from '../base/rank.ts';
import { emptyView, isBare, isExpression, linkedTarget, parseView, PLAIN, savedAlone } from '../base/url.ts';
import { countKeys, curve, experiments, filterProblem, goal, heldMetrics, keyRuns, loading, loadingMore, lookParams,
	metricKeys, liveRev, notHeld, problem, report, runs } from './runs.ts';
import { fill, grow, unwant, want } from './series.ts';
import { go, view } from './view.ts';

/**
 * The first question, as in web/api/native/api_page.c: how many runs, how many metrics and params all come with it, and
 * which metrics come where there are more.
 */
const FIRST_PAGE = 200;
const METRICS_MAX = 48;
const PARAMS_MAX = 32;
const FRONT = ['train/loss', 'loss', 'val/loss', 'val_loss', 'eval/loss', 'epoch/val_loss', 'epoch/top1', 'val/top1'];
const PHASES_MAX = 12;
const NEXT_PAGE = 1000;
/** Runs that the page holds at most; a filter reaches the others. */
const HELD_MAX = 10000;

let loadSeq = 0;
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

/** What the page asks of a list of runs: with few metrics all of them come, else those that it holds. */
function question(more: { experiment?: string; filter: string; limit: number; page?: string }) {
	const held = heldMetrics.value;
	return { ...more, keys: true, ...(held ? { metrics: [...held] } : { most: METRICS_MAX }) };
}

interface Load {
	name: string | null;
	filter: string;
	/** False once another load has begun. */
	mine(): boolean;
}

interface FirstPage {
	list: Run[];
	next: string | null;
	/** The runs have params that are not here yet. */
	some: boolean;
}

/** The newest runs of an experiment (of the one that was written to last without a name), with the metrics in front. */
async function firstPage({ name, filter, mine }: Load): Promise<FirstPage | null> {
	heldMetrics.value = null;
	const got = await api.getRuns({ experiment: name ?? undefined, filter, limit: FIRST_PAGE, keys: true,
		most: METRICS_MAX, metrics: FRONT, paramsMost: PARAMS_MAX, params: FIRST });
	if (!mine()) return null;
	let { runs: list, next } = got;
	const newest = name ?? list[0]?.experiment;
	if (newest !== undefined && got.view && isBare(view.value)) openSaved({ ...got.view, experiment: newest });
	if (list.some((r) => r.experiment !== newest)) {
		list = list.filter((r) => r.experiment === newest);
		next = '';
	} else if (name === null && next !== null) next = '';
	countKeys(got.keys, true);
	const here = new Set(FRONT.filter((k) => keyRuns.value.has(k)));
	const lack = got.leftOut ? frontMetrics(list.length).filter((k) => !here.has(k)) : [];
	const params = got.paramsLeftOut && readsParams();
	if (lack.length || params) {
		const fields = [...lack.length ? ['metrics'] : [], ...params ? ['params'] : []];
		const more = await api.getRuns({ experiment: newest, filter, limit: FIRST_PAGE,
			metrics: lack, fields });
		if (!mine()) return null;
		list = withMore(list, more.runs);
	}
	if (got.leftOut) heldMetrics.value = new Set([...here, ...lack]);
	const some = got.paramsLeftOut && !params;
	lookParams.value = some ? new Set(list.flatMap((r) => Object.keys(r.params))) : null;
	return { list, next, some };
}

/** Whether the view says something by any param that the reader chose. */
function readsParams(): boolean {
	const v = view.value;
	const ids = [...v.columns ?? [], v.sort ?? ''];
	return ids.some((id) => id.startsWith('p:') || id.startsWith(DERIVED)) || v.group.length > 0
		|| v.hue !== null || v.dash !== null || (v.filter !== '' && !isExpression(v.filter));
}

/** Metrics that the table and the charts of the first screen are about, as far as the state knows. */
function frontMetrics(n: number): string[] {
	const keys = keyRuns.value;
	const v = view.value;
	const goalKey = v.goal ?? defaultGoal(keys, n)?.key;
	const columns = [...v.columns ?? [], v.sort ?? ''].flatMap(metricsOfColumn);
	const phases = [...keys.keys()].filter((k) => k.startsWith('phase/')).slice(0, PHASES_MAX);
	const own = defaultCurve([...keys.keys()], goalKey ?? null);
	return [...new Set([goalKey, own && isLoss(own) ? own : null, ...columns, ...phases])]
		.filter((k): k is string => !!k && keys.has(k));
}

/** The runs with what others of their ids have besides. */
function withMore(list: readonly Run[], more: readonly Run[]): Run[] {
	const byId = new Map(more.map((r) => [r.id, r]));
	return list.map((r) => {
		const m = byId.get(r.id);
		return m ? { ...r, metrics: { ...r.metrics, ...m.metrics }, params: { ...r.params, ...m.params } } : r;
	});
}

/** The params that did not come with the first page, once that is drawn. */
async function restOfParams(experiment: string | undefined, filter: string, mine: () => boolean): Promise<void> {
	const more = await api.getRuns({ experiment, filter, limit: FIRST_PAGE, fields: ['params'] });
	if (mine()) runs.value = withMore(runs.value, more.runs);
}

export async function loadRuns(name: string | null, filter: string): Promise<void> {
	if (name !== null && loaded === name + '\n' + filter) return;
	const seq = ++loadSeq;
	const mine = () => seq === loadSeq;
	loading.value = true;
	problem.value = null;
	try {
		const page = await firstPage({ name, filter, mine });
		if (!page) return;
		const newest = name ?? page.list[0]?.experiment;
		batch(() => {
			filterProblem.value = null;
			runs.value = page.list;
			loading.value = false;
			loaded = (newest ?? '') + '\n' + filter;
			if (name === null && newest !== undefined && view.value.page === 'compare')
				go({ experiment: newest });
		});
		ahead();
		if (page.some) await restOfParams(newest, filter, mine);
		// a page's token belongs to the question that gave it
		await loadRest(newest, filter, page.next === '' ? [] : runs.value, page.next, mine);
	} catch (e) {
		if (!mine()) return;
		const err = e as api.ApiError;
		loading.value = false;
		if (filter !== '' && err.status === 400) filterProblem.value = err.message;
		else report(err);
	}
}

/** The pages after the first, added as they come; '' starts again at the first. */
async function loadRest(name: string | undefined, filter: string, list: readonly Run[], next: string | null,
	mine: () => boolean): Promise<void> {
	loadingMore.value = next !== null;
	notHeld.value = false;
	while (next !== null && mine()) {
		const q = { experiment: name, filter, limit: NEXT_PAGE, page: next };
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

/** Metrics that something on the page shows numbers of, and that are not here for all of its runs. */
const lacking = new Set<string>();
let fetching = false;

/** Asks for the numbers of these metrics for all runs; columns are filled when they are there. */
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
	const [experiment, filter] = loaded.split('\n') as [string, string];
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

/** Shows a view as it was saved, of the experiment's name of now. */
export function openSaved(v: { id: string; query: string; experiment: string }): void {
	go({ ...emptyView, ...parseView(v.query), experiment: v.experiment, saved: v.id });
}

/** Where the address is that of a saved view alone: shows it; what went wrong, or null. */
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

/** What may have changed while nobody listened: the list again, and what the drawn runs have gained. */
export function refresh(): void {
	void reloadRuns().then(() => grow(runs.value)).finally(() => liveRev.value++);
	if (viewPage.value === 'experiments') void loadExperiments();
}
