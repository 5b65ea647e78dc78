// All state of the page, as signals: the view (mirrored in the address), the runs of an experiment, their series, what
// the pointer is on. Views read it and call its functions; nothing else changes it.
import { batch, computed, effect, signal } from '@preact/signals';
import * as api from './api.ts';
import type { Experiment, Run, RunDetail, Series } from './base/types.ts';
import { assignLooks } from './base/colour.ts';
import { defaultCurve, defaultGoal, directionOf, type Goal } from './base/goal.ts';
import { chartOrder, frontKeys, openAtFirst } from './base/order.ts';
import { splitParams } from './base/params.ts';
import { appendBuckets, seriesOf } from './base/series.ts';
import { emptyView, isExpression, matchesWords, linkedQuery, parseView, viewQuery, type View } from './base/url.ts';
import { orderRuns, partition } from './base/rank.ts';

/** As in src/index.html, which asks for the first page before this script is there. */
const FIRST_PAGE = 200;
const NEXT_PAGE = 1000;
const SHOWN_ALL = 16;
const SHOWN_MANY = 10;
/** Changes are taken at once, but not more often than this. */
const LIVE_MS = 1000;
const ADDRESS_MS = 120;
const SOON_MS = 60;

export const view = signal<View>(parseView(linkedQuery(location.hash) ?? location.search));
export const runs = signal<Run[]>([]);
export const experiments = signal<Experiment[] | null>(null);
export const loading = signal(true);
export const loadingMore = signal(false);
export const problem = signal<string | null>(null);
export const filterProblem = signal<string | null>(null);
/** The run under the pointer or the keyboard, whose lines stand in front. */
export const lit = signal<string | null>(null);
/** Where a chart's pointer is: the metric and x in units of the chart. */
export const cursor = signal<{ key: string; x: number } | null>(null);
/** Grows with every change of the series below. */
export const seriesRev = signal(0);
/** True once everything on the first screen has its data. */
export const settled = signal(false);

// ---- the address ----------------------------------------------------------------------------------------------

/** Changes the view; push makes a step of the browser's history, for changes of page. */
export function go(patch: Partial<View>, push = false): void {
	const next = { ...view.value, ...patch };
	if (push) {
		writeAddress();
		history.pushState(null, '', location.pathname + viewQuery(next));
	}
	view.value = next;
	if (Date.now() - wroteAt > ADDRESS_MS) writeAddress();
	else if (!addressTimer) addressTimer = window.setTimeout(writeAddress, ADDRESS_MS);
}

let addressTimer = 0;
let wroteAt = 0;

/** A slider changes the view many times a second; browsers refuse that many changes of the address. */
function writeAddress(): void {
	clearTimeout(addressTimer);
	addressTimer = 0;
	wroteAt = Date.now();
	const address = location.pathname + viewQuery(view.value);
	if (address !== location.pathname + location.search) history.replaceState(null, '', address);
}

export function addressOf(patch: Partial<View>): string {
	return location.pathname + (viewQuery({ ...view.value, ...patch }) || '?');
}

/** Back to the whole range; a spike that was looked at no longer sets the axis. */
export function resetZoom(): void {
	go({ zoom: null, full: false });
}

export function openRun(id: string): void {
	lit.value = null;
	cursor.value = null;
	go({ page: 'run', run: id.slice(0, 12) }, true);
}

export function openExperiment(name: string): void {
	go({ ...emptyView, experiment: name }, true);
}

addEventListener('popstate', () => {
	clearTimeout(addressTimer);
	addressTimer = 0;
	view.value = parseView(linkedQuery(location.hash) ?? location.search);
});

// ---- what follows from runs and view --------------------------------------------------------------------------

export const experiment = computed(() => view.value.experiment ?? runs.value[0]?.experiment ?? null);

export const metricKeys = computed(() => {
	const set = new Set<string>();
	for (const r of runs.value) for (const k in r.metrics) set.add(k);
	return [...set].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
});

export const paramKeys = computed(() => {
	const set = new Set<string>();
	for (const r of runs.value) for (const k in r.params) set.add(k);
	return [...set].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
});

export const goal = computed<Goal | null>(() => {
	const v = view.value;
	if (v.goal !== null) return { key: v.goal, dir: v.dir ?? directionOf(v.goal) };
	return defaultGoal(runs.value);
});

export const curve = computed(() => defaultCurve(metricKeys.value, goal.value?.key ?? null));
export const split = computed(() => splitParams(runs.value));
export const looks = computed(() => assignLooks(runs.value));

export const rows = computed<Run[]>(() => {
	const words = view.value.filter;
	let list = runs.value;
	if (words !== '' && !isExpression(words))
		list = list.filter((r) => matchesWords(words, [r.name, r.status, r.notes, r.id.slice(0, 8),
			...Object.entries(r.params).map(([k, v]) => k + '=' + v), ...Object.values(r.tags),
			...r.alerts.map((a) => a.text)]));
	return orderRuns(list, goal.value, view.value.sort, view.value.desc);
});

/** Rows that fell out stand below this index when the order is by a metric. */
export const fallenFrom = computed(() => partition(rows.value, view.value.sort));

const chosen = computed<Set<string>>(() => {
	const v = view.value.shown;
	const list = rows.value;
	if (v !== null) return new Set(list.filter((r) => v.some((p) => r.id.startsWith(p))).map((r) => r.id));
	if (list.length <= SHOWN_ALL) return new Set(list.map((r) => r.id));
	const set = new Set(list.slice(0, SHOWN_MANY).map((r) => r.id));
	for (const r of list) if (r.status === 'running' && set.size < SHOWN_ALL) set.add(r.id);
	return set;
});

/** Runs drawn in the charts, in the order of the table. */
export const shown = computed(() => rows.value.filter((r) => chosen.value.has(r.id)));

/** The run whose page is open. */
export const opened = signal<RunDetail | null>(null);

/** Runs that the charts draw now: those of the table, or the one of its own page. */
export const drawn = computed<readonly Run[]>(() => {
	if (view.value.page !== 'run') return shown.value;
	const one = opened.value;
	return one ? [runs.value.find((r) => r.id === one.id) ?? one] : [];
});

export function isShown(id: string): boolean {
	return chosen.value.has(id);
}

export function toggleShown(id: string): void {
	const set = new Set(chosen.value);
	if (!set.delete(id)) set.add(id);
	setShown(set);
}

export function setShown(set: Set<string> | null): void {
	go({ shown: set === null ? null : [...set].map((id) => id.slice(0, 8)) });
}

// ---- runs -----------------------------------------------------------------------------------------------------

let loadSeq = 0;
/** The first request asks for the newest runs of all experiments: the browser has begun it with the page. */
let firstLoad = true;
/** What runs holds: the experiment and filter of the last load. */
let loaded = '';

/** What the server is asked for: an expression goes there, words are looked for here. */
const serverFilter = computed(() => (isExpression(view.value.filter) ? view.value.filter : ''));

const viewExperiment = computed(() => view.value.experiment);
const viewPage = computed(() => view.value.page);

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

async function loadRuns(name: string | null, filter: string): Promise<void> {
	if (name !== null && loaded === name + '\n' + filter) return;
	const seq = ++loadSeq;
	const mine = () => seq === loadSeq;
	loading.value = true;
	problem.value = null;
	try {
		const any = name === null || (firstLoad && filter === '');
		if (firstLoad && !any) void api.getRuns({ limit: FIRST_PAGE }).catch(() => undefined);
		firstLoad = false;
		let { runs: list, next } = await api.getRuns({ experiment: any ? undefined : name, filter, limit: FIRST_PAGE });
		if (!mine()) return;
		const newest = name ?? list[0]?.experiment;
		const mixed = any && list.some((r) => r.experiment !== newest);
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
			if (name === null && newest !== undefined && view.value.page === 'compare') go({ experiment: newest });
		});
		ahead();
		if (next !== null && mixed) {
			list = [];
			next = '';
		}
		await loadRest(newest, filter, list, next, mine);
	} catch (e) {
		if (!mine()) return;
		const err = e as api.ApiError;
		loading.value = false;
		if (filter !== '' && err.status === 400) filterProblem.value = err.message;
		else problem.value = err.message;
	}
}

/** The pages after the first, added as they come; '' starts again at the first. */
async function loadRest(name: string | undefined, filter: string, list: Run[], next: string | null,
	mine: () => boolean): Promise<void> {
	loadingMore.value = next !== null;
	while (next !== null && mine()) {
		const more: { runs: Run[]; next: string | null } = await api.getRuns({ experiment: name, filter,
			limit: NEXT_PAGE, page: next });
		if (!mine()) return;
		list = list.concat(more.runs);
		runs.value = list;
		next = more.next;
	}
	if (mine()) loadingMore.value = false;
}

export async function loadExperiments(): Promise<void> {
	try {
		experiments.value = await api.getExperiments();
	} catch (e) {
		problem.value = (e as Error).message;
	}
}

// ---- series ---------------------------------------------------------------------------------------------------

/** Series by run, key and rank under the present axis; null while asked for or when the run has none. */
const cache = new Map<string, Series | null>();
/** Keys that something on the screen needs: who, and in how many buckets. */
const wanted = new Map<string, Map<object, number>>();
/** Series of which every point is drawn: a zoom needs nothing more from the server. */
const complete = new Set<string>();
let cacheSign = '';
let asking = 0;
let bucketWidth = 0;

export function seriesKey(run: string, key: string, rank = -1): string {
	return run + '|' + key + '|' + rank;
}

export function seriesFor(run: string, key: string, rank = -1): Series | null {
	return cache.get(seriesKey(run, key, rank)) ?? null;
}

/** steps_per_epoch of a run; null when it has none. */
export function stepsPerEpoch(r: Run | undefined): number | null {
	const n = Number(r?.params.steps_per_epoch);
	return n > 0 ? n : null;
}

/** The x of a chart: series named epoch/… of runs that say how long an epoch is count epochs. */
export function unitOf(key: string): 'step' | 'time' | 'epoch' {
	const x = view.value.x;
	if (x === 'step' && key.startsWith('epoch/') && runs.value.some((r) => stepsPerEpoch(r) !== null)) return 'epoch';
	return x;
}

/** Steps in one epoch when all shown runs agree, for moving a cursor or a zoom between the two units. */
export const commonEpoch = computed(() => {
	const set = new Set(drawn.value.map(stepsPerEpoch));
	const [only] = set;
	return set.size === 1 ? only ?? null : null;
});

/** Moves x from the unit of the view to that of a chart; null when there is no way. */
export function toUnit(key: string, x: number): number | null {
	if (unitOf(key) === view.value.x) return x;
	return commonEpoch.value === null ? null : x / commonEpoch.value;
}

export function fromUnit(key: string, x: number): number | null {
	if (unitOf(key) === view.value.x) return x;
	return commonEpoch.value === null ? null : x * commonEpoch.value;
}

function zoomFor(key: string): [number, number] | null {
	const z = view.value.zoom;
	if (!z) return null;
	const a = toUnit(key, z[0]);
	const b = toUnit(key, z[1]);
	return a === null || b === null ? null : [a, b];
}

/** A chart says that it is visible and how wide; the series it lacks are asked for together with those of others. */
export function want(key: string, width: number, who: object): void {
	const list = wanted.get(key) ?? new Map<object, number>();
	list.set(who, Math.min(1200, Math.max(100, Math.round(width))));
	wanted.set(key, list);
	schedule();
}

export function unwant(key: string, who: object): void {
	const list = wanted.get(key);
	list?.delete(who);
	if (!list?.size) wanted.delete(key);
}

let scheduled = false;

function schedule(): void {
	if (scheduled) return;
	scheduled = true;
	setTimeout(() => {
		scheduled = false;
		void fill();
	});
}

/** Zoomed series carry a point beyond each edge, so that lines run to the border. */
function sign(): string {
	const v = view.value;
	return v.x + (v.zoom ? v.zoom.join('~') : '');
}

interface Batch {
	runs: Set<string>;
	keys: string[];
	zoom: [number, number] | null;
	buckets: number;
}

/** Groups what is missing by zoom range: one request each (one in all unless epochs are mixed with steps). */
function missing(): Batch[] {
	const groups = new Map<string, Batch>();
	for (const [key, widths] of wanted) {
		const lack = drawn.value.filter((r) => r.metrics[key] && !cache.has(seriesKey(r.id, key)));
		if (!lack.length) continue;
		const zoom = zoomFor(key);
		const name = zoom ? zoom.join('~') : '';
		const b = groups.get(name) ?? { runs: new Set<string>(), keys: [], zoom, buckets: 0 };
		lack.forEach((r) => b.runs.add(r.id));
		b.keys.push(key);
		b.buckets = Math.max(b.buckets, ...widths.values());
		groups.set(name, b);
	}
	return [...groups.values()];
}

async function fill(): Promise<void> {
	if (sign() !== cacheSign) {
		if (!cacheSign.startsWith(view.value.x)) complete.clear();
		for (const id of [...cache.keys()]) if (!complete.has(id)) cache.delete(id);
		cacheSign = sign();
	}
	const todo = missing();
	if (!todo.length) {
		if (!asking && !loading.value && (wanted.size || !metricKeys.value.length)) settled.value = true;
		return;
	}
	await Promise.all(todo.map(ask));
	schedule();
}

function axisOf(x: View['x']): 'step' | 'elapsed' | 'epoch' {
	return x === 'time' ? 'elapsed' : x;
}

/** What restarts of one run took back: the run, and its older segments by metric; asked for with a button. */
export const takenBack = signal<{ run: string; series: Map<string, Series[]> } | null>(null);

export async function showTakenBack(r: RunDetail | null): Promise<void> {
	if (!r) {
		takenBack.value = null;
		return;
	}
	const newest = Math.max(...r.segments.map((g) => g.segment));
	const series = new Map<string, Series[]>();
	try {
		const list = await api.querySeries({
			runs: [r.id], keys: Object.keys(r.metrics), rank: -1, buckets: 400, x: axisOf(view.value.x), segments: 'all',
		});
		for (const g of list)
			if (g.segment < newest) series.set(g.key, [...(series.get(g.key) ?? []), seriesOf(g.run, g.key, g.rank, g.columns)]);
		takenBack.value = { run: r.id, series };
	} catch (e) {
		problem.value = (e as Error).message;
	}
}

function keep(s: Series, everything: boolean): void {
	const id = seriesKey(s.run, s.key, s.rank);
	cache.set(id, s);
	if (everything && s.badX === null && s.xs.length >= s.count) complete.add(id);
	else complete.delete(id);
}

async function ask(b: Batch): Promise<void> {
	const at = cacheSign;
	for (const r of b.runs) for (const k of b.keys) cache.set(seriesKey(r, k), cache.get(seriesKey(r, k)) ?? null);
	asking++;
	try {
		const margin = b.zoom ? (b.zoom[1] - b.zoom[0]) * 0.02 : 0;
		const list = await api.querySeries({
			runs: [...b.runs], keys: b.keys, rank: -1, buckets: b.buckets, x: axisOf(view.value.x),
			...(b.zoom ? { from: b.zoom[0] - margin, to: b.zoom[1] + margin } : {}),
		});
		if (at !== cacheSign) return;
		for (const s of list) keep(seriesOf(s.run, s.key, s.rank, s.columns), b.zoom === null);
		bucketWidth = b.buckets;
	} catch (e) {
		problem.value = (e as Error).message;
	} finally {
		asking--;
		seriesRev.value++;
	}
}

// ---- live -----------------------------------------------------------------------------------------------------

const changed = new Set<string>();
let liveTimer = 0;
let tookAt = 0;

function onRuns(ids: string[]): void {
	ids.forEach((id) => changed.add(id));
	if (!liveTimer) liveTimer = window.setTimeout(() => void takeChanges(), Math.max(SOON_MS, tookAt + LIVE_MS - Date.now()));
}

/** Reads the runs that changed and the points they have gained. */
async function takeChanges(): Promise<void> {
	const ids = [...changed];
	changed.clear();
	tookAt = Date.now();
	try {
		const fresh = (await api.getRuns({ ids, limit: 1000 })).runs.filter((r) => r.experiment === experiment.value
			|| experiment.value === null);
		if (fresh.length && serverFilter.value === '') mergeRuns(fresh);
		const on = new Set(drawn.value.map((r) => r.id));
		await grow(fresh.filter((r) => on.has(r.id)));
	} catch (e) {
		problem.value = (e as Error).message;
	} finally {
		liveTimer = changed.size ? window.setTimeout(() => void takeChanges(), LIVE_MS) : 0;
		liveRev.value++;
	}
}

/** Grows whenever something of a run may have changed, for pages that hold more than the list does. */
export const liveRev = signal(0);

function mergeRuns(fresh: Run[]): void {
	const byId = new Map(fresh.map((r) => [r.id, r]));
	const list = runs.value.map((r) => byId.get(r.id) ?? r);
	const known = new Set(runs.value.map((r) => r.id));
	batch(() => {
		problem.value = null;
		runs.value = [...fresh.filter((r) => !known.has(r.id)), ...list];
	});
}

/** Asks only for what lies behind the last drawn step; other axes and restarted runs are read again. */
async function grow(list: Run[]): Promise<void> {
	const keys = [...wanted.keys()];
	const again = new Set<string>();
	const tails = new Map<number, { runs: string[]; keys: Set<string> }>();
	for (const r of list)
		for (const k of keys) {
			const s = cache.get(seriesKey(r.id, k));
			const m = r.metrics[k];
			if (!m) continue;
			const last = s?.xs[s.xs.length - 1];
			if (!s || last === undefined || view.value.x !== 'step' || view.value.zoom || m.last_step < last
				|| s.xs.length > 6 * bucketWidth || m.count < s.count) again.add(seriesKey(r.id, k));
			else if (m.last_step > last) {
				const t = tails.get(last) ?? { runs: [], keys: new Set<string>() };
				t.runs.push(r.id);
				t.keys.add(k);
				tails.set(last, t);
			}
		}
	for (const id of again) {
		cache.delete(id);
		complete.delete(id);
	}
	await Promise.all([...tails].slice(0, 8).map(([last, t]) => tail(last, t.runs, [...t.keys])));
	schedule();
}

async function tail(last: number, ids: string[], keys: string[]): Promise<void> {
	const at = cacheSign;
	const list = await api.querySeries({ runs: ids, keys, rank: -1, buckets: 100, x: 'step', from: last + 1 });
	if (at !== cacheSign) return;
	for (const t of list) {
		const s = cache.get(seriesKey(t.run, t.key, t.rank));
		if (!s || (s.xs[s.xs.length - 1] ?? -Infinity) > last) continue;
		const grown: Series = { ...s, xs: [...s.xs], ys: [...s.ys], mx: [...s.mx], mean: [...s.mean],
			weight: [...s.weight] };
		appendBuckets(grown, t.columns);
		keep(grown, complete.has(seriesKey(t.run, t.key, t.rank)));
	}
	seriesRev.value++;
}

let closeEvents: (() => void) | null = null;
let pollTimer = 0;
let token: string | null = null;

/** Without events the page asks for changes, but only while a run is running. */
async function poll(): Promise<void> {
	pollTimer = 0;
	if (document.hidden) return;
	if (token === null || runs.value.some((r) => r.status === 'running')) {
		try {
			const c = await api.getChanges(token);
			if (token !== null && c.runs.length) onRuns(c.runs);
			token = c.token;
		} catch {
			token = null;
		}
	}
	if (runs.value.some((r) => r.status === 'running')) pollTimer = window.setTimeout(() => void poll(), 2 * LIVE_MS);
}

/** One open connection while the page is visible; a hidden tab holds none. */
function follow(): void {
	closeEvents?.();
	closeEvents = null;
	clearTimeout(pollTimer);
	if (document.hidden) return;
	closeEvents = api.openEvents(onRuns, () => void poll());
}

// ---- start ----------------------------------------------------------------------------------------------------

let hiddenAt = 0;

export function start(): void {
	effect(() => {
		const name = viewExperiment.value;
		const filter = serverFilter.value;
		void loadRuns(name, filter);
		if (viewPage.value === 'experiments') void loadExperiments();
	});
	effect(() => {
		void view.value.x;
		void view.value.zoom;
		void drawn.value;
		schedule();
	});
	let began = false;
	effect(() => {
		if (!settled.value || began) return;
		began = true;
		follow();
		if (experiments.value === null) void loadExperiments();
	});
	document.addEventListener('visibilitychange', () => {
		if (document.hidden) hiddenAt = Date.now();
		if (began) follow();
		if (!document.hidden && began && hiddenAt) onRuns(runs.value.slice(0, 100).map((r) => r.id));
	});
}
