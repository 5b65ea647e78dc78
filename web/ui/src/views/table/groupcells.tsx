// SPDX-License-Identifier: Apache-2.0
// Columns of groups: the common value or the number of values; for numbers mean and standard deviation.
import { computed } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { decimalsBy, duration, fixed, natural, paramTexts, signed, type Decimals } from '../../base/format.ts';
import { bestOf, inPoints } from '../../base/goal.ts';
import { cell, compareCells, DERIVED, metricColumn, metricValue, runTime } from '../../base/rank.ts';
import { together, type Together } from '../../base/repeats.ts';
import type { Run } from '../../base/types.ts';
import { middleAt } from '../../state/grouped.ts';
import * as s from '../../state/index.ts';
import { statements } from '../base/says.ts';
import { keepLeft, widthOf, type Column } from './column.ts';
import { columns } from './columns.tsx';

export type Group = typeof s.runGroups.value[number];

export interface GroupColumn {
	of: Column;
	cell(g: Group): ComponentChildren;
	full(g: Group): string;
	/** Sort value of the column. */
	value(g: Group): number | string;
}

/** Groups whose texts determine the width. */
const SAMPLE = 300;

/** Decimals that show differences of means and two digits of the spread; null selects exponents. */
function decimalsOf(list: readonly Together[]): (mean: number) => number | null {
	const means = decimalsBy(list.map((t) => t.mean));
	const stds = list.map((t) => t.std).filter((v) => v > 0).sort((a, b) => a - b);
	const usual = stds[stds.length >> 1];
	if (usual === undefined) return means;
	return (v) => {
		const d = means(v);
		return d === null ? null : Math.min(6, Math.max(d, 1 - Math.floor(Math.log10(usual))));
	};
}

/** Number of visible runs of a group, or which of them a mean counts. */
export function sizeOf(g: Group): string {
	const hidden = g.runs.length < g.all.length ? `${g.runs.length} of ${g.all.length}` : '';
	const mean = g.fallen && `mean of ${g.counted.length}${g.fallen}`;
	return [hidden, mean].filter(Boolean).join(', ') || String(g.all.length);
}

/** Number of runs with a value, unless all of the group. */
const short = (t: Together, g: Group): string => t.n === g.counted.length ? '' : ` n ${t.n}`;

/** A numeric column: value of a run, formatting of a mean. */
function numberColumn(of: Column, valueOf: (r: Run) => number | null | undefined,
	text: (v: number, d: Decimals) => string = fixed): GroupColumn {
	const sums = new Map(s.runGroups.value.map((g) => [g.name, together(g.counted.map(valueOf))]));
	const sum = (g: Group) => sums.get(g.name)!;
	const d = decimalsOf([...sums.values()]);
	const deviation = (t: Together) => (Number.isNaN(t.std) ? '' : ` ± ${text(t.std, d(t.mean))}`);
	const texts = s.runGroups.value.map((g) => text(sum(g).mean, d) + deviation(sum(g)) + short(sum(g), g));
	return {
		of: { ...of, number: true, width: Math.max(of.width, widthOf(of.title, texts, 190)) },
		cell: (g) => {
			const t = sum(g);
			return !t.n ? <span class="none">–</span> : <>{text(t.mean, d)}
				<span class="dim">{deviation(t)}{short(t, g)}</span></>;
		},
		full: (g) => `Mean ${sum(g).mean}, standard deviation ${sum(g).std}, of `
			+ `${sum(g).n} runs${g.fallen}`,
		value: (g) => sum(g).mean,
	};
}

function metricGroups(of: Column): GroupColumn {
	const { key, what } = metricColumn(of.id)!;
	const goal = s.goal.value;
	const dir = s.dirOf(key);
	const c = numberColumn(of, (r) => metricValue(r.metrics[key], what, dir));
	if (goal?.key !== key || what !== 'best' || !dir) return c;
	const means = s.runGroups.value.map((g) => c.value(g) as number).filter(Number.isFinite);
	const top = dir === 'max' ? Math.max(...means) : Math.min(...means);
	return { ...c, cell: (g) => (c.value(g) === top ? <b class="best">{c.cell(g)}</b> : c.cell(g)) };
}

/** Difference between a group's mean goal and the best one. */
function deltaGroups(of: Column): GroupColumn {
	const goal = s.goal.value!;
	const mean = (g: Group) => together(g.counted.map((r) => bestOf(r.metrics[goal.key], goal.dir))).mean;
	const means = s.runGroups.value.map(mean).filter(Number.isFinite);
	const top = goal.dir === 'max' ? Math.max(...means) : Math.min(...means);
	const per = inPoints(goal.key, means) ? 100 : 1;
	const d = decimalsBy(means.map((m) => (m - top) * per));
	return {
		of, value: mean, full: (g) => String((mean(g) - top) * per),
		cell: (g) => {
			const v = mean(g);
			return Number.isNaN(v) ? <span class="none">–</span>
				: v === top && goal.dir ? <span class="best">best</span>
				: signed((v - top) * per, d);
		},
	};
}

/** Value of the group's line at the cursor, and its number of runs. */
function underCursor(g: Group): string {
	const c = s.cursor.value;
	const at = c && g.counted[0] && middleAt(c.key, c.x, g.counted[0].id);
	return at ? `${fixed(at.value, decimalsBy([at.value]))} n ${at.n}` : '';
}

/** A text column: the common value, or the number of values. */
function wordColumn(of: Column, valueOf: (r: Run) => string): GroupColumn {
	const words = (g: Group) => [...new Set(g.runs.map(valueOf).filter(Boolean))].sort(natural);
	const text = (g: Group) => {
		const list = words(g);
		return list.length < 2 ? list[0] ?? '' : `${list.length} values`;
	};
	const texts = s.runGroups.value.slice(0, SAMPLE).map(text);
	const write = paramTexts(texts);
	return {
		of: { ...of, width: Math.max(of.width, widthOf('', texts, 150)) },
		cell: (g) => (words(g).length > 1 ? <span class="dim">{text(g)}</span> : write(text(g))),
		full: (g) => words(g).slice(0, 20).join(', '), value: text,
	};
}

/** Status counts of a group. */
function statusGroups(of: Column): GroupColumn {
	const text = (g: Group) => {
		const kinds = new Map<string, number>();
		for (const r of g.runs) for (const t of statements(r)) kinds.set(t.kind, (kinds.get(t.kind) ?? 0) + 1);
		return [...kinds].sort((a, b) => b[1] - a[1])
			.map(([k, n]) => `${n} ${k === 'nan' ? 'NaN' : k}`).join(', ');
	};
	return { of, cell: text, full: text, value: text };
}

function groupColumn(of: Column): GroupColumn {
	if (metricColumn(of.id)) return metricGroups(of);
	if (of.id.startsWith(DERIVED)) return numberColumn(of, (r) => cell(r, of.id, s.dirOf) as number | undefined);
	switch (of.id) {
	case 'name': return { of, cell: () => null, full: (g) => g.title, value: (g) => g.name };
	case 'delta': return deltaGroups(of);
	case 'cursor': return { of, cell: underCursor, full: underCursor, value: () => '' };
	case 'status': return statusGroups(of);
	case 'time': return numberColumn(of, (r) => runTime(r), (v) => (Number.isNaN(v) ? '' : duration(v)));
	case 'phase': return { of, cell: () => null, full: () => '', value: () => '' };
	default: return wordColumn(of, of.full);
	}
}

/** Table columns for groups; the name column is wide enough for group names. */
export const groupColumns = computed<GroupColumn[]>(() => {
	const cols = columns.value.map(groupOf);
	return keepLeft(cols.map((c) => c.of), s.view.value.fixed).map((of, i) => ({ ...cols[i]!, of }));
});

function groupOf(of: Column): GroupColumn {
	const c = groupColumn(of);
	if (of.id !== 'name') return c;
	const wanted = 80 + widthOf('Group', s.runGroups.value.map((g) => g.title + ' ' + sizeOf(g)), 520);
	return { ...c, of: { ...of, title: 'Group', hint: 'The values that its runs share, and how many they are',
		width: Math.min(s.runGroups.value.some((g) => g.fallen) ? 400 : 300, wanted), wanted } };
}

/** Sorts by mean goal, best first, or by the table's sort column; then by the second one; missing values last. */
export function orderGroups(list: readonly Group[], cols: readonly GroupColumn[]): Group[] {
	const v = s.view.value;
	const goal = s.goal.value;
	const down = v.sort === null ? goal?.dir === 'max' : v.desc;
	const [by, then] = [v.sort ?? (goal?.dir ? 'm:best:' + goal.key : 'name'), v.then]
		.map((id) => cols.find((c) => c.of.id === id));
	return list.map((g) => ({ g, first: by?.value(g), second: then?.value(g) })).sort((a, b) =>
		compareCells(a.first, b.first, down) || compareCells(a.second, b.second, v.thenDesc)).map((k) => k.g);
}
