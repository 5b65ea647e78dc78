// How high the table is: what the reader has made of it, else as its rows and the window tell. Known before the table
// is drawn, so that no more rows are made for the first frame than it shows.
import { computed, signal } from '@preact/signals';
import { ROW } from './row.tsx';
import { rowCount } from './rows.ts';

const HEAD = 34;
const ROWS_MIN = 4;
/** Share of the window that the table takes when all of its rows fit into it. */
const SHARE_WHOLE = 0.56;
/** Share that it takes, and scrolls in itself, when they do not. */
const SHARE_LONG = 0.4;
export const SHARE_MIN = 0.15;
export const SHARE_MAX = 0.9;
const SHARE_KEPT = 'dptrack-table';

/** What the reader has made of it with the handle, kept by the browser; null: nothing yet. */
const chosenShare = signal<number | null>(keptShare());
/** Height of the whole table without scrolling, in pixels. */
const whole = computed(() => HEAD + rowCount.value * ROW + 2);

export const tableShare = computed(() =>
	chosenShare.value ?? (whole.value <= SHARE_WHOLE * innerHeight ? SHARE_WHOLE : SHARE_LONG));

/** Pixels that it takes on the screen. */
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
		// without storage it lasts as long as the page
	}
}
