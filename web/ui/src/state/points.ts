// SPDX-License-Identifier: Apache-2.0
// Requests for points of the charts, and the decoding of their replies; those of later parts are in exact.ts. Caches
// nothing.
import { fieldAddress } from '../base/group.ts';
import { FORMULA } from '../base/panel.ts';
import type { BucketColumns, RunDetail, Series } from '../base/types.ts';
import { queryGroups, queryLines, querySeries, type GroupReply, type SeriesReply } from './server/api.ts';
import { view } from './view.ts';

/** Zoomed curves include a point beyond each edge, so that lines reach the border. */
const MARGIN = 0.02;
const TAIL_BUCKETS = 100;
const TAKEN_BACK_BUCKETS = 400;

/** Curves of whole runs. */
export interface CurveQuestion {
	runs: Iterable<string>;
	keys: readonly string[];
	/** One bucket per pixel. */
	buckets: number;
	/** In the unit of the axis. */
	zoom: [number, number] | null;
}

/** The view's axis in the server's terms. */
export function viewAxis(): { x: 'step' | 'time' | 'elapsed' | 'epoch'; spacing?: 'log' } {
	const { x, logX } = view.value;
	return { x: x === 'time' ? 'elapsed' : x === 'clock' ? 'time' : x, ...(logX ? { spacing: 'log' } : {}) };
}

/** A zoom with margins; undefined for the whole range. */
export function rangeOf(zoom: [number, number] | null): { from?: number; to?: number } {
	if (!zoom) return {};
	const [from, to] = zoom;
	if (view.value.logX && from > 0) {
		const factor = (to / from) ** MARGIN;
		return { from: from / factor, to: to * factor };
	}
	const margin = (to - from) * MARGIN;
	return { from: from - margin, to: to + margin };
}

/** Formulas have the key of their request. */
function named<T extends { key: string }>(keys: readonly string[], list: T[]): T[] {
	const key = keys[0];
	return key?.startsWith(FORMULA) ? list.map((t) => ({ ...t, key })) : list;
}

/** On the view's axis. */
export async function askCurves({ runs, keys, buckets, zoom }: CurveQuestion): Promise<Series[]> {
	const list = await queryLines({ runs: [...runs], keys, rank: -1, buckets, ...viewAxis(), ...rangeOf(zoom) });
	return named(keys, list.map((t) => t.series));
}

/** Curves of groups on the view's axis; each has its key, its runs and their means in a band. */
export async function askGroups({ runs, keys, buckets, zoom }: CurveQuestion): Promise<GroupReply[]> {
	const range = zoom ? { from: zoom[0], to: zoom[1] } : {};
	const list = await queryGroups({ runs: [...runs], keys, rank: null, buckets, ...viewAxis(), ...range },
		view.value.group.map(fieldAddress), view.value.band);
	return named(keys, list);
}

/** Points after a step. */
export function askNewer(runs: readonly string[], keys: readonly string[], step: number): Promise<SeriesReply[]> {
	return querySeries({ runs, keys, rank: -1, buckets: TAIL_BUCKETS, x: 'step', from: step + 1 });
}

/** Points hidden by restarts, by metric: the series of all segments but the newest, on the view's axis. */
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

/** Mean of each series of each rank, without the first step, which includes warm-up. */
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
