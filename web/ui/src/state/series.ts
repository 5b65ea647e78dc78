// SPDX-License-Identifier: Apache-2.0
// Cache of the series that the charts draw: which are needed, loaded, and requested.
import { signal } from '@preact/signals';
import type { Metric, Run, RunDetail, Series } from '../base/types.ts';
import { ApiError } from './server/api.ts';
import { FORMULA } from '../base/panel.ts';
import { appendBuckets, compact } from '../base/series.ts';
import { zoomOf } from './axis.ts';
import { askCurves, askNewer, askTakenBack, type CurveQuestion } from './points.ts';
import { drawn, heldMetrics, inGroups, loading, mayHave, metricKeys, report } from './runs.ts';
import { view } from './view.ts';

/** Incremented with every change of the series below. */
export const seriesRev = signal(0);
/** True once the first screen has all its data. */
export const settled = signal(false);

/** Error of a formula by its key. */
export const refusedFormulas = signal<Record<string, string>>({});

/** Series by run, key and rank on the current axis; null while loading or if the run has none. */
const cache = new Map<string, Series | null>();
/** Needed keys: by whom, and in how many buckets. */
const wanted = new Map<string, Map<object, number>>();
/** Series with every point loaded: a zoom needs no request. */
const complete = new Set<string>();
/** Requested buckets of a series; a chart that has grown well beyond that requests it again. */
const askedFor = new Map<string, number>();
const GROWN = 1.3;
const BUCKETS_MAX = 1200;
/** Maximum of parallel requests for new points; the rest follows with the next change. */
const TAILS_MAX = 8;
let cacheSign = '';
let asking = 0;
let bucketWidth = 0;

const seriesKey = (run: string, key: string, rank = -1): string => run + '|' + key + '|' + rank;

/** Metrics needed on the screen. */
export function wantedKeys(): string[] {
	return [...wanted.keys()];
}

/** Returns true if none of the drawn runs has points of the metric; false while unknown. */
export function isBare(key: string): boolean {
	void seriesRev.value;
	return drawn.value.every((r) => heldMetrics.value === null || r.metrics[key] ? !r.metrics[key]
		: cache.get(seriesKey(r.id, key)) === null && !asking);
}

export function seriesFor(run: string, key: string, rank = -1): Series | null {
	return cache.get(seriesKey(run, key, rank)) ?? null;
}

/** All points of a metric of the drawn runs in a range of the chart's axis, for the tooltip. */
export async function pointsNear(key: string, from: number, to: number):
	Promise<(Series & { id: string })[]> {
	const runs = drawn.value.filter((r) => seriesFor(r.id, key)).map((r) => r.id);
	const list = await askCurves({ runs, keys: [key], buckets: BUCKETS_MAX, zoom: [from, to] });
	return list.map((t) => ({ ...t, id: t.run }));
}

/** Registers a visible chart and its width; missing series are requested together with those of other charts. */
export function want(key: string, width: number, who: object): void {
	const list = wanted.get(key) ?? new Map<object, number>();
	list.set(who, Math.min(BUCKETS_MAX, Math.max(100, Math.round(width))));
	wanted.set(key, list);
	schedule();
}

export function unwant(key: string, who: object): void {
	const list = wanted.get(key);
	list?.delete(who);
	if (!list?.size) wanted.delete(key);
}

/** Returns true once charts have had a frame to register: none may be near the window. */
let placed = false;

export function chartsPlaced(): void {
	placed = true;
	schedule();
}

let scheduled = false;

export function schedule(): void {
	if (scheduled) return;
	scheduled = true;
	setTimeout(() => {
		scheduled = false;
		void fill();
	});
}

/** Parameters under which the cached series were requested. */
function sign(): string {
	const v = view.value;
	return [v.x + (v.logX ? 'log' : ''), ...v.zoom ?? [], '', ...v.epochZoom ?? []].join('~');
}

interface Batch extends CurveQuestion {
	runs: Set<string>;
	keys: string[];
}

function isLacking(id: string, buckets: number): boolean {
	return !cache.has(id) || (!complete.has(id) && (askedFor.get(id) ?? Infinity) * GROWN < buckets);
}

/** Groups missing series by zoom range, one request each (a single one unless epochs and steps are mixed). */
function missing(): Batch[] {
	const groups = new Map<string, Batch>();
	for (const [key, widths] of wanted) {
		const most = Math.max(...widths.values());
		const lack = drawn.value.filter((r) => !inGroups.value.has(r.id) && mayHave(r, key)
			&& isLacking(seriesKey(r.id, key), most));
		if (!lack.length) continue;
		const zoom = zoomOf(key);
		const formula = key.startsWith(FORMULA) ? key : '';
		const name = formula + (zoom ? zoom.join('~') : '');
		const b = groups.get(name) ?? { runs: new Set<string>(), keys: [], zoom, buckets: 0 };
		lack.forEach((r) => b.runs.add(r.id));
		b.keys.push(key);
		b.buckets = Math.max(b.buckets, most);
		groups.set(name, b);
	}
	return [...groups.values()];
}

export async function fill(): Promise<void> {
	if (sign() !== cacheSign) {
		if (cacheSign.split('~', 1)[0] !== sign().split('~', 1)[0]) {
			complete.clear();
			takenBack.value = null;
		}
		for (const id of [...cache.keys()]) if (!complete.has(id)) cache.delete(id);
		cacheSign = sign();
	}
	const todo = missing();
	if (!todo.length) {
		const noCharts = !metricKeys.value.length || !['compare', 'run'].includes(view.value.page);
		if (!asking && !loading.value && (wanted.size || placed || noCharts)) settled.value = true;
		return;
	}
	await Promise.all(todo.map(ask));
	schedule();
}

function keep(s: Series, everything: boolean): void {
	const id = seriesKey(s.run, s.key, s.rank);
	cache.set(id, compact(s));
	if (everything && s.badX === null && s.xs.length >= s.count) complete.add(id);
	else complete.delete(id);
}

async function ask(b: Batch): Promise<void> {
	const at = cacheSign;
	for (const r of b.runs)
		for (const k of b.keys) {
			const id = seriesKey(r, k);
			cache.set(id, cache.get(id) ?? null);
			askedFor.set(id, b.buckets);
		}
	asking++;
	try {
		const list = await askCurves(b);
		if (at !== cacheSign) return;
		for (const s of list) keep(s, b.zoom === null);
		bucketWidth = b.buckets;
	} catch (e) {
		if (b.keys[0]!.startsWith(FORMULA) && e instanceof ApiError && e.status === 400)
			refusedFormulas.value = { ...refusedFormulas.value, [b.keys[0]!]: e.message };
		else report(e);
	} finally {
		asking--;
		seriesRev.value++;
	}
}

function drop(id: string): void {
	cache.delete(id);
	complete.delete(id);
}

/** Drops changed series that are not needed now; they are read again when needed. */
function forget(list: readonly Run[], kept: ReadonlySet<string>): void {
	const ids = new Set(list.map((r) => r.id));
	for (const [id, s] of cache) if (s && ids.has(s.run) && !kept.has(id)) drop(id);
}

/** What a series of a changed run needs: nothing, the points after its last drawn step, or a full read. */
function needOf(s: Series | null | undefined, m: Metric): 'nothing' | 'tail' | 'all' {
	const last = s?.xs[s.xs.length - 1];
	if (!s || last === undefined || view.value.x !== 'step' || view.value.zoom) return 'all';
	if (m.last_step < last || s.xs.length > 6 * bucketWidth || m.count < s.count) return 'all';
	return m.last_step > last ? 'tail' : 'nothing';
}

/** Handles changed runs. For drawn runs only points after the last drawn step are requested; other axes and restarted
 * runs are read again. */
export async function grow(changed: readonly Run[]): Promise<void> {
	const on = new Set(drawn.value.map((r) => r.id));
	const list = changed.filter((r) => on.has(r.id));
	const keys = [...wanted.keys()];
	const tails = new Map<number, { runs: Set<string>; keys: Set<string> }>();
	forget(changed, new Set(list.flatMap((r) => keys.map((k) => seriesKey(r.id, k)))));
	for (const r of list)
		for (const k of keys) {
			const id = seriesKey(r.id, k);
			const s = cache.get(id);
			const need = k.startsWith(FORMULA) ? 'all' : r.metrics[k] ? needOf(s, r.metrics[k]) : 'nothing';
			if (need === 'all') drop(id);
			if (need !== 'tail') continue;
			const last = s!.xs[s!.xs.length - 1]!;
			const t = tails.get(last) ?? { runs: new Set<string>(), keys: new Set<string>() };
			t.runs.add(r.id);
			t.keys.add(k);
			tails.set(last, t);
		}
	await Promise.all([...tails].slice(0, TAILS_MAX).map(([last, t]) => tail(last, [...t.runs], [...t.keys])));
	schedule();
}

async function tail(last: number, ids: string[], keys: string[]): Promise<void> {
	const at = cacheSign;
	const list = await askNewer(ids, keys, last);
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

/** A run with the points that its restarts rolled back, by metric, drawn below its curves; null if not shown. */
export const takenBack = signal<{ run: string; series: Map<string, Series[]> } | null>(null);

export async function showTakenBack(r: RunDetail | null): Promise<void> {
	if (!r) {
		takenBack.value = null;
		return;
	}
	try {
		takenBack.value = { run: r.id, series: await askTakenBack(r) };
	} catch (e) {
		report(e);
	}
}
