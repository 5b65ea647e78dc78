// SPDX-License-Identifier: Apache-2.0
// Saves a file on the user's machine.

import { csvCell } from '../../base/format.ts';

const LATER_MS = 60000;

/** File name from a title. */
export function saveBlob(blob: Blob, title: string, ending: string): void {
	const a = document.createElement('a');
	a.href = URL.createObjectURL(blob);
	a.download = title.replace(/[^\w.-]+/g, '-') + '.' + ending;
	a.click();
	setTimeout(() => URL.revokeObjectURL(a.href), LATER_MS);
}

/** Saves rows as CSV, with the byte order mark without which Excel misreads UTF-8. */
export function saveCsv(rows: readonly (readonly unknown[])[], title: string): void {
	const lines = rows.map((row) => row.map((c) => csvCell(String(c ?? ''))).join() + '\r\n');
	saveBlob(new Blob(['\ufeff', ...lines], { type: 'text/csv' }), title, 'csv');
}
