// SPDX-License-Identifier: Apache-2.0
// The cursor of a line chart: vertical line, points, x label, and the selected range.
import { yAt, type ChartLine } from './geometry.ts';
import { disc, halo, segment } from '../base/ink.ts';
import { isInside, type Pane } from './pane.ts';

/** Label of the highlighted (or only) line at x, next to its point. */
function drawValue(g: CanvasRenderingContext2D, p: Pane, x: number, front: ChartLine | null): void {
	const l = front ?? (p.d.lines.length === 1 ? p.d.lines[0]! : null);
	const y = l ? yAt(l.xs, l.ys, x) : null;
	if (!l || y === null || !isInside(p, x, y)) return;
	const text = (p.d.lines.length > 1 ? l.name + ' ' : '') + p.formatY(y);
	const w = g.measureText(text).width;
	const px = p.x(x);
	const right = px + 8 + w <= p.box.left + p.box.width;
	halo(g, p.theme, text, { x: right ? px + 8 : Math.max(p.box.left + 2, px - 8 - w),
		y: Math.max(p.box.top + 7, p.y(y) - 10), colour: l.colour });
}

/** front: the highlighted line. */
export function drawCursor(g: CanvasRenderingContext2D, p: Pane, x: number, front: ChartLine | null): void {
	const b = p.box;
	const px = p.x(x);
	g.strokeStyle = p.theme.dim;
	g.lineWidth = 1;
	segment(g, [px, b.top], [px, b.top + b.height], [3, 3]);
	for (const l of p.d.lines) {
		const y = yAt(l.xs, l.ys, x);
		if (y === null || !isInside(p, x, y)) continue;
		g.fillStyle = l.colour;
		disc(g, px, p.y(y), 2.4);
	}
	drawValue(g, p, x, front);
	const text = p.formatX(x);
	const w = g.measureText(text).width;
	const left = Math.min(b.left + b.width - w - 4, Math.max(b.left, px - w / 2));
	g.fillStyle = p.theme.back;
	g.fillRect(left - 10, b.top + b.height + 3, w + 20, 18);
	g.fillStyle = p.theme.text;
	g.fillText(text, left, b.top + b.height + 12);
}

/** Pixel range from one end to the other, in ascending order. */
export function drawSelection(g: CanvasRenderingContext2D, p: Pane, [from, to]: [number, number]): void {
	const b = p.box;
	g.globalAlpha = 0.18;
	g.fillStyle = p.theme.accent;
	g.fillRect(Math.min(from, to), b.top, Math.abs(to - from), b.height);
	g.globalAlpha = 1;
}
