// SPDX-License-Identifier: Apache-2.0
// Pareto front of two numbers.
import type { Direction } from '../goal.ts';

interface Pair {
	x: number;
	y: number;
}

/** Indexes of the pairs on the front, sorted by x; non-finite numbers are never on it. */
export function paretoFront(pairs: readonly Pair[], dirX: Direction, dirY: Direction): number[] {
	const sign = { max: -1, min: 1 };
	const list = pairs.map((p, i) => ({ i, x: p.x * sign[dirX], y: p.y * sign[dirY] }))
		.filter((p) => Number.isFinite(p.x) && Number.isFinite(p.y)).sort((a, b) => a.x - b.x || a.y - b.y);
	const out: number[] = [];
	let best = Infinity;
	for (const p of list) {
		if (p.y >= best) continue;
		best = p.y;
		out.push(p.i);
	}
	return out.sort((a, b) => pairs[a]!.x - pairs[b]!.x);
}
