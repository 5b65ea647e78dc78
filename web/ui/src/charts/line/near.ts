// SPDX-License-Identifier: Apache-2.0
// The logged points around the cursor. A long line is drawn from buckets, which have only their first, lowest, highest
// and last points. Once the cursor rests, all points around it are asked for, and the values are read from them.
import { lowerBound, type ChartLine } from './geometry.ts';
import type { NearLine, Pane } from './pane.ts';

/** How long the cursor rests before a request, and how far around it the points are asked for, in pixels and points. */
const REST_MS = 120;
const NEAR_PX = 24;
const NEAR_POINTS = 400;

/** A line with the points of `near` in place of its own between the first and the last of them. */
function spliced(l: ChartLine, near: NearLine | undefined): ChartLine {
	if (!near?.xs.length) return l;
	const start = lowerBound(l.xs, near.xs[0]!);
	const last = near.xs[near.xs.length - 1]!;
	let end = start;
	while (end < l.xs.length && l.xs[end]! <= last) end++;
	const join = (own: readonly number[], all: readonly number[]) =>
		[...own.slice(0, start), ...all, ...own.slice(end)];
	return { ...l, xs: join(l.xs, near.xs), ys: join(l.ys, near.ys), unit: near.unit };
}

/** The drawn lines, a range of x, and the same lines with all points in it. */
interface Known {
	of: readonly ChartLine[];
	from: number;
	to: number;
	lines: readonly ChartLine[];
}

export class Near {
	private known: Known | null = null;
	private timer = 0;

	/** ready: called when the points around the cursor have come. */
	constructor(private readonly ask: ((from: number, to: number) => Promise<readonly NearLine[]>) | undefined,
		private readonly ready: () => void) {}

	/** The lines to read at x. */
	lines(of: readonly ChartLine[], x: number): readonly ChartLine[] {
		const k = this.known;
		return k && k.of === of && x >= k.from && x <= k.to ? k.lines : of;
	}

	/** Asks for the points around x, unless they are drawn or known on both sides. */
	look(p: Pane, x: number): void {
		this.stop();
		const of = p.d.lines;
		const most = Math.max(0, ...of.map((l) => l.points ?? 0));
		if (!this.ask || !most) return;
		const pixels = Math.min(NEAR_PX, (NEAR_POINTS * p.box.width) / most);
		const at = (by: number) => p.xAt(p.x(x) + by * pixels);
		if ([at(-0.5), at(0.5)].every((v) => this.lines(of, v) !== of)) return;
		const [from, to] = [at(-1), at(1)];
		this.timer = window.setTimeout(() => void this.ask!(from, to).then((list) => {
			const found = new Map(list.map((l) => [l.id, l]));
			const lines = of.map((l) => (l.points ? spliced(l, found.get(l.id)) : l));
			this.known = { of, from, to, lines };
			this.ready();
		}, () => { /* the drawn points remain */ }), REST_MS);
	}

	/** Frees the points of other lines: a live chart has new ones several times a second. */
	keep(of: readonly ChartLine[]): void {
		if (this.known?.of !== of) this.known = null;
	}

	stop(): void {
		clearTimeout(this.timer);
	}
}
