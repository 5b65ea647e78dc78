// Groups of runs by params and tags: which runs they are, and their curves for the charts that are on the screen, read
// again when the view or the runs change.
import { computed, effect, signal } from '@preact/signals';
import { groupRuns, type RunGroup } from '../base/group.ts';
import type { GroupReply } from './server/api.ts';
import { zoomOf } from './axis.ts';
import { askGroups } from './points.ts';
import { isShown, liveRev, report, rows, shown } from './runs.ts';
import { tagsOf } from './tags.ts';
import { isGrouped, view } from './view.ts';

/** Buckets of a group: a band needs fewer than a line of points. */
const BUCKETS = 150;

/** The groups of the table's runs, in the order of their names: the same look in every chart. */
const allGroups = computed<RunGroup[]>(() =>
	isGrouped.value ? groupRuns(rows.value, view.value.group, tagsOf) : []);

/** The groups with those of their runs that are not hidden; all: with the hidden ones. */
export const runGroups = computed(() => allGroups.value.map((g, at) =>
	({ name: g.name, values: g.values, at, all: g.runs, runs: g.runs.filter((r) => isShown(r.id)) })));

/** Place of each group by its name: what its look is made of. */
export const groupOrder = computed(() => new Map(allGroups.value.map((g, i) => [g.name, i])));

/** By metric; absent until they are there. */
export const groupCurves = signal<ReadonlyMap<string, GroupReply[]>>(new Map());
const wanted = signal<ReadonlySet<string>>(new Set());

/** A chart of the metric is on the screen. */
export function wantGroups(key: string): void {
	if (!wanted.peek().has(key)) wanted.value = new Set([...wanted.peek(), key]);
}

type GroupBucket = GroupReply['buckets'][number];

export function middleOf(b: GroupBucket): number {
	return (view.value.middle === 'median' ? b.median : b.mean) ?? NaN;
}

/** What a group's line says at x and how many runs say it, by what holds the group's run; null where none does. */
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
		// edges are shared by all series of a question: each metric has its own, whatever it counts
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
	const runs = isGrouped.value ? shown.value.map((r) => r.id).sort() : [];
	if (!wanted.value.size || !runs.length) return;
	const { x, logX, zoom, epochZoom, group, band } = view.value;
	const keys = [...wanted.value];
	const sign = JSON.stringify([x, logX, zoom, epochZoom, group, band, keys, runs, liveRev.value]);
	if (sign === asked) return;
	asked = sign;
	void ask(sign, keys, runs);
});
