// SPDX-License-Identifier: Apache-2.0
// Points of one run that restarts rolled back, shown behind its curves on request.
import { signal } from '@preact/signals';
import type { RunDetail, Series } from '../base/types.ts';
import { askTakenBack } from './points.ts';
import { report } from './runs.ts';

/** The run, and its older segments by metric; null if not shown. */
export const takenBack = signal<{ run: string; series: Map<string, Series[]> } | null>(null);

export async function showTakenBack(r: RunDetail | null): Promise<void> {
	if (!r) {
		takenBack.value = null;
		return;
	}
	try {
		takenBack.value = { run: r.id, series: await askTakenBack(r) };
	} catch (e) {
		report(e);
	}
}
