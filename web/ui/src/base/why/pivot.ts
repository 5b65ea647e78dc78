// SPDX-License-Identifier: Apache-2.0
// Pivot table: runs by two of their fields, repeats combined in a cell.
import { natural } from '../format.ts';
import { isFallen } from '../group.ts';
import { together, type Together } from '../repeats.ts';
import type { Run } from '../types.ts';

export interface PivotCell extends Together {
	/** All of its runs; n counts those with a number that did not fail. */
	runs: Run[];
	/** Number of runs that failed, which the mean leaves out. */
	left: number;
}

export interface Pivot {
	rows: string[];
	columns: string[];
	/** cells[row][column]; null without runs. */
	cells: (PivotCell | null)[][];
	/** Number of values of each field beyond the limit. */
	left: number;
}

interface Fields {
	row(r: Run): string | undefined;
	column(r: Run): string | undefined;
	value(r: Run): number | null | undefined;
}

/** Maximum of rows and columns. */
const PIVOT_MAX = 60;
/** Placeholder for a missing value. */
const NONE = '–';

export function pivotOf(runs: readonly Run[], f: Fields): Pivot {
	const order = (a: string, b: string) => Number(a === NONE) - Number(b === NONE) || natural(a, b);
	const values = (of: Fields['row']) => [...new Set(runs.map((r) => of(r) ?? NONE))].sort(order);
	const [allRows, allColumns] = [values(f.row), values(f.column)];
	const [rows, columns] = [allRows.slice(0, PIVOT_MAX), allColumns.slice(0, PIVOT_MAX)];
	const by = new Map<string, Run[]>();
	const place = (row: string, column: string) => row + '\n' + column;
	for (const r of runs) {
		const at = place(f.row(r) ?? NONE, f.column(r) ?? NONE);
		by.set(at, [...by.get(at) ?? [], r]);
	}
	const cellAt = (row: string, column: string): PivotCell | null => {
		const own = by.get(place(row, column));
		const counted = own?.filter((r) => !isFallen(r)) ?? [];
		return own ? { runs: own, left: own.length - counted.length, ...together(counted.map(f.value)) } : null;
	};
	return { rows, columns, cells: rows.map((row) => columns.map((column) => cellAt(row, column))),
		left: allRows.length - rows.length + allColumns.length - columns.length };
}
