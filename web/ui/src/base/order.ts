// SPDX-License-Identifier: Apache-2.0
// Order of the charts: the training curve and the goal, then groups by key prefix.

import { natural } from './format.ts';
import { isLoss } from './goal.ts';
import { matchesWords, type View } from './url.ts';

export interface ChartGroup {
	name: string;
	keys: string[];
}

interface ChartOrder {
	first: string[];
	groups: ChartGroup[];
}

/** Charts of a group that are drawn at first. */
export const AT_ONCE = 12;

const GROUPS_FIRST = ['epoch', 'val', 'train', 'other'];

/** The group of a metric: its prefix. */
export function groupOf(key: string): string {
	const i = key.indexOf('/');
	return i > 0 ? key.slice(0, i) : 'other';
}

/** Charts in front: the training curve and the goal; the goal first if there is no loss besides it. */
export function frontKeys(curve: string | null, goal: string | null | undefined): (string | null | undefined)[] {
	return curve !== null && isLoss(curve) ? [curve, goal] : [goal, curve];
}

/** Charts as the view arranges them. words filters the keys; with words, no chart is in front and none is hidden. */
export function chartOrder(keys: readonly string[], front: readonly (string | null | undefined)[],
	{ tops, hidden, order }: Pick<View, 'tops' | 'hidden' | 'order'>, words = ''): ChartOrder {
	const seen = words ? keys.filter((k) => matchesWords(words, [k])) : keys.filter((k) => !hidden.includes(k));
	const first = words ? [] : (tops ?? front).filter((k): k is string => !!k && seen.includes(k));
	const groups = new Map<string, string[]>();
	const place = (k: string) => order.indexOf(k) >>> 0; // others are last
	for (const k of seen.sort((a, b) => place(a) - place(b))) {
		if (first.includes(k)) continue;
		const name = groupOf(k);
		const list = groups.get(name);
		if (list) list.push(k);
		else groups.set(name, [k]);
	}
	const weight = (n: string) => GROUPS_FIRST.indexOf(n) + 1 || 9;
	return { first, groups: [...groups].map(([name, list]) => ({ name, keys: list }))
		.sort((a, b) => weight(a.name) - weight(b.name) || natural(a.name, b.name)) };
}

/** Default number of open charts per group. */
export function openAtFirst(g: ChartGroup): number {
	return g.keys.length <= AT_ONCE && g.name !== 'phase' ? g.keys.length : 0;
}
