// SPDX-License-Identifier: Apache-2.0
// Converts bucket columns to the polyline of a chart, finds the nearest point and smooths. The minimum and maximum of
// each bucket are always on the line, so no extreme is lost.
import type { BucketColumns, Coded, LineColumns, Series } from './types.ts';

interface Point {
	x: number;
	y: number;
}

/** Distinct points of bucket b, sorted by x; non-finite points are NaN. */
function bucketPoints(c: BucketColumns, b: number): Point[] {
	const all: Point[] = [];
	const add = (x: number | null | undefined, y: number | null | undefined) => {
		if (x != null) all.push({ x, y: y != null && Number.isFinite(y) ? y : NaN });
	};
	add(c.x_first[b], c.first[b]);
	const [lo, hi] = [{ x: c.x_min[b], y: c.min[b] }, { x: c.x_max[b], y: c.max[b] }];
	for (const p of (lo.x ?? 0) <= (hi.x ?? 0) ? [lo, hi] : [hi, lo])
		if (p.y != null && Number.isFinite(p.y)) add(p.x, p.y);
	add(c.x_last[b], c.last[b]);
	const bad = c.x_nonfinite?.[b];
	if (bad != null && c.nonfinite[b]! > 0 && !all.some((p) => p.x === bad && Number.isNaN(p.y))) {
		all.push({ x: bad, y: NaN });
		all.sort((p, q) => p.x - q.x);
	}
	return all.filter((p, i) => i === 0 || p.x !== all[i - 1]!.x || !Object.is(p.y, all[i - 1]!.y));
}

function emptySeries(run: string, key: string, rank: number): Series {
	return { run, key, rank, count: 0, xs: [], ys: [], mx: [], mean: [], weight: [], badX: null, badToEnd: false };
}

/** Appends decoded buckets to a series; scale converts the server's x to the chart's (identity for steps). */
export function appendBuckets(s: Series, c: BucketColumns, scale: (x: number) => number = (x) => x): void {
	for (let b = 0; b < c.i.length; b++) {
		const finite = c.count[b]! - c.nonfinite[b]!;
		const points = bucketPoints(c, b);
		for (const p of points) {
			const gap = Number.isNaN(p.y);
			if (gap && s.badX === null) s.badX = scale(p.x);
			if (gap && (!s.ys.length || Number.isNaN(s.ys[s.ys.length - 1]!))) continue;
			s.xs.push(scale(p.x));
			s.ys.push(p.y);
		}
		if (points.length) s.badToEnd = Number.isNaN(points[points.length - 1]!.y);
		if (finite > 0 && Number.isFinite(c.sum[b])) {
			s.mx.push(scale(((c.x_first[b] ?? 0) + (c.x_last[b] ?? 0)) / 2));
			s.mean.push(c.sum[b]! / finite);
			s.weight.push(finite);
		}
		s.count += c.count[b]!;
	}
}

/** The series in as little memory as it needs: arrays without spare room, and means that are its points only once. */
export function compact(s: Series): Series {
	const once = (list: number[], own: number[]) =>
		(list.length === own.length && list.every((v, i) => v === own[i]) ? own : list.slice());
	const [xs, ys] = [s.xs.slice(), s.ys.slice()];
	return { ...s, xs, ys, mx: once(s.mx, xs), mean: once(s.mean, ys), weight: s.weight.slice() };
}

export function seriesOf(run: string, key: string, rank: number, c: BucketColumns,
	scale?: (x: number) => number): Series {
	const s = emptySeries(run, key, rank);
	appendBuckets(s, c, scale);
	return s;
}

/** Decodes sums of integers in units. A power of ten below 1 divides, so that decimals are exact. */
function decoded(list: readonly Coded[], unit: number): number[] {
	const per = unit < 1 ? Math.round(1 / unit) : 0;
	let at = 0;
	return list.map((v) => {
		if (typeof v !== 'number') return v === null ? NaN : Number(v);
		at += v;
		return per ? at / per : at * unit;
	});
}

/** A drawn series in the server's encoding. */
export function lineOf(run: string, key: string, rank: number, count: number, c: LineColumns): Series {
	const s: Series = { ...emptySeries(run, key, rank), count, unit: c.q };
	const [xs, ys] = [decoded(c.x, c.xq), decoded(c.y, c.q)];
	const means = c.m && decoded(c.m, c.q);
	let mean = 0;
	for (let at = 0, b = 0; at < xs.length; b++) {
		const end = at + (c.k ? c.k[b]! : 1);
		let [sum, finite] = [0, 0];
		for (let i = at; i < end; i++) {
			const gap = Number.isNaN(ys[i]!);
			if (gap && s.badX === null) s.badX = xs[i]!;
			if (!gap) [sum, finite] = [sum + ys[i]!, finite + 1];
			if (gap && (!s.ys.length || Number.isNaN(s.ys[s.ys.length - 1]!))) continue;
			s.xs.push(xs[i]!);
			s.ys.push(ys[i]!);
		}
		s.badToEnd = Number.isNaN(ys[end - 1]!);
		if (finite) {
			s.mx.push((xs[at]! + xs[end - 1]!) / 2);
			s.mean.push(means ? means[mean]! : sum / finite);
			s.weight.push(c.w ? c.w[mean]! : finite);
			mean++;
		}
		at = end;
	}
	return s;
}

/** What a line is drawn from. */
type Drawn = Pick<Series, 'xs' | 'ys' | 'badX' | 'badToEnd'>;

/** Index of the drawn point with the nearest x, -1 without any; gaps are skipped. */
export function nearest(s: Drawn, x: number): number {
	let lo = 0;
	let hi = s.xs.length - 1;
	while (lo < hi) {
		const mid = (lo + hi) >> 1;
		if (s.xs[mid]! < x) lo = mid + 1;
		else hi = mid;
	}
	let best = -1;
	let dist = Infinity;
	for (let i = Math.max(0, lo - 3); i <= Math.min(s.xs.length - 1, lo + 3); i++) {
		const d = Math.abs(s.xs[i]! - x);
		if (Number.isNaN(s.ys[i]!) && d > 0) continue;
		if (d < dist) {
			dist = d;
			best = i;
		}
	}
	return best;
}

/** Value at x for the read-out: NaN within a run of NaNs, null if no point is near x. */
export function valueAt(s: Drawn, x: number): number | null {
	const n = s.xs.length;
	if (!n) return s.badX !== null && x >= s.badX ? NaN : null;
	if (s.badX !== null && s.badToEnd && x >= s.badX) return NaN;
	const step = n > 1 ? (s.xs[n - 1]! - s.xs[0]!) / (n - 1) : 0;
	if (x < s.xs[0]! - step || x > s.xs[n - 1]! + step) return null;
	const i = nearest(s, x);
	return i < 0 ? null : s.ys[i]!;
}

/** Exponential moving average over buckets with bias correction. A bucket of n points counts n times, so the curve does
 * not depend on the width of the chart. */
export function smooth(s: Series, alpha: number): { xs: number[]; ys: number[] } {
	const ys: number[] = [];
	let acc = 0;
	let norm = 0;
	for (let i = 0; i < s.mean.length; i++) {
		const keep = Math.pow(alpha, s.weight[i]!);
		acc = acc * keep + s.mean[i]! * (1 - keep);
		norm = norm * keep + (1 - keep);
		ys.push(acc / norm);
	}
	return { xs: s.mx, ys };
}
