// SPDX-License-Identifier: Apache-2.0
// Values of the runs' curves at the pointer.
import { computed } from '@preact/signals';
import type { Run } from '../../base/types.ts';
import { decimalsBy, fixed, short, sinceStart, when } from '../../base/format.ts';
import { valueAt } from '../../base/series.ts';
import * as s from '../../state/index.ts';

/** Values at the cursor by run, and their decimals, from the displayed line; null without a cursor. */
export const readout = computed(() => {
	const c = s.cursor.value;
	void s.seriesRev.value;
	if (!c) return null;
	const by = new Map<string, number | null>();
	for (const r of s.shown.value) {
		const series = s.seriesFor(r.id, c.key);
		by.set(r.id, series ? valueAt(series, c.x) : null);
	}
	return { key: c.key, x: c.x, by, decimals: decimalsBy([...by.values()].filter((v) => v !== null)) };
});

export const cursorTitle = computed(() => {
	const c = s.cursor.value;
	if (!c) return 'At cursor';
	const unit = s.unitOf(c.key);
	const x = unit === 'time' ? sinceStart(c.x) : unit === 'clock' ? when(c.x * 1000).slice(5)
		: unit === 'epoch' ? `epoch ${short(Number(c.x.toFixed(1)))}` : String(Math.round(c.x));
	return `${s.shortKey(c.key)} @ ${x}`;
});

export function reading(r: Run): string {
	const c = readout.value;
	const v = c?.by.get(r.id);
	return c && v !== undefined && v !== null ? fixed(v, c.decimals) : '';
}
