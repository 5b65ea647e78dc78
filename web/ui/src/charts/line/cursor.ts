// SPDX-License-Identifier: Apache-2.0
// The cursor of a line chart: vertical line, the nearest real point of each line, x label, and the selected range.
import { tickBoxes } from './axes.ts';
import { disc, segment } from '../base/ink.ts';
import { isInside, type Pane } from './pane.ts';
import type { Reading } from './read.ts';

/** Half the height of the x labels, and pixels around them. */
const HALF = 9;
const MARGIN = 4;

/** Pixels [left, right] that the cursor's label takes below the axis: its own and those of each tick label that it
 * would cover in part. */
function labelSpan(g: CanvasRenderingContext2D, p: Pane, x: number): { left: number; cover: [number, number] } {
	const b = p.box;
	const w = g.measureText(p.cursorX(x)).width;
	const left = Math.min(b.left + b.width - w - MARGIN, Math.max(b.left, p.x(x) - w / 2));
	let cover: [number, number] = [left - MARGIN, left + w + MARGIN];
	for (const t of tickBoxes(g, p))
		if (t.left < cover[1] && t.left + t.width > cover[0])
			cover = [Math.min(cover[0], t.left - 1), Math.max(cover[1], t.left + t.width + 1)];
	return { left, cover };
}

export function drawCursor(g: CanvasRenderingContext2D, p: Pane, x: number, list: readonly Reading[]): void {
	const b = p.box;
	const px = p.x(x);
	g.strokeStyle = p.theme.dim;
	g.lineWidth = 1;
	segment(g, [px, b.top], [px, b.top + b.height], [3, 3]);
	for (const r of list) {
		if (r.beyond || !isInside(p, r.x, r.y)) continue;
		g.fillStyle = r.line.colour;
		disc(g, p.x(r.x), p.y(r.y), 3);
	}
	const { left, cover } = labelSpan(g, p, x);
	const middle = b.top + b.height + 12;
	g.fillStyle = p.theme.back;
	g.fillRect(cover[0], middle - HALF, cover[1] - cover[0], 2 * HALF);
	g.fillStyle = p.theme.text;
	g.fillText(p.cursorX(x), left, middle);
}

/** Pixel range from one end to the other, in ascending order. */
export function drawSelection(g: CanvasRenderingContext2D, p: Pane, [from, to]: [number, number]): void {
	const b = p.box;
	g.globalAlpha = 0.18;
	g.fillStyle = p.theme.accent;
	g.fillRect(Math.min(from, to), b.top, Math.abs(to - from), b.height);
	g.globalAlpha = 1;
}
