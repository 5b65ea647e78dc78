// SPDX-License-Identifier: Apache-2.0
// Lines of a chart, the bands of groups, and the ends: a run that became NaN ends hollow with a cross on the axis; a
// failed run ends with a cross.
import { FEW, lastPoint, type ChartLine } from './geometry.ts';
import { disc, segment } from '../base/ink.ts';
import { isInside, type Mark, type Pane } from './pane.ts';

function trace(g: CanvasRenderingContext2D, p: Pane, xs: number[], ys: number[]): void {
	let pen = false;
	g.beginPath();
	for (let i = 0; i < xs.length; i++) {
		const y = ys[i]!;
		if (!Number.isFinite(y) || (p.d.log && y <= 0)) {
			pen = false;
			continue;
		}
		if (pen) g.lineTo(p.x(xs[i]!), p.y(y));
		else g.moveTo(p.x(xs[i]!), p.y(y));
		pen = true;
	}
	g.stroke();
}

/** Draws dots of isolated points, and all points of lines with few. */
function dots(g: CanvasRenderingContext2D, p: Pane, l: ChartLine, width: number): void {
	const drawable = (i: number) => Number.isFinite(l.ys[i] ?? NaN) && !(p.d.log && l.ys[i]! <= 0);
	const few = l.xs.length <= FEW;
	for (let i = 0; i < l.xs.length; i++)
		if (drawable(i) && (few || (!drawable(i - 1) && !drawable(i + 1))))
			disc(g, p.x(l.xs[i]!), p.y(l.ys[i]!), l.xs.length === 1 ? 3 : 1.1 + width * 0.6);
}

/** Draws the band around a line, in parts between gaps; values up to 0 are at the bottom of a log axis. */
function fill(g: CanvasRenderingContext2D, p: Pane, l: ChartLine): void {
	const { low, high } = l.band!;
	const y = (v: number) => (p.d.log && v <= 0 ? p.box.top + p.box.height : p.y(v));
	const there = (i: number) => Number.isFinite(low[i] ?? NaN) && Number.isFinite(high[i] ?? NaN);
	g.globalAlpha = 0.16;
	for (let from = 0, i = 0; i <= l.xs.length; i++) {
		if (there(i)) continue;
		g.beginPath();
		for (let k = from; k < i; k++) (k > from ? g.lineTo : g.moveTo).call(g, p.x(l.xs[k]!), y(high[k]!));
		for (let k = i - 1; k >= from; k--) g.lineTo(p.x(l.xs[k]!), y(low[k]!));
		g.fill();
		from = i + 1;
	}
	g.globalAlpha = 1;
}

export function drawLine(g: CanvasRenderingContext2D, p: Pane, l: ChartLine, width: number): void {
	g.strokeStyle = l.colour;
	g.fillStyle = l.colour;
	if (l.band) fill(g, p, l);
	if (l.smooth) {
		g.globalAlpha = 0.25;
		g.lineWidth = 1;
		g.setLineDash([]);
		trace(g, p, l.xs, l.ys);
		g.globalAlpha = 1;
	}
	g.lineWidth = l.smooth ? width + 0.4 : width;
	g.setLineDash(l.dash);
	trace(g, p, l.smooth?.xs ?? l.xs, l.smooth?.ys ?? l.ys);
	g.setLineDash([]);
	dots(g, p, l, width);
}

function cross(g: CanvasRenderingContext2D, x: number, y: number): void {
	const r = 4;
	g.lineWidth = 2;
	segment(g, [x - r, y - r], [x + r, y + r]);
	segment(g, [x + r, y - r], [x - r, y + r]);
}

/** Draws a line's end and returns what it drew. */
export function drawEnd(g: CanvasRenderingContext2D, p: Pane, l: ChartLine): Mark[] {
	const marks: Mark[] = [];
	const i = lastPoint(l.ys);
	const [x, y] = [l.xs[i] ?? NaN, l.ys[i] ?? NaN];
	const there = i >= 0 && isInside(p, x, y);
	g.strokeStyle = l.colour;
	g.lineWidth = 1.8;
	if (there && l.badToEnd) {
		g.fillStyle = p.theme.back;
		disc(g, p.x(x), p.y(y), 3.6);
		g.stroke();
		marks.push({ id: l.id, kind: 'hollow-end', x, y, text: 'NaN follows' });
	}
	if (l.badX !== null && l.badX >= p.d.from && l.badX <= p.d.to) {
		cross(g, p.x(l.badX), p.box.top + p.box.height);
		marks.push({ id: l.id, kind: 'nan-cross', x: l.badX, y: null, text: 'NaN' });
	}
	if (there && l.end === 'failed') {
		cross(g, p.x(x), p.y(y));
		marks.push({ id: l.id, kind: 'failed-end', x, y, text: 'failed' });
	}
	if (there && l.end === 'running') {
		g.fillStyle = l.colour;
		disc(g, p.x(x), p.y(y), 3);
	}
	return marks;
}
