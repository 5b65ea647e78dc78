// SPDX-License-Identifier: Apache-2.0
// Shared types of a line chart: its data, its events, and the pane, which maps values to pixels.
import type { ChartLine, Fit, Range } from './geometry.ts';
import type { Box, Painted } from '../base/chart.ts';

export interface LineData extends Fit {
	lines: ChartLine[];
	xLabel: string;
	/** time: x counts seconds, clock: since 1970, with ticks at whole minutes, hours and days (in the local zone);
	 * the others: numbers. */
	ticksX: 'even' | 'step' | 'epoch' | 'time' | 'clock';
	/** Logarithmic x axis; requires from above 0. */
	logX?: boolean;
	/** x counts things: integer ticks only. */
	whole: boolean;
	/** y counts bytes: ticks at round KiB, MiB, …. */
	bytes?: boolean;
	/** Width of the names at the line ends; 0 hides them. */
	gutter: number;
}

/** Points of a line, exact to the unit. */
export type NearLine = Pick<ChartLine, 'id' | 'xs' | 'ys' | 'unit'>;

export interface LineEvents {
	formatX(x: number): string;
	formatY(y: number): string;
	/** x at the cursor, in full precision; the default is formatX. */
	exactX?(x: number): string;
	/** Values in the tooltip, with common decimals; each is exact to its unit. The default is formatY. */
	sayY?(ys: readonly number[], units: readonly number[]): string[];
	/** All logged points of the lines in a range of x; absent: the drawn points are all. */
	near?(from: number, to: number): Promise<readonly NearLine[]>;
	/** The cursor (pointer or arrow keys) is at x, or has left. */
	onCursor(x: number | null): void;
	onHover(id: string | null): void;
	onZoom(from: number, to: number): void;
	onReset(): void;
	/** why: at the reason of its failure. */
	onOpen(id: string, why?: boolean): void;
	/** Asks for a colour, by a click on the dash of a name or by a key. */
	onColour?(id: string, e: { clientX?: number; clientY?: number }): unknown;
}

/** A drawn mark (hollow end, cross, arrow, flag) with its value or text. */
export interface Mark {
	id: string;
	kind: string;
	x: number;
	y: number | null;
	text: string;
}

export interface Pane extends Painted {
	d: LineData;
	range: Range;
	formatX(x: number): string;
	cursorX(x: number): string;
	formatY(y: number): string;
	x(v: number): number;
	y(v: number): number;
	/** The x value at a pixel. */
	xAt(px: number): number;
}

/** Points further away are clamped: a canvas drops a whole line for one coordinate beyond a float's range. */
const FAR_PX = 1e5;

/** Maps of values to pixels: a line's point is drawn at (x, y). */
export function mapsOf(d: LineData, range: Range, box: Box): Pick<Pane, 'x' | 'y' | 'xAt'> {
	const far = (v: number) => Math.min(FAR_PX, Math.max(-FAR_PX, v));
	const t = d.log ? Math.log : (v: number) => v;
	const u = d.logX ? Math.log : (v: number) => v;
	const from = u(d.from);
	const kx = box.width / (u(d.to) - from || 1);
	const lo = t(range.lo);
	const ky = box.height / (t(range.hi) - lo || 1);
	const bottom = box.top + box.height;
	return {
		x: (v) => box.left + (d.logX ? far((u(v) - from) * kx) : (v - from) * kx),
		y: (v) => bottom - far((t(v) - lo) * ky),
		xAt: (px) => (d.logX ? Math.exp(from + (px - box.left) / kx) : from + (px - box.left) / kx),
	};
}

export function isInside(p: Pane, x: number, y: number): boolean {
	return x >= p.d.from && x <= p.d.to && y >= p.range.lo && y <= p.range.hi;
}

/** Clips to the plot area. */
export function clip(g: CanvasRenderingContext2D, b: Box): void {
	g.beginPath();
	g.rect(b.left - 1, b.top - 1, b.width + 2, b.height + 2);
	g.clip();
}
