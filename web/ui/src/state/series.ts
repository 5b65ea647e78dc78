// The points that the charts draw: which series something on the screen needs, what of them is there, what is asked for.
import { computed, signal } from '@preact/signals';
import * as api from './api.ts';
import type { Run, RunDetail, Series } from '../base/types.ts';
import { appendBuckets, seriesOf } from '../base/series.ts';
import type { View } from '../base/url.ts';
import { drawn, loading, metricKeys, report, runs } from './runs.ts';
import { view } from './view.ts';

/** Grows with every change of the series below. */
export const seriesRev = signal(0);
/** True once everything on the first screen has its data. */
export const settled = signal(false);

/** Series by run, key and rank under the present axis; null while asked for or when the run has none. */
const cache = new Map<string, Series | null>();
/** Keys that something on the screen needs: who, and in how many buckets. */
const wanted = new Map<string, Map<object, number>>();
/** Series of which every point is drawn: a zoom needs nothing more from the server. */
const complete = new Set<string>();
/** In how many buckets a series was asked for; a chart that has grown well beyond that asks again. */
const askedFor = new Map<string, number>();
const GROWN = 1.3;
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

export function schedule(): void {
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

function isLacking(id: string, buckets: number): boolean {
	return !cache.has(id) || (!complete.has(id) && (askedFor.get(id) ?? Infinity) * GROWN < buckets);
}

/** Groups what is missing by zoom range: one request each (one in all unless epochs are mixed with steps). */
function missing(): Batch[] {
	const groups = new Map<string, Batch>();
	for (const [key, widths] of wanted) {
		const most = Math.max(...widths.values());
		const lack = drawn.value.filter((r) => r.metrics[key] && isLacking(seriesKey(r.id, key), most));
		if (!lack.length) continue;
		const zoom = zoomFor(key);
		const name = zoom ? zoom.join('~') : '';
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
		if (!cacheSign.startsWith(view.value.x)) {
			complete.clear();
			takenBack.value = null;
		}
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
		report(e);
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
	for (const r of b.runs)
		for (const k of b.keys) {
			const id = seriesKey(r, k);
			cache.set(id, cache.get(id) ?? null);
			askedFor.set(id, b.buckets);
		}
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
		report(e);
	} finally {
		asking--;
		seriesRev.value++;
	}
}

/** Of runs that changed: what nothing on the screen needs now is read again when it is. */
function forget(list: readonly Run[], kept: ReadonlySet<string>): void {
	const ids = new Set(list.map((r) => r.id));
	for (const [id, s] of cache)
		if (s && ids.has(s.run) && !kept.has(id)) {
			cache.delete(id);
			complete.delete(id);
		}
}

/**
 * Takes in that runs have changed. Of those that are drawn only what lies behind the last drawn step is asked for; other axes
 * and restarted runs are read again.
 */
export async function grow(changed: readonly Run[]): Promise<void> {
	const on = new Set(drawn.value.map((r) => r.id));
	const list = changed.filter((r) => on.has(r.id));
	const keys = [...wanted.keys()];
	const again = new Set<string>();
	const tails = new Map<number, { runs: string[]; keys: Set<string> }>();
	forget(changed, new Set(list.flatMap((r) => keys.map((k) => seriesKey(r.id, k)))));
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
