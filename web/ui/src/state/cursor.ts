// The pointer in a chart: after a moment there, the table is in the order of the values under it.
import { signal } from '@preact/signals';
import { cursor } from './view.ts';

const DWELL_MS = 150;

/** Rows are in the order of the values under the pointer. */
export const byCursor = signal(false);

let dwell = 0;

/** The pointer or the keyboard stands at x of a metric's chart, in its unit, or has left (null). */
export function setCursor(key: string, x: number | null): void {
	cursor.value = x === null ? null : { key, x };
	if (x === null) {
		clearTimeout(dwell);
		dwell = 0;
		byCursor.value = false;
	} else if (!dwell && !byCursor.value) {
		dwell = window.setTimeout(() => {
			dwell = 0;
			byCursor.value = cursor.value !== null;
		}, DWELL_MS);
	}
}
