// SPDX-License-Identifier: Apache-2.0
// Rank × step matrix of bucket means, and the rank that the others wait for.
import type { BucketColumns } from './types.ts';

interface RankSeries {
	key: string;
	rank: number;
	columns: BucketColumns;
}

export interface Heat {
	/** Ranks of the rows, ascending. */
	ranks: number[];
	/** First and last x of each column. */
	from: number[];
	to: number[];
	/** cells[row][column]; NaN without a point. */
	cells: number[][];
	/** Lower median over the ranks of each column. */
	usual: number[];
}

/** A rank is a straggler if its own time exceeds that of the usual rank, the lower median, by this share: the rule of
 * the server's diagnosis (tracker/insight/bottleneck_tree.c). tests/web/pure_test.mjs compares the numbers. */
export const STRAGGLER_EXCESS = 0.05;

function median(values: readonly number[]): number {
	const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
	return sorted.length ? sorted[(sorted.length - 1) >> 1]! : NaN;
}

/** Mean seconds of a rank by phase. */
interface RankSeconds {
	rank: number;
	seconds: Readonly<Record<string, number>>;
}

/** Time of a rank in the phases in which it works, not waits. */
export function ownSeconds(r: RankSeconds, phases: readonly string[]): number {
	return phases.reduce((a, k) => a + (r.seconds[k] ?? 0), 0);
}

/** The straggler among ranks: its excess over the usual rank, and the phase in which it exceeds the mean of the others
 * most. Null without a straggler. */
export function stragglerOf(ranks: readonly RankSeconds[], phases: readonly string[]):
		{ rank: number; more: number; phase: string } | null {
	const own = ranks.map((r) => ownSeconds(r, phases));
	const slow = ranks[own.indexOf(Math.max(...own))];
	const more = slow ? ownSeconds(slow, phases) / median(own) - 1 : 0;
	if (!slow || ranks.length < 2 || !(more > STRAGGLER_EXCESS)) return null;
	const others = ranks.filter((r) => r !== slow);
	const excess = (k: string) => (slow.seconds[k] ?? 0)
		- others.reduce((a, r) => a + (r.seconds[k] ?? 0), 0) / others.length;
	return { rank: slow.rank, more, phase: phases.reduce((a, k) => (excess(k) > excess(a) ? k : a)) };
}

/** Adds the bucket means of keys with +1 and subtracts those with -1: step less comm_exposed is compute time. */
export function heatOf(series: readonly RankSeries[], sign: Readonly<Record<string, number>>): Heat {
	const spans = new Map<number, [number, number]>();
	const rows = new Map<number, Map<number, number>>();
	for (const s of series) {
		const weight = sign[s.key];
		if (weight === undefined || s.rank < 0) continue;
		const row = rows.get(s.rank) ?? new Map<number, number>();
		rows.set(s.rank, row);
		s.columns.i.forEach((i, b) => {
			const n = s.columns.count[b]! - s.columns.nonfinite[b]!;
			if (n <= 0 || s.columns.sum[b] == null) return;
			row.set(i, (row.get(i) ?? 0) + (weight * s.columns.sum[b]!) / n);
			const span = spans.get(i) ?? [Infinity, -Infinity];
			const [first, last] = [s.columns.x_first[b] ?? Infinity, s.columns.x_last[b] ?? -Infinity];
			spans.set(i, [Math.min(span[0], first), Math.max(span[1], last)]);
		});
	}
	const ranks = [...rows.keys()].sort((a, b) => a - b);
	const columns = [...spans.keys()].sort((a, b) => a - b);
	const cells = ranks.map((r) => columns.map((i) => rows.get(r)!.get(i) ?? NaN));
	return {
		ranks, cells, from: columns.map((i) => spans.get(i)![0]), to: columns.map((i) => spans.get(i)![1]),
		usual: columns.map((_, c) => median(cells.map((row) => row[c]!))),
	};
}

/** Summary of a rank's row. */
export interface RankRow {
	rank: number;
	mean: number;
	highest: number;
	/** Excess over the median rank in the same columns, as a share of it. */
	more: number;
	/** Share of columns in which it is clearly above the median. */
	slow: number;
}

/** Summarises each row; "clearly above" means by more than STRAGGLER_EXCESS. */
export function rankRows(h: Heat): RankRow[] {
	return h.ranks.map((rank, r) => {
		const row = h.cells[r]!;
		const at = row.flatMap((v, c) => (Number.isFinite(v) ? [c] : []));
		const [own, usual] = [row, h.usual].map((values) => at.reduce((a, c) => a + values[c]!, 0));
		const slow = at.filter((c) => row[c]! > h.usual[c]! * (1 + STRAGGLER_EXCESS)).length / h.usual.length;
		return { rank, mean: own! / at.length, highest: Math.max(...at.map((c) => row[c]!)),
			more: own! / usual! - 1, slow };
	});
}

/** The rank that is most often clearly above the median, or null. */
export function mostOftenSlow(rows: readonly RankRow[]): RankRow | null {
	return rows.reduce<RankRow | null>((best, r) => (r.slow > (best?.slow ?? 0) ? r : best), null);
}
