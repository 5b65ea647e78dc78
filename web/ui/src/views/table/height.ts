// SPDX-License-Identifier: Apache-2.0
// Height of the table: set by the user, else from its rows and the window. Known before the first draw, so that no
// invisible rows are created.
import { computed, signal } from '@preact/signals';
import { ROW } from './row.tsx';
import { rowCount } from './rows.ts';

const HEAD = 34;
const ROWS_MIN = 4;
/** Maximum share of the window if all rows fit. */
const SHARE_WHOLE = 0.56;
/** Share of the window otherwise; the table scrolls. */
const SHARE_LONG = 0.36;
export const SHARE_MIN = 0.15;
export const SHARE_MAX = 0.9;
const SHARE_KEPT = 'dptrack-table';

/** Height set by the user with the handle, stored in the browser; null: none. */
const chosenShare = signal<number | null>(keptShare());
/** Full height without scrolling, in pixels. */
const whole = computed(() => HEAD + rowCount.value * ROW + 2);

export const tableShare = computed(() =>
	chosenShare.value ?? (whole.value <= SHARE_WHOLE * innerHeight ? SHARE_WHOLE : SHARE_LONG));

/** Displayed height in pixels. */
export function tableHeight(): number {
	return Math.min(whole.value, Math.max(ROWS_MIN * ROW, Math.round(innerHeight * tableShare.value)));
}

function keptShare(): number | null {
	try {
		const kept = Number(localStorage.getItem(SHARE_KEPT));
		return kept > 0 && kept < 1 ? kept : null;
	} catch {
		return null;
	}
}

export function setShare(to: number): void {
	chosenShare.value = Math.min(SHARE_MAX, Math.max(SHARE_MIN, to));
	try {
		localStorage.setItem(SHARE_KEPT, chosenShare.value.toFixed(3));
	} catch {
		// without storage it is lost on reload
	}
}
