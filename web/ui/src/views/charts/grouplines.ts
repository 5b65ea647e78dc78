// SPDX-License-Identifier: Apache-2.0
// Lines of groups of runs: means or medians with bands.
import type { ChartLine } from '../../charts/line/index.ts';
import { fieldAddress, groupName } from '../../base/group.ts';
import { natural } from '../../base/format.ts';
import { fellOut } from '../../base/goal.ts';
import { groupLooks, middleOf } from '../../state/grouped.ts';
import * as s from '../../state/index.ts';
import { colourOf } from '../base/theme.ts';
import { GROUP, groups } from './lines.ts';

/** The line of a group and its band, which break where fewer runs count from there on: the mean of those left does not
 * continue that of all. */
export function meanLine<B extends { x: number; n: number; low: number | null; high: number | null }>(
	list: readonly B[], middle: (b: B) => number | null) {
	const [xs, ys, low, high, n]: number[][] = [[], [], [], [], []];
	const most = list.map((b) => b.n);
	for (let i = most.length - 2; i >= 0; i--) most[i] = Math.max(most[i]!, most[i + 1]!);
	list.forEach((b, i) => {
		const before = list[i - 1];
		const gap = before && most[i]! < most[i - 1]!
			? [{ x: (before.x + b.x) / 2, y: NaN, low: NaN, high: NaN, n: 0 }] : [];
		for (const p of [...gap, { ...b, y: middle(b) ?? NaN }]) {
			xs!.push(p.x);
			ys!.push(p.y);
			low!.push(p.low ?? NaN);
			high!.push(p.high ?? NaN);
			n!.push(p.n);
		}
	});
	return { xs: xs!, ys: ys!, band: { low: low!, high: high!, n: n! } };
}

/** Groups of runs as mean or median with a band; the name includes the number of runs. */
function linesOf(key: string): ChartLine[] {
	const nameOf = (values: Readonly<Record<string, string | null>>) => groupName(Object.fromEntries(
		s.view.value.group.map((f) => [f, values[fieldAddress(f)] ?? null])));
	const known = new Map(s.runGroups.value.map((g) => [g.name, g]));
	const fallen = new Set(s.drawn.value.filter(fellOut).map((r) => r.id));
	const list = (s.groupCurves.value.get(key) ?? []).map((g) => ({ g, name: nameOf(g.group) }));
	list.sort((a, b) => natural(a.name, b.name));
	return list.map(({ g, name }) => {
		const { title = name, fallen: left = '' } = known.get(name) ?? {};
		const line = meanLine(g.buckets, middleOf);
		return {
			id: GROUP + name, name: `${title} (${g.runs.length}${left})`,
			colour: colourOf(groupLooks.value.get(name)), dash: [],
			...line, smooth: null, fit: !g.runs.every((id) => fallen.has(id)),
			badX: null, badToEnd: false,
			band: { ...line.band, loose: g.runs.some((id) => fallen.has(id)) },
			end: 'none' as const, flags: [],
		};
	});
}

/** The steps of the bucket at x; '' without one. */
function stepsAt(key: string, x: number): string {
	const all = (s.groupCurves.value.get(key) ?? []).flatMap((g) => g.buckets);
	const b = all.find((o) => x >= o.from && x <= o.to);
	if (!b) return '';
	const first = Math.ceil(b.from);
	const last = Math.max(first, all.some((o) => o.from >= b.to) ? Math.ceil(b.to) - 1 : Math.floor(b.to));
	return first === last ? String(first) : `${first}–${last}`;
}

groups.value = { linesOf, stepsAt };
