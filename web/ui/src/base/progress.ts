// SPDX-License-Identifier: Apache-2.0
// Progress of a run whose params define the number of steps.
import { runTime } from './rank.ts';
import type { Run } from './types.ts';

interface Progress {
	/** Between 0 and 1. */
	share: number;
	/** Estimated milliseconds until it ends; null if it is not running or has no speed yet. */
	left: number | null;
}

const TOTAL = ['max_steps', 'total_steps', 'num_training_steps'];

function totalOf(p: Readonly<Record<string, string>>): number {
	const most = TOTAL.map((k) => Number(p[k])).find((n) => n > 0);
	return most ?? Number(p.epochs ?? p.num_epochs) * Number(p.steps_per_epoch);
}

/** Returns null if unknown. */
export function progressOf(r: Run, now = Date.now()): Progress | null {
	const total = totalOf(r.params);
	if (!(total > 0) || r.last_step === null) return null;
	const share = Math.min(1, r.last_step / total);
	const ran = runTime(r, now);
	const goesOn = r.status === 'running' && share > 0 && ran !== undefined;
	return { share, left: goesOn ? (ran / share) * (1 - share) : null };
}
