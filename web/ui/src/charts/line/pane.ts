// What a line chart shows and where it is drawn: the data that comes in, the events that go out, and the pane, which
// turns values into pixels. Shared by the modules that draw the parts of a chart.
import type { ChartLine, Fit, Range } from './geometry.ts';
import type { Theme } from '../base/ink.ts';

export interface LineData extends Fit {
	lines: ChartLine[];
	xLabel: string;
	/** x is a number, seconds, or seconds since 1970. */
	ticksX: 'even' | 'time' | 'clock';
	/** x goes by factors; from is above 0 then. */
	logX?: boolean;
	/** x counts things: no ticks between whole numbers. */
	whole: boolean;
	/** Width for the names at the line ends; 0 leaves them out. */
	gutter: number;
}

export interface LineEvents {
	formatX(x: number): string;
	formatY(y: number): string;
	/** The pointer or the arrow keys stand at x, or have left. */
	onCursor(x: number | null): void;
	onHover(id: string | null): void;
	onZoom(from: number, to: number): void;
	onReset(): void;
	onOpen(id: string): void;
}

/** Something drawn besides lines: hollow ends, crosses, arrows, flags; with the value or the words. */
export interface Mark {
	id: string;
	kind: string;
	x: number;
	y: number | null;
	text: string;
}

export interface Box {
	left: number;
	top: number;
	width: number;
	height: number;
}

/** Everything in CSS pixels of the chart's element. */
export interface Pane {
	d: LineData;
	range: Range;
	/** Inside the axes. */
	box: Box;
	/** Of the whole element. */
	width: number;
	height: number;
	theme: Theme;
	formatX(x: number): string;
	formatY(y: number): string;
	x(v: number): number;
	y(v: number): number;
	/** The x that is drawn there. */
	xAt(px: number): number;
}

/** What lies further away is drawn there: a canvas drops a whole line for one coordinate beyond a float's range. */
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

/** Keeps what is drawn next within the axes. */
export function clip(g: CanvasRenderingContext2D, b: Box): void {
	g.beginPath();
	g.rect(b.left - 1, b.top - 1, b.width + 2, b.height + 2);
	g.clip();
}
