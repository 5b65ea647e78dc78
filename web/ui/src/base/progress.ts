// How far a run has come, where its params say how many steps it will take.
import { runTime } from './rank.ts';
import type { Run } from './types.ts';

interface Progress {
	/** Between 0 and 1. */
	share: number;
	/** Milliseconds until it is done at its pace so far; null: it goes on no more, or has no pace yet. */
	left: number | null;
}

const TOTAL = ['max_steps', 'total_steps', 'num_training_steps'];

function totalOf(p: Readonly<Record<string, string>>): number {
	const most = TOTAL.map((k) => Number(p[k])).find((n) => n > 0);
	return most ?? Number(p.epochs ?? p.num_epochs) * Number(p.steps_per_epoch);
}

/** null: nobody can tell. */
export function progressOf(r: Run, now = Date.now()): Progress | null {
	const total = totalOf(r.params);
	if (!(total > 0) || r.last_step === null) return null;
	const share = Math.min(1, r.last_step / total);
	const ran = runTime(r, now);
	const goesOn = r.status === 'running' && share > 0 && ran !== undefined;
	return { share, left: goesOn ? (ran / share) * (1 - share) : null };
}
