// SPDX-License-Identifier: Apache-2.0
// Requests for points by later parts of the page, in full precision: reports, figures, times. Caches nothing.
import { fieldAddress } from '../base/group.ts';
import type { PanelAxes } from '../base/report.ts';
import { seriesOf } from '../base/series.ts';
import type { Series } from '../base/types.ts';
import { rangeOf, viewAxis, type CurveQuestion } from './points.ts';
import { askSeries, num, queryGroups, querySeries, request, type GroupReply, type Json } from './server/api.ts';

/** Curves of whole runs on the view's axis. */
export async function askExact({ runs, keys, buckets, zoom }: CurveQuestion): Promise<Series[]> {
	const list = await querySeries({ runs: [...runs], keys, rank: -1, buckets, ...viewAxis(), ...rangeOf(zoom) });
	return list.map((t) => seriesOf(t.run, t.key, t.rank, t.columns));
}

/** Curves on the axis of a panel in a report. */
interface PanelQuestion {
	runs: readonly string[];
	keys: readonly string[];
	buckets: number;
	axes: Pick<PanelAxes, 'x' | 'logX' | 'range'>;
}

function panelQuery({ axes: { x, logX, range }, ...q }: PanelQuestion) {
	return { ...q, x: x === 'clock' ? 'time' as const : x, ...(logX ? { spacing: 'log' as const } : {}),
		...(range ? { from: range[0], to: range[1] } : {}) };
}

/** As the server sends them, in full precision, for storage. */
export function askPanel(q: PanelQuestion): Promise<Json[]> {
	return askSeries({ ...panelQuery(q), rank: -1 });
}

export function askPanelGroups(q: PanelQuestion, by: readonly string[], band: string): Promise<GroupReply[]> {
	return queryGroups({ ...panelQuery(q), rank: null }, by.map(fieldAddress), band);
}

const PLACES = 1000;

/** Step range that contains the last point of a series at a time (seconds since 1970); null without points. Points
 * are counted by time, then located by step. */
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

/** Points of a series in a step range, in full precision. */
export async function pointsBetween(run: string, key: string, from: number,
	to: number): Promise<{ step: number; seconds: number; value: number }[]> {
	const p = new URLSearchParams({ run, key, rank: '-1', from: String(from), to: String(to), limit: '100000' });
	return ((await request('series?' + p)).points as Json[])
		.map((o) => ({ step: num(o.step), seconds: num(o.wall_time), value: num(o.value) }));
}
