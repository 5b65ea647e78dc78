// SPDX-License-Identifier: Apache-2.0
// Neighbours of a run: runs that differ in a single param, and whether the difference of the goal exceeds that of
// repeats.
import { signed, short } from '../format.ts';
import { bestOf, fellOut, inPoints, type Goal } from '../goal.ts';
import { groupRuns } from '../group.ts';
import { together } from '../repeats.ts';
import type { Run } from '../types.ts';

interface Neighbour {
	run: Run;
	param: string;
	/** The neighbour's goal minus the run's. */
	delta: number;
	text: string;
}

const SEED = /seed/i;
const LISTED = 6;

/** Pooled standard deviation of repeats. NaN without repeats. */
function seedSpread(runs: readonly Run[], goal: Goal, params: readonly string[]): number {
	const settings = groupRuns(runs.filter((r) => !fellOut(r)), params.filter((k) => !SEED.test(k)), () => ({}));
	let [squares, freedom] = [0, 0];
	for (const g of settings) {
		const { n, std } = together(g.runs.map((r) => bestOf(r.metrics[goal.key], goal.dir)));
		if (n < 2) continue;
		squares += std ** 2 * (n - 1);
		freedom += n - 1;
	}
	return freedom ? Math.sqrt(squares / freedom) : NaN;
}

const rounded = (v: number, digits: number) => Number(v.toPrecision(digits));

function wordsOf(param: string, delta: number, spread: number, per: number): string {
	const unit = per === 100 ? ' points' : '';
	const difference = `${param.replace(/_/g, ' ')} differs, ${signed(rounded(delta * per, 3), null)}${unit}`;
	if (Number.isNaN(spread)) return `${difference}; unknown spread over seeds: no repeats`;
	// 95 % limit for the difference of two single runs with equal settings
	const significant = Math.abs(delta) > 1.96 * Math.SQRT2 * spread;
	return `${difference}; spread over seeds ${short(rounded(spread * per, 2))}${unit}: `
		+ (significant ? 'significant' : 'not significant');
}

/** Runs that differ in a single param besides the seed, nearest in the goal first. */
export function neighbours(one: Run, runs: readonly Run[], goal: Goal, params: readonly string[]): Neighbour[] {
	const mine = bestOf(one.metrics[goal.key], goal.dir);
	if (mine === null) return [];
	const others = params.filter((k) => !SEED.test(k));
	const spread = seedSpread(runs, goal, params);
	const values = runs.map((r) => bestOf(r.metrics[goal.key], goal.dir) ?? NaN);
	const per = inPoints(goal.key, values) ? 100 : 1;
	return runs.flatMap((run): Neighbour[] => {
		const differing = others.filter((k) => run.params[k] !== one.params[k]);
		const value = bestOf(run.metrics[goal.key], goal.dir);
		if (run.id === one.id || differing.length !== 1 || value === null || !Number.isFinite(value)) return [];
		const delta = value - mine;
		return [{ run, param: differing[0]!, delta, text: wordsOf(differing[0]!, delta, spread, per) }];
	}).sort((a, b) => Math.abs(a.delta) - Math.abs(b.delta)).slice(0, LISTED);
}
