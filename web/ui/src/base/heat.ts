// SPDX-License-Identifier: Apache-2.0
// Rank × step matrix of bucket means, and the rank that the others wait for.
import type { BucketColumns } from './types.ts';

export interface RankSeries {
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

function median(values: readonly number[]): number {
	const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
	return sorted.length ? sorted[(sorted.length - 1) >> 1]! : NaN;
}

/** Adds the bucket means of keys with +1 and subtracts those with -1: "step less comm_exposed" is a rank's compute
 * time. */
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

/** Summarises each row; "clearly above" means by more than `margin`. */
export function rankRows(h: Heat, margin = 0.05): RankRow[] {
	return h.ranks.map((rank, r) => {
		const row = h.cells[r]!;
		const at = row.flatMap((v, c) => (Number.isFinite(v) ? [c] : []));
		const [own, usual] = [row, h.usual].map((values) => at.reduce((a, c) => a + values[c]!, 0));
		const slow = at.filter((c) => row[c]! > h.usual[c]! * (1 + margin)).length / h.usual.length;
		return { rank, mean: own! / at.length, highest: Math.max(...at.map((c) => row[c]!)),
			more: own! / usual! - 1, slow };
	});
}

/** The rank that is most often clearly above the median, or null. */
export function mostOftenSlow(rows: readonly RankRow[]): RankRow | null {
	return rows.reduce<RankRow | null>((best, r) => (r.slow > (best?.slow ?? 0) ? r : best), null);
}
