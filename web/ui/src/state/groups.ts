// SPDX-License-Identifier: Apache-2.0
// Groups of runs by params and tags, and their curves for the visible charts. Reloaded when the view or the runs
// change.
import { computed, effect, signal } from '@preact/signals';
import { fellOut } from '../base/goal.ts';
import { endedEarly, groupRuns, type RunGroup } from '../base/group.ts';
import type { GroupReply } from './server/api.ts';
import { zoomOf } from './axis.ts';
import { askGroups } from './points.ts';
import { isShown, liveRev, report, rows, shown } from './runs.ts';
import { tagsOf } from './tags.ts';
import { isGrouped, view } from './view.ts';

/** Buckets of a group: a band needs fewer than a line. */
const BUCKETS = 150;

/** Groups of the table's runs sorted by name: the same look in every chart. */
const allGroups = computed<RunGroup[]>(() => isGrouped.value ? groupRuns(rows.value, view.value.group, tagsOf) : []);

/** The groups with their visible runs; all: with hidden ones; counted: those that a mean is of. */
export const runGroups = computed(() => allGroups.value.map((g, at) => {
	const runs = g.runs.filter((r) => isShown(r.id));
	const counted = runs.filter((r) => !endedEarly(r));
	return { name: g.name, values: g.values, at, all: g.runs, runs, counted, left: runs.length - counted.length,
		diverged: counted.filter(fellOut).length };
}));

/** Index of each group by name, which selects its look. */
export const groupOrder = computed(() => new Map(allGroups.value.map((g, i) => [g.name, i])));

/** By metric; absent until loaded. */
export const groupCurves = signal<ReadonlyMap<string, GroupReply[]>>(new Map());
const wanted = signal<ReadonlySet<string>>(new Set());

/** A chart of the metric is visible. */
export function wantGroups(key: string): void {
	if (!wanted.peek().has(key)) wanted.value = new Set([...wanted.peek(), key]);
}

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
	const runs = isGrouped.value ? shown.value.filter((r) => !endedEarly(r)).map((r) => r.id).sort() : [];
	if (!wanted.value.size || !isGrouped.value) return;
	const { x, logX, zoom, epochZoom, group, band } = view.value;
	const keys = [...wanted.value];
	const sign = JSON.stringify([x, logX, zoom, epochZoom, group, band, keys, runs, liveRev.value]);
	if (sign === asked) return;
	asked = sign;
	if (runs.length) void ask(sign, keys, runs);
	else groupCurves.value = new Map(keys.map((k) => [k, []]));
});
