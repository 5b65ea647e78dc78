// Groups of runs by params: their curves for the charts that are on the screen, read again when the view or the runs
// change.
import { computed, effect, signal } from '@preact/signals';
import type { GroupReply } from './api.ts';
import { zoomOf } from './axis.ts';
import { liveRev } from './live.ts';
import { askGroups } from './points.ts';
import { report, rows, shown } from './runs.ts';
import { view } from './view.ts';

/** Runs of one question; those in front of the table. */
const RUNS_MAX = 500;
/** Buckets of a group: a band needs fewer than a line of points. */
const BUCKETS = 150;

export const isGrouped = computed(() => view.value.group.length > 0 && view.value.page === 'compare');

/** The runs that make the groups: those the reader chose, else all of the table. */
const members = computed(() =>
	(view.value.shown === null ? rows.value.slice(0, RUNS_MAX) : shown.value).map((r) => r.id));

/** By metric; absent until they are there. */
export const groupCurves = signal<ReadonlyMap<string, GroupReply[]>>(new Map());
const wanted = signal<ReadonlySet<string>>(new Set());

/** A chart of the metric is on the screen. */
export function wantGroups(key: string): void {
	if (!wanted.peek().has(key)) wanted.value = new Set([...wanted.peek(), key]);
}

let asked = '';

async function ask(sign: string, keys: readonly string[], runs: readonly string[]): Promise<void> {
	try {
		// edges are shared by all series of a question: each metric has its own, whatever it counts
		const all = await Promise.all(keys.map((k) =>
			askGroups({ runs, keys: [k], buckets: BUCKETS, zoom: zoomOf(k) })));
		if (sign !== asked) return;
		const by = new Map<string, GroupReply[]>();
		for (const g of all.flat()) by.set(g.key, [...by.get(g.key) ?? [], g]);
		groupCurves.value = by;
	} catch (e) {
		report(e);
	}
}

effect(() => {
	if (!isGrouped.value || !wanted.value.size || !members.value.length) return;
	const { x, zoom, epochZoom, group, band } = view.value;
	const keys = [...wanted.value];
	const sign = JSON.stringify([x, zoom, epochZoom, group, band, keys, members.value, liveRev.value]);
	if (sign === asked) return;
	asked = sign;
	void ask(sign, keys, members.value);
});
