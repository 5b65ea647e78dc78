// SPDX-License-Identifier: Apache-2.0
// Geometry of line charts: axis range, clipping, label placement, hit testing. Needs no canvas or DOM.

/** A text or value attached to a place on a line. */
export interface Flag {
	x: number;
	y: number | null;
	kind: 'spike' | 'nan' | 'failed' | 'diverged';
	text: string;
}

export interface ChartLine {
	id: string;
	name: string;
	/** At the end of the line, if not its name; '': nothing. */
	label?: string;
	colour: string;
	dash: number[];
	/** The polyline through the extremes of every bucket; y is NaN at breaks. Sorted by x. */
	xs: number[];
	ys: number[];
	/** means: of the values of buckets, which tooltips do not say. */
	smooth: { xs: number[]; ys: number[]; means?: boolean } | null;
	/** The values are exact to this unit; absent: in full precision. */
	unit?: number;
	/** Number of logged points, if fewer are drawn. */
	points?: number;
	/** The band around the line: low, high and the number of counted runs at each of xs. A loose band does not
	 * count for the axis, because one of its runs is excluded. */
	band?: { low: number[]; high: number[]; n: number[]; loose?: boolean };
	/** False for an excluded run, which may be clipped so that it does not flatten the others. */
	fit: boolean;
	badX: number | null;
	badToEnd: boolean;
	end: 'none' | 'failed' | 'running';
	flags: Flag[];
}

export interface Outside {
	id: string;
	x: number;
	y: number;
	side: 'top' | 'bottom';
}

export interface Range {
	lo: number;
	hi: number;
	outside: Outside[];
}

/** Lines with at most this many points are drawn with dots, and their segments count for the axis. */
export const FEW = 40;

interface Span {
	lo: number;
	hi: number;
}

function visible(l: ChartLine, i: number, from: number, to: number, log: boolean): boolean {
	const x = l.xs[i]!;
	const y = l.ys[i]!;
	return x >= from && x <= to && Number.isFinite(y) && (!log || y > 0);
}

function spanOf(lines: readonly ChartLine[], from: number, to: number, log: boolean): Span | null {
	let lo = Infinity;
	let hi = -Infinity;
	const take = (y: number) => {
		lo = Math.min(lo, y);
		hi = Math.max(hi, y);
	};
	for (const l of lines) {
		for (let i = 0; i < l.ys.length; i++) if (visible(l, i, from, to, log)) take(l.ys[i]!);
		for (const side of l.band && !l.band.loose ? [l.band.low, l.band.high] : [])
			side.forEach((y, i) => visible({ ...l, ys: side }, i, from, to, log) && take(y));
		// where a line with few points leaves a zoomed axis
		for (const x of [from, to]) {
			const y = l.ys.length <= FEW ? yAt(l.xs, l.ys, x) : null;
			if (y !== null && (!log || y > 0)) take(y);
		}
	}
	return lo <= hi ? { lo, hi } : null;
}

/** The largest share of a line's points that are a spike, on each side, and the fewest points of such a line. */
const SPIKE_SHARE = 0.03;
const SPIKE_FROM = 20;

/** The span of a line without its short spikes: the rarest values on each side. Values from which the line does not
 * return to the others, or with which it begins, count: they are no spikes. */
function usualOf(ys: readonly number[]): Span | null {
	const sorted = [...ys].sort((a, b) => a - b);
	const cut = ys.length < SPIKE_FROM ? 0 : Math.max(1, Math.floor(ys.length * SPIKE_SHARE));
	const [lo, hi] = [sorted[cut], sorted[ys.length - 1 - cut]];
	if (lo === undefined || hi === undefined) return null;
	const usual = ys.map((y) => y >= lo && y <= hi);
	const [first, last] = [usual.indexOf(true), usual.lastIndexOf(true)];
	const ends = ys.filter((_, i) => i < first || i > last);
	return { lo: Math.min(lo, ...ends), hi: Math.max(hi, ...ends) };
}

/** The span of the lines without their short spikes. */
function usualSpan(lines: readonly ChartLine[], from: number, to: number, log: boolean): Span | null {
	const spans = lines.flatMap((l) => usualOf(l.ys.filter((_, i) => visible(l, i, from, to, log))) ?? []);
	return spans.length ? { lo: Math.min(...spans.map((x) => x.lo)), hi: Math.max(...spans.map((x) => x.hi)) }
		: null;
}

/** How far an isolated spike may extend the axis before it is clipped and marked with an arrow. */
const STRETCH_SPIKE = 6;
/** How far an excluded run may extend the axis. */
const STRETCH_FALLEN = 1.25;

function limit(span: Span, inner: Span, factor: number, log: boolean): Span {
	const t = log ? Math.log : (v: number) => v;
	const back = log ? Math.exp : (v: number) => v;
	const width = t(inner.hi) - t(inner.lo);
	if (!(width > 0) || t(span.hi) - t(span.lo) <= width * factor) return span;
	const room = (width * (factor - 1)) / 2;
	return {
		lo: t(span.lo) < t(inner.lo) - room ? inner.lo : span.lo,
		hi: t(span.hi) > t(inner.hi) + room ? back(t(inner.hi) + width * 0.1) : span.hi,
	};
}

/** The furthest point of each line beyond each limit; on a log axis values up to zero are below it. */
function outsideOf(lines: readonly ChartLine[], s: Span, from: number, to: number): Outside[] {
	const out: Outside[] = [];
	for (const l of lines) {
		let top: Outside | null = null;
		let bottom: Outside | null = null;
		for (let i = 0; i < l.ys.length; i++) {
			if (!visible(l, i, from, to, false)) continue;
			const y = l.ys[i]!;
			if (y > s.hi && (!top || y > top.y)) top = { id: l.id, x: l.xs[i]!, y, side: 'top' };
			if (y < s.lo && (!bottom || y < bottom.y))
				bottom = { id: l.id, x: l.xs[i]!, y, side: 'bottom' };
		}
		if (top) out.push(top);
		if (bottom) out.push(bottom);
	}
	return out;
}

function pad(s: Span, log: boolean): Span {
	if (log) {
		const f = s.hi > s.lo ? Math.exp((Math.log(s.hi) - Math.log(s.lo)) * 0.03) : 1.5;
		return { lo: Math.max(Number.MIN_VALUE, s.lo / f), hi: Math.min(Number.MAX_VALUE, s.hi * f) };
	}
	const d = s.hi > s.lo ? (s.hi - s.lo) * 0.04 : Math.abs(s.hi) * 0.1 || 1;
	return { lo: s.lo >= 0 && s.lo - d < 0 ? 0 : s.lo - d, hi: s.hi + d };
}

/** Options of a y axis. */
export interface Fit {
	/** The range of x. */
	from: number;
	to: number;
	log: boolean;
	/** Extends the axis to isolated spikes and excluded runs. */
	full: boolean;
	/** Limits set by the user; null: automatic. */
	limits?: readonly [number | null, number | null];
}

/** Applies the user's limits if a span remains. */
function limited(s: Span, { limits, log }: Fit): Span {
	const [lo, hi] = [limits?.[0] ?? s.lo, limits?.[1] ?? s.hi];
	return lo < hi && !(log && lo <= 0) ? { lo, hi } : s;
}

/** The y axis. It contains every value of the runs that count, including isolated spikes up to STRETCH_SPIKE times the
 * usual span; an excluded run may extend it a little. Values outside are returned with position and value. */
export function fitRange(lines: readonly ChartLine[], fit: Fit): Range {
	const { from, to, log, full } = fit;
	const all = spanOf(lines, from, to, log);
	if (!all) {
		const empty = limited({ lo: log ? 0.1 : 0, hi: 1 }, fit);
		return { ...empty, outside: outsideOf(lines, empty, from, to) };
	}
	let span = all;
	if (!full) {
		const good = lines.filter((l) => l.fit);
		const inner = spanOf(good, from, to, log);
		if (inner) {
			const usual = usualSpan(good, from, to, log);
			const kept = usual ? limit(inner, usual, STRETCH_SPIKE, log) : inner;
			const wide = limit(all, kept, STRETCH_FALLEN, log);
			span = { lo: wide.lo === all.lo ? all.lo : kept.lo, hi: wide.hi === all.hi ? all.hi : kept.hi };
		}
	}
	const p = limited(pad(span, log), fit);
	return { ...p, outside: outsideOf(lines, p, from, to) };
}

/** Spreads labels: takes desired centres and returns centres at least `gap` apart, within [top, bottom] if they fit.
 * Order is kept. */
export function spreadLabels(want: readonly number[], gap: number, top: number, bottom: number): number[] {
	const order = want.map((_, i) => i).sort((a, b) => want[a]! - want[b]!);
	const room = Math.min(gap, order.length > 1 ? (bottom - top) / (order.length - 1) : gap);
	const pos = order.map((i) => Math.min(bottom, Math.max(top, want[i]!)));
	for (let k = 1; k < pos.length; k++) pos[k] = Math.max(pos[k]!, pos[k - 1]! + room);
	if (pos.length && pos[pos.length - 1]! > bottom) {
		pos[pos.length - 1] = bottom;
		for (let k = pos.length - 2; k >= 0; k--) pos[k] = Math.min(pos[k]!, pos[k + 1]! - room);
	}
	const out = new Array<number>(want.length);
	order.forEach((i, k) => (out[i] = pos[k]!));
	return out;
}

/** Assigns [left, width] boxes to rows without overlap; -1 if no row has room. */
export function packRows(boxes: readonly { left: number; width: number }[], rows: number): number[] {
	const ends = new Array<number>(rows).fill(-Infinity);
	const order = boxes.map((_, i) => i).sort((a, b) => boxes[a]!.left - boxes[b]!.left);
	const out = new Array<number>(boxes.length).fill(-1);
	for (const i of order) {
		const r = ends.findIndex((e) => e + 6 <= boxes[i]!.left);
		if (r < 0) continue;
		out[i] = r;
		ends[r] = boxes[i]!.left + boxes[i]!.width;
	}
	return out;
}

/** y of a polyline at x, interpolated linearly; null outside it or in a gap. */
export function yAt(xs: readonly number[], ys: readonly number[], x: number): number | null {
	let lo = 0;
	let hi = xs.length - 1;
	if (hi < 0 || x < xs[0]! || x > xs[hi]!) return null;
	while (hi - lo > 1) {
		const mid = (lo + hi) >> 1;
		if (xs[mid]! <= x) lo = mid;
		else hi = mid;
	}
	const a = ys[lo]!;
	const b = ys[hi]!;
	if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) ? (Number.isNaN(b) ? null : b) : a;
	const w = xs[hi]! - xs[lo]!;
	return w > 0 ? a + ((b - a) * (x - xs[lo]!)) / w : b;
}

/** Distance in pixels from (px, py) to the segment from a to b. */
function toSegment(px: number, py: number, ax: number, ay: number, bx: number, by: number): number {
	const w = (bx - ax) ** 2 + (by - ay) ** 2;
	const t = w > 0 ? Math.min(1, Math.max(0, ((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / w)) : 0;
	return Math.hypot(px - ax - t * (bx - ax), py - ay - t * (by - ay));
}

/** First index with x of at least v. */
export function lowerBound(xs: readonly number[], v: number): number {
	let lo = 0;
	let hi = xs.length;
	while (lo < hi) {
		const mid = (lo + hi) >> 1;
		if (xs[mid]! < v) lo = mid + 1;
		else hi = mid;
	}
	return lo;
}

/** Distance in pixels from a position to a polyline. Looks only within `reach` in x, so that long lines are cheap; sx
 * and sy map values to pixels. Infinity if nothing is near. */
export function distanceTo(xs: readonly number[], ys: readonly number[],
	at: { x: number; px: number; py: number; reach: number },
	sx: (x: number) => number, sy: (y: number) => number): number {
	let best = Infinity;
	const first = Math.max(0, lowerBound(xs, at.x - at.reach) - 1);
	for (let i = first; i < xs.length && (i === first || xs[i - 1]! <= at.x + at.reach); i++) {
		if (!Number.isFinite(ys[i]!)) continue;
		const j = i + 1 < xs.length && Number.isFinite(ys[i + 1]!) ? i + 1 : i;
		best = Math.min(best, toSegment(at.px, at.py, sx(xs[i]!), sy(ys[i]!), sx(xs[j]!), sy(ys[j]!)));
	}
	return best;
}

/** x of the drawn point nearest in pixels in both directions, so that the tip of a spike can be selected; null if none
 * is within reach: in x units, and in pixels. */
export function snapX(xs: readonly number[], ys: readonly number[],
	at: { x: number; px: number; py: number; reach: number; pixels: number },
	sx: (x: number) => number, sy: (y: number) => number): number | null {
	let best: number | null = null;
	let dist = at.pixels;
	for (let i = lowerBound(xs, at.x - at.reach); i < xs.length && xs[i]! <= at.x + at.reach; i++) {
		if (!Number.isFinite(ys[i]!)) continue;
		const d = Math.hypot(sx(xs[i]!) - at.px, sy(ys[i]!) - at.py);
		if (d < dist) {
			dist = d;
			best = xs[i]!;
		}
	}
	return best;
}

/** Index of the last drawn point at or before the end of the line, -1 for an empty line. */
export function lastPoint(ys: readonly number[]): number {
	let i = ys.length - 1;
	while (i >= 0 && !Number.isFinite(ys[i]!)) i--;
	return i;
}
