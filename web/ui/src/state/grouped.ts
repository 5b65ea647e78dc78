// SPDX-License-Identifier: Apache-2.0
// Looks of groups, and their curves for the visible charts, reloaded when the view or the runs change.
import { computed, effect } from '@preact/signals';
import { differ, lookAt, type Look } from '../base/colour.ts';
import type { Run } from '../base/types.ts';
import type { GroupReply } from './server/api.ts';
import { zoomOf } from './axis.ts';
import { groupCurves, isCounted, runGroups, wanted } from './groups.ts';
import { askGroups } from './points.ts';
import { autoLooks, inGroups, isGrouped, liveRev, looks, report, shown } from './runs.ts';
import { view } from './view.ts';

/** Buckets of a group: a band needs fewer than a line. */
const BUCKETS = 150;

/** Groups whose colours are compared with each other. */
const COLOURED = 64;

/** Id of the run that gives its group the look. */
export function oldest(runs: readonly Pick<Run, 'id' | 'start_time'>[]): string {
	return runs.reduce((a, b) => ((b.start_time ?? 0) < (a.start_time ?? 0) ? b : a)).id;
}

/** The look of each group: that of its oldest run as a solid line, unless an earlier group looks like it. */
export function looksOfGroups(own: readonly (Look | undefined)[]): Look[] {
	const used: Look[] = [];
	own.forEach((of, n) => {
		const other = Array.from({ length: COLOURED }, (_, i) => lookAt(i));
		const among = of ? [{ ...of, dash: [] }, ...other] : other;
		used.push((n < COLOURED && among.find((c) => used.every((u) => differ(u, c)))) || lookAt(n));
	});
	return used;
}

/** The look of each group by name: the same in table and charts. */
export const groupLooks = computed(() => {
	const { byRun } = autoLooks.value;
	const groups = runGroups.value.filter((g) => !g.alone);
	const own = looksOfGroups(groups.map((g) => byRun.get(oldest(g.all))));
	return new Map([...runGroups.value.map((g) => [g.name, looks.value.byRun.get(g.all[0]!.id)] as const),
		...groups.map((g, n) => [g.name, own[n]] as const)]);
});

type GroupBucket = GroupReply['buckets'][number];

export function middleOf(b: GroupBucket): number {
	return (view.value.middle === 'median' ? b.median : b.mean) ?? NaN;
}

/** A group's value at x and its number of runs, by run id; null if no group contains the run. */
export function middleAt(key: string, x: number, run: string): { value: number; n: number } | null {
	const g = groupCurves.value.get(key)?.find((c) => c.runs.includes(run));
	if (!g?.buckets.length) return null;
	const width = g.buckets.length > 1 ? g.buckets[1]!.x - g.buckets[0]!.x : Infinity;
	let best = g.buckets[0]!;
	for (const b of g.buckets) if (Math.abs(b.x - x) < Math.abs(best.x - x)) best = b;
	return Math.abs(best.x - x) > 2 * width ? null : { value: middleOf(best), n: best.n };
}

let asked = '';

async function ask(sign: string, keys: readonly string[], runs: readonly string[]): Promise<void> {
	try {
		// series of one request share edges: ask for each metric separately, whatever its unit
		const all = await Promise.all(keys.map((k) =>
			askGroups({ runs, keys: [k], buckets: BUCKETS, zoom: zoomOf(k) })));
		if (sign !== asked) return;
		const by = new Map<string, GroupReply[]>(keys.map((k) => [k, []]));
		for (const g of all.flat()) by.get(g.key)?.push(g);
		groupCurves.value = by;
	} catch (e) {
		report(e);
	}
}

effect(() => {
	const counted = shown.value.filter((r) => inGroups.value.has(r.id) && isCounted(r));
	const runs = counted.map((r) => r.id).sort();
	if (!wanted.value.size || !isGrouped.value) return;
	const { x, logX, zoom, epochZoom, group, band } = view.value;
	const keys = [...wanted.value];
	const sign = JSON.stringify([x, logX, zoom, epochZoom, group, band, keys, runs, liveRev.value]);
	if (sign === asked) return;
	asked = sign;
	if (runs.length) void ask(sign, keys, runs);
	else groupCurves.value = new Map(keys.map((k) => [k, []]));
});
