// The one place that asks the server for points: what each part of the page asks for, and how the answer is read. Holds
// nothing: what came is kept by those who asked.
import { fieldAddress } from '../base/group.ts';
import { FORMULA } from '../base/panel.ts';
import type { BucketColumns, RunDetail, Series } from '../base/types.ts';
import { askSeries, num, queryGroups, queryLines, querySeries, request, type GroupReply, type Json, type SeriesReply }
	from './server/api.ts';
import { view } from './view.ts';

/** Zoomed curves carry a point beyond each edge, so that lines run to the border. */
const MARGIN = 0.02;
const TAIL_BUCKETS = 100;
const TAKEN_BACK_BUCKETS = 400;

/** Curves of the runs as a whole. */
export interface CurveQuestion {
	runs: Iterable<string>;
	keys: readonly string[];
	/** As many points as there are pixels. */
	buckets: number;
	/** In the unit of the axis. */
	zoom: [number, number] | null;
}

/** The view's axis as it is asked for. */
function viewAxis(): { x: 'step' | 'time' | 'elapsed' | 'epoch'; spacing?: 'log' } {
	const { x, logX } = view.value;
	return { x: x === 'time' ? 'elapsed' : x === 'clock' ? 'time' : x, ...(logX ? { spacing: 'log' } : {}) };
}

/** A zoom with its margins; none where the whole range is shown. */
function rangeOf(zoom: [number, number] | null): { from?: number; to?: number } {
	if (!zoom) return {};
	const [from, to] = zoom;
	if (view.value.logX && from > 0) {
		const factor = (to / from) ** MARGIN;
		return { from: from / factor, to: to * factor };
	}
	const margin = (to - from) * MARGIN;
	return { from: from - margin, to: to + margin };
}

/** What a formula made goes by the key that it was asked for with. */
function named<T extends { key: string }>(keys: readonly string[], list: T[]): T[] {
	const key = keys[0];
	return key?.startsWith(FORMULA) ? list.map((t) => ({ ...t, key })) : list;
}

/** Under the view's axis. */
export async function askCurves({ runs, keys, buckets, zoom }: CurveQuestion): Promise<Series[]> {
	const list = await queryLines({ runs: [...runs], keys, rank: -1, buckets, ...viewAxis(), ...rangeOf(zoom) });
	return named(keys, list.map((t) => t.series));
}

/** The curves of groups of runs, under the view's axis; each has its key, its runs and their means in a band. */
export async function askGroups({ runs, keys, buckets, zoom }: CurveQuestion): Promise<GroupReply[]> {
	const range = zoom ? { from: zoom[0], to: zoom[1] } : {};
	const list = await queryGroups({ runs: [...runs], keys, rank: null, buckets, ...viewAxis(), ...range },
		view.value.group.map(fieldAddress), view.value.band);
	return named(keys, list);
}

/** Curves of the runs as a whole as the server sends them, with every digit, to be kept. */
export function askWhole(runs: readonly string[], keys: readonly string[], buckets: number,
	x: 'step' | 'elapsed' | 'epoch'): Promise<Json[]> {
	return askSeries({ runs, keys, rank: -1, buckets, x });
}

/** What lies behind a step. */
export function askNewer(runs: readonly string[], keys: readonly string[], step: number): Promise<SeriesReply[]> {
	return querySeries({ runs, keys, rank: -1, buckets: TAIL_BUCKETS, x: 'step', from: step + 1 });
}

/**
 * What restarts of a run took back, by metric: the series of all its segments but the newest, under the view's axis.
 */
export async function askTakenBack(r: RunDetail): Promise<Map<string, Series[]>> {
	const newest = Math.max(...r.segments.map((g) => g.segment));
	const list = await queryLines({
		runs: [r.id], keys: Object.keys(r.metrics), rank: -1, buckets: TAKEN_BACK_BUCKETS, ...viewAxis(),
		segments: 'all',
	});
	const back = new Map<string, Series[]>();
	for (const { segment, series } of list)
		if (segment < newest) back.set(series.key, [...(back.get(series.key) ?? []), series]);
	return back;
}

/** One mean of each series of each rank. The first step is left out: it pays for what later ones find ready. */
export async function askMeans(runs: readonly string[],
	keys: readonly string[]): Promise<{ of: SeriesReply; mean: number }[]> {
	const list = await querySeries({ runs, keys, rank: null, buckets: 1, x: 'step', from: 2 });
	return list.flatMap((of) => {
		const mean = meanOf(of.columns);
		return mean === null ? [] : [{ of, mean }];
	});
}

function meanOf(c: BucketColumns): number | null {
	const n = c.count.reduce((a, v) => a + v, 0) - c.nonfinite.reduce((a, v) => a + v, 0);
	return n > 0 ? c.sum.reduce((a: number, v) => a + (v ?? 0), 0) / n : null;
}

/** Every rank's series of a run over its steps, in buckets. */
export function askRanks(run: string, keys: readonly string[], buckets: number,
	zoom: [number, number] | null = null): Promise<SeriesReply[]> {
	const range = zoom ? { from: zoom[0], to: zoom[1] } : {};
	return querySeries({ runs: [run], keys, rank: null, buckets, x: 'step', ...range });
}

const PLACES = 1000;

/**
 * First and last step of the few points among which is the last that a series had at a time, in seconds since 1970;
 * null when it had none. Points by time are counted, then found again by step.
 */
export async function pointsUpTo(run: string, key: string, seconds: number): Promise<[number, number] | null> {
	const one = { runs: [run], keys: [key], rank: -1 };
	const [early] = await querySeries({ ...one, buckets: 1, x: 'time', to: seconds });
	let left = early?.columns.count.reduce((a, n) => a + n, 0) ?? 0;
	if (!left) return null;
	const [all] = await querySeries({ ...one, buckets: PLACES, x: 'step' });
	const { count, x_first: first, x_last: last } = all!.columns;
	for (let b = 0; b < count.length; b++) {
		left -= count[b]!;
		if (left <= 0) return [first[b] ?? 0, last[b] ?? 0];
	}
	return null;
}

/** The points of a series from one step to another, as they were recorded. */
export async function pointsBetween(run: string, key: string, from: number,
	to: number): Promise<{ step: number; seconds: number; value: number }[]> {
	const p = new URLSearchParams({ run, key, rank: '-1', from: String(from), to: String(to), limit: '100000' });
	return ((await request('series?' + p)).points as Json[])
		.map((o) => ({ step: num(o.step), seconds: num(o.wall_time), value: num(o.value) }));
}
