// SPDX-License-Identifier: Apache-2.0
// Real points of lines near a position: where the cursor snaps, and the readings of a tooltip. Nothing is interpolated.
// Needs no canvas or DOM.
import { lowerBound, type ChartLine } from './geometry.ts';

export interface Reading {
	line: ChartLine;
	/** The line's nearest point; y is NaN where the series is not finite. */
	x: number;
	y: number;
	/** Index of the point in the line, -1 if it only has non-finite points there. */
	at: number;
	/** The position is before the first or after the last point: a run that has ended, or not begun. */
	beyond: boolean;
}

/** Index of the point with the nearest x, -1 for an empty line; of equal distances the later. */
export function nearPoint(l: Pick<ChartLine, 'xs' | 'ys'>, x: number): number {
	const i = lowerBound(l.xs, x);
	if (i >= l.xs.length) return l.xs.length - 1;
	return i > 0 && x - l.xs[i - 1]! < l.xs[i]! - x ? i - 1 : i;
}

/** How far beyond an end counts as near, in mean distances of the logged points: not of the drawn ones, whose number
 * depends on the width. */
const NEAR_END = 1.5;

function isBeyond({ xs, points }: ChartLine, x: number): boolean {
	const [first, last] = [xs[0]!, xs[xs.length - 1]!];
	const near = (NEAR_END * (last - first)) / Math.max(1, (points ?? xs.length) - 1);
	return x < first - near || x > last + near;
}

function readLine(l: ChartLine, x: number): Reading | null {
	if (l.badX !== null && l.badToEnd && x >= l.badX) return { line: l, x, y: NaN, at: -1, beyond: false };
	const at = nearPoint(l, x);
	return at < 0 ? null : { line: l, x: l.xs[at]!, y: l.ys[at]!, at, beyond: isBeyond(l, x) };
}

/** Readings of the lines at x: highest value first, then non-finite ones, then lines that have no points there. */
export function readLines(lines: readonly ChartLine[], x: number): Reading[] {
	const list = lines.map((l) => readLine(l, x)).filter((r): r is Reading => r !== null);
	const rank = (r: Reading) => (r.beyond ? 2 : Number.isFinite(r.y) ? 0 : 1);
	return list.sort((a, b) => rank(a) - rank(b) || (rank(a) === 1 ? 0 : b.y - a.y));
}

/** The real x nearest to a position within [from, to], over all lines; null without any. */
export function snapTo(lines: readonly ChartLine[], x: number, [from, to]: readonly [number, number]): number | null {
	let best: number | null = null;
	const take = (v: number | undefined) => {
		if (v === undefined || v < from || v > to) return;
		if (best === null || Math.abs(v - x) < Math.abs(best - x)) best = v;
	};
	for (const l of lines) {
		const i = nearPoint(l, Math.min(to, Math.max(from, x)));
		for (const k of [i - 1, i, i + 1]) take(l.xs[k]);
		take(l.badX ?? undefined);
	}
	return best;
}

/** The next real x after (dir 1) or before (dir -1) a position; null without any. */
export function nextX(lines: readonly ChartLine[], x: number, dir: 1 | -1): number | null {
	let best: number | null = null;
	for (const { xs } of lines) {
		let i = lowerBound(xs, x);
		if (dir < 0) i--;
		while (dir > 0 && i < xs.length && xs[i]! <= x) i++;
		const v = xs[i];
		if (v !== undefined && (best === null || (v - best) * dir < 0)) best = v;
	}
	return best;
}
