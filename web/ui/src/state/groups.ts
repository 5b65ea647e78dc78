// SPDX-License-Identifier: Apache-2.0
// Groups of runs, and what charts want of them; grouped.ts, loaded with their table, has the rest.
import { computed, signal } from '@preact/signals';
import { fallenText, groupTitles, isFallen } from '../base/group.ts';
import type { Run } from '../base/types.ts';
import type { GroupReply } from './server/api.ts';
import { allGroups, isShown, nameOf } from './runs.ts';
import { view } from './view.ts';

/** Whether means count a run. */
export const isCounted = (r: Run): boolean => view.value.everyRun || !isFallen(r);

/** The groups with their visible runs, and runs without a group as groups of their own; all: with hidden runs; counted:
 * those that a mean is of; fallen: which failed or diverged, in words; title: the name with rounded numbers. */
export const runGroups = computed(() => groupTitles(allGroups.value).map((title, i) => {
	const g = allGroups.value[i]!;
	const alone = g.runs.length < 2;
	const runs = g.runs.filter((r) => isShown(r.id));
	return { name: g.name, title: alone ? nameOf(g.runs[0]!.id) : title, values: g.values,
		all: g.runs, runs, alone, counted: alone ? g.runs : runs.filter(isCounted),
		fallen: alone ? '' : fallenText(runs, view.value.everyRun) };
}));

/** By metric; absent until loaded. */
export const groupCurves = signal<ReadonlyMap<string, GroupReply[]>>(new Map());
export const wanted = signal<ReadonlySet<string>>(new Set());

/** A chart of the metric is visible. */
export function wantGroups(key: string): void {
	if (!wanted.peek().has(key)) wanted.value = new Set([...wanted.peek(), key]);
}
