// SPDX-License-Identifier: Apache-2.0
// Axes of a line chart: plot area, grid, ticks and labels.
import type { Range } from './geometry.ts';
import type { Box } from '../base/chart.ts';
import { FONT } from '../base/ink.ts';
import type { LineData, Pane } from './pane.ts';
import { byteTexts, byteTicks, evenTicks, logTicks, tickTexts, timeTicks } from '../base/ticks.ts';

const TOP = 8;
const BOTTOM = 24;
const LEFT = 50;
const RIGHT = 10;
/** Minimum pixels between ticks; long x labels need more. */
const APART_X = 56;
const APART_Y = 32;
const TICKS_Y = 10;

function ticksY(d: LineData, range: Range, height: number): number[] {
	const most = Math.min(TICKS_Y, height / APART_Y);
	if (d.log) return logTicks(range.lo, range.hi, most);
	return d.bytes ? byteTicks(range.lo, range.hi, most) : evenTicks(range.lo, range.hi, most);
}

function textsY(d: LineData, ticks: readonly number[], format: (y: number) => string): string[] {
	return d.bytes && !d.log ? byteTexts(ticks) : tickTexts(ticks, d.log, format);
}

/** The plot area; lanes is the height of the flags above it. */
export function boxOf(g: CanvasRenderingContext2D, d: LineData, range: Range,
	size: { width: number; height: number; lanes: number },
	formatY: (y: number) => string): Box {
	const height = Math.max(10, size.height - TOP - size.lanes - BOTTOM);
	g.font = FONT;
	const widest = Math.max(0, ...textsY(d, ticksY(d, range, height), formatY).map((t) => g.measureText(t).width));
	const left = Math.min(size.width / 3, Math.max(LEFT, Math.ceil(widest) + 12));
	return { left, top: TOP + size.lanes, width: Math.max(10, size.width - left - (d.gutter || RIGHT)), height };
}

/** Ticks of x with a minimum distance in pixels. */
export function ticksX({ box, d }: Pane, apart = APART_X): number[] {
	if (d.logX) return logTicks(d.from, d.to, box.width / apart);
	if (d.ticksX !== 'time' && d.ticksX !== 'clock') return evenTicks(d.from, d.to, box.width / apart, d.whole);
	const zone = d.ticksX === 'clock' ? new Date(d.from * 1000).getTimezoneOffset() * -60 : 0;
	return timeTicks(d.from, d.to, box.width / apart, zone);
}

interface TickBox {
	/** Pixel of the tick, and of its label. */
	x: number;
	left: number;
	width: number;
	text: string;
}

/** The ticks of x with their labels, in pixels. */
export function tickBoxes(g: CanvasRenderingContext2D, p: Pane): TickBox[] {
	const widest = Math.max(0, ...ticksX(p).map((v) => g.measureText(p.formatX(v)).width));
	return ticksX(p, Math.max(APART_X, widest + 14)).map((v) => {
		const x = p.x(v);
		const text = p.formatX(v);
		const width = g.measureText(text).width;
		return { x, text, width, left: Math.min(p.width - width - 1, Math.max(0, x - width / 2)) };
	});
}

function drawX(g: CanvasRenderingContext2D, p: Pane): void {
	const b = p.box;
	for (const t of tickBoxes(g, p)) {
		g.fillRect(Math.round(t.x), b.top, 1, b.height);
		g.fillStyle = p.theme.dim;
		g.fillText(t.text, t.left, b.top + b.height + 12);
		g.fillStyle = p.theme.grid;
	}
}

/** Labels of the ticks of y. */
export function labelsY(p: Pane): string[] {
	return textsY(p.d, ticksY(p.d, p.range, p.box.height), p.formatY);
}

function drawY(g: CanvasRenderingContext2D, p: Pane): void {
	const b = p.box;
	const ticks = ticksY(p.d, p.range, b.height);
	const texts = labelsY(p);
	ticks.forEach((v, i) => {
		const y = p.y(v);
		g.fillRect(b.left, Math.round(y), b.width, 1);
		g.fillStyle = p.theme.dim;
		g.fillText(texts[i]!, b.left - 5 - g.measureText(texts[i]!).width, y);
		g.fillStyle = p.theme.grid;
	});
}

export function drawAxes(g: CanvasRenderingContext2D, p: Pane): void {
	g.fillStyle = p.theme.grid;
	drawX(g, p);
	drawY(g, p);
	g.fillStyle = p.theme.dim;
	if (p.d.gutter > 40) g.fillText(p.d.xLabel, p.box.left + p.box.width + 20, p.box.top + p.box.height + 12);
}
