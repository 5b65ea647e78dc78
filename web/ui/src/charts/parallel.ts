// SPDX-License-Identifier: Apache-2.0
// Parallel coordinates: an axis per value, a line per run. Ranges of axes can be brushed; other lines are dimmed.
// drawn() returns what is on the screen.
import type { Painted } from './base/chart.ts';
import { blank, cut, disc, FONT, halo } from './base/ink.ts';
import { PickChart } from './base/pick.ts';

interface ParallelLine {
	id: string;
	name: string;
	colour: string;
	dash: number[];
	/** Position on each axis, from 0 (bottom) to 1; null without a value. */
	at: (number | null)[];
	/** Dimmed and in the background. */
	back: boolean;
}

interface ParallelAxis {
	title: string;
	ticks: { at: number; text: string }[];
	brush: [number, number] | null;
	/** Lines with equal values are spread over this share of the axis. */
	spread: number;
}

export interface ParallelData {
	axes: ParallelAxis[];
	/** The last line is in front. */
	lines: ParallelLine[];
}

interface ParallelEvents {
	onHover(id: string | null): void;
	onOpen(id: string): void;
	/** The axis with the keyboard focus. */
	onAxis(axis: number): void;
	/** null: no brush on that axis. */
	onBrush(axis: number, range: [number, number] | null): void;
}

interface Drawn {
	axes: { title: string; x: number; top: number; height: number; ticks: string[] }[];
	lines: { id: string; ys: (number | null)[]; back: boolean }[];
}

const TOP = 34;
const BOTTOM = 14;
const LEFT = 40;
const RIGHT = 74;
const NEAR_PX = 16;
const AXIS_PX = 12;
const DRAG_PX = 4;
/** Ranges made by keyboard are extended by this margin, because an address rounds them. */
const KEY_EDGE = 0.001;

interface Drag {
	axis: number;
	from: number;
	to: number;
}

/** Opacity of lines that are in the background but within the brushes; they are grey. */
const GREY = 0.75;

/** Returns true if a line passes all brushes. */
export function isBrushed(axes: readonly ParallelAxis[], l: ParallelLine): boolean {
	return axes.every(({ brush }, i) => !brush
		|| (l.at[i] != null && l.at[i]! >= brush[0] && l.at[i]! <= brush[1]));
}

/** Up and Down step through the runs, best first; Left and Right through the axes; Enter opens. Space starts a range
 * of the axis at a run and ends it at another; Delete removes it. */
export class ParallelChart extends PickChart<ParallelData, ParallelLine, Drag, ParallelEvents> {
	/** The axis with the keyboard focus, once chosen. */
	private axis: number | null = null;

	/** Axes with their pixels, lines with those of their points. */
	drawn(): Drawn | null {
		const d = this.data;
		return d && {
			axes: d.axes.map((a, i) => ({
				title: a.title, x: this.x(i), top: TOP, height: this.height,
				ticks: a.ticks.map((t) => t.text),
			})),
			lines: d.lines.map((l) => ({
				id: l.id, ys: l.at.map((v) => (v === null ? null : this.y(v))), back: this.isBack(l),
			})),
		};
	}

	private get height(): number {
		return Math.max(10, this.el.clientHeight - TOP - BOTTOM);
	}

	private x(axis: number): number {
		const n = this.data!.axes.length - 1;
		return LEFT + (n ? (axis / n) * Math.max(10, this.el.clientWidth - LEFT - RIGHT) : 0);
	}

	private y(at: number): number {
		return TOP + (1 - at) * this.height;
	}

	private isBack(l: ParallelLine): boolean {
		return l.back || !isBrushed(this.data!.axes, l);
	}

	/** A run without a value leaves a gap; a value between two gaps is a dot. */
	private trace(g: CanvasRenderingContext2D, l: ParallelLine, width: number): void {
		g.strokeStyle = l.colour;
		g.fillStyle = l.colour;
		g.lineWidth = width;
		g.setLineDash(l.dash);
		g.beginPath();
		l.at.forEach((v, i) => {
			if (v === null) return;
			if (i > 0 && l.at[i - 1] !== null) g.lineTo(this.x(i), this.y(v));
			else g.moveTo(this.x(i), this.y(v));
		});
		g.stroke();
		g.setLineDash([]);
		l.at.forEach((v, i) => {
			if (v === null || (l.at[i - 1] ?? null) !== null || (l.at[i + 1] ?? null) !== null) return;
			disc(g, this.x(i), this.y(v), 2.5);
		});
	}

	paint(g: CanvasRenderingContext2D): Painted | null {
		const d = this.data;
		if (!d) return null;
		for (const l of d.lines) {
			if (!this.isBack(l)) continue;
			const near = isBrushed(d.axes, l);
			g.globalAlpha = near ? GREY : 0.16;
			this.trace(g, near ? { ...l, colour: this.theme.dim } : l, 1);
		}
		g.globalAlpha = d.lines.length > 60 ? 0.6 : 0.9;
		for (const l of d.lines) if (!this.isBack(l)) this.trace(g, l, 1.4);
		g.globalAlpha = 1;
		d.axes.forEach((a, i) => this.drawAxis(g, a, i));
		const { clientWidth: width, clientHeight } = this.el;
		return { width, height: clientHeight, theme: this.theme,
			box: { left: LEFT, top: TOP, width: width - LEFT - RIGHT, height: this.height } };
	}

	private drawAxis(g: CanvasRenderingContext2D, a: ParallelAxis, i: number): void {
		const x = this.x(i);
		const room = (this.x(1) - this.x(0) || 120) - 12;
		g.fillStyle = this.theme.dim;
		g.fillRect(Math.round(x), TOP, 1, this.height);
		if (a.brush) this.drawBrush(g, i, this.y(a.brush[1]), this.y(a.brush[0]));
		const roomOfTicks = i === this.data!.axes.length - 1 ? RIGHT - 10 : room;
		for (const t of a.ticks)
			halo(g, this.theme, cut(g, t.text, roomOfTicks),
				{ x: x + 6, y: this.y(t.at), colour: this.theme.dim });
		g.font = 'bold ' + FONT;
		const title = cut(g, a.title, room);
		g.fillStyle = this.theme.text;
		const { width } = g.measureText(title);
		g.fillText(title, Math.max(2, Math.min(x - width / 2, this.el.clientWidth - width - 2)), TOP - 18);
		g.font = FONT;
	}

	private drawBrush(g: CanvasRenderingContext2D, axis: number, top: number, bottom: number): void {
		g.globalAlpha = 0.3;
		g.fillStyle = this.theme.accent;
		g.fillRect(this.x(axis) - 5, top, 11, bottom - top);
		g.globalAlpha = 1;
	}

	protected drawOver(): void {
		const d = this.data;
		if (!d) return;
		const g = blank(this.over, this.el.clientWidth, this.el.clientHeight);
		const line = this.front(d.lines);
		const drag = this.drag;
		if (drag) this.drawBrush(g, drag.axis, Math.min(drag.from, drag.to), Math.max(drag.from, drag.to));
		if (this.axis !== null) this.drawChosen(g, this.axis);
		if (!line) return;
		this.trace(g, line, 3);
		const end = line.at[line.at.length - 1];
		g.font = 'bold ' + FONT;
		const x = Math.max(2, this.el.clientWidth - g.measureText(line.name).width - 6);
		halo(g, this.theme, line.name,
			{ x, y: end == null ? TOP : Math.max(TOP - 4, this.y(end) - 12), colour: line.colour });
		g.font = FONT;
	}

	private drawChosen(g: CanvasRenderingContext2D, axis: number): void {
		g.fillStyle = this.theme.accent;
		g.fillRect(Math.round(this.x(axis)) - 1, TOP, 3, this.height);
	}

	private axisAt(px: number): number | null {
		const i = this.data!.axes.findIndex((_, k) => Math.abs(this.x(k) - px) <= AXIS_PX);
		return i < 0 ? null : i;
	}

	private closest(px: number, py: number): string | null {
		const d = this.data!;
		const next = d.axes.findIndex((_, k) => this.x(k) >= px);
		const right = next < 0 ? d.axes.length - 1 : Math.max(1, next);
		const [a, b] = [this.x(right - 1), this.x(right)];
		let best: string | null = null;
		let dist = NEAR_PX;
		for (const l of d.lines) {
			const [u, v] = [l.at[right - 1], l.at[right]];
			if (this.isBack(l) || u == null || v == null) continue;
			const share = Math.min(1, Math.max(0, (px - a) / (b - a)));
			const away = Math.abs(py - this.y(u + (v - u) * share));
			if (away <= dist) {
				dist = away;
				best = l.id;
			}
		}
		return best;
	}

	protected move(e: PointerEvent): void {
		if (!this.data) return;
		const [px, py] = this.pixelsOf(e);
		if (this.drag && !this.begun) {
			this.drag.to = Math.min(TOP + this.height, Math.max(TOP, py));
			return this.drawOver();
		}
		const on = this.axisAt(px) !== null;
		this.el.style.cursor = on ? 'ns-resize' : 'pointer';
		this.hover(this.closest(px, py));
	}

	protected down(e: PointerEvent): void {
		const [px, py] = this.pixelsOf(e);
		const axis = this.data && e.button === 0 ? this.axisAt(px) : null;
		if (axis === null) return;
		this.begun = null;
		this.drag = { axis, from: py, to: py };
		this.el.setPointerCapture(e.pointerId);
	}

	protected up(): void {
		const drag = this.drag;
		if (!drag || this.begun) return;
		this.cancel();
		this.hover(null); // a click follows and opens the hovered run
		const place = (py: number) => 1 - (py - TOP) / this.height;
		const range: [number, number] =
			[place(Math.max(drag.from, drag.to)), place(Math.min(drag.from, drag.to))];
		this.ev.onBrush(drag.axis, Math.abs(drag.to - drag.from) < DRAG_PX ? null : range);
	}

	protected click(e: MouseEvent): void {
		const [px] = this.pixelsOf(e);
		if (this.data && this.axisAt(px) === null && this.hoverId !== null) this.ev.onOpen(this.hoverId);
	}

	protected act(key: string): boolean {
		const lines = this.data!.lines;
		const list = lines.filter((l) => !(this.begun ? l.back : this.isBack(l))).reverse();
		const at = list.findIndex((l) => l.id === this.lit);
		if (key === 'ArrowDown') this.walk(list[Math.min(list.length - 1, at + 1)]);
		else if (key === 'ArrowUp') this.walk(list[Math.max(0, at - 1)]);
		else if (key === 'ArrowRight') this.choose(this.axis === null ? 0 : this.axis + 1);
		else if (key === 'ArrowLeft') this.choose(this.axis === null ? Infinity : this.axis - 1);
		else if (key === 'Enter' && at >= 0) this.ev.onOpen(list[at]!.id);
		else if (key === ' ' && this.axis !== null && at >= 0) this.range(list[at]!, this.axis);
		else if (key === 'Delete' && this.axis !== null) this.ev.onBrush(this.axis, null);
		else if (key === 'Escape' && this.begun) this.end();
		else return false;
		return true;
	}

	private walk(l: ParallelLine | undefined): void {
		const drag = this.drag;
		if (l && drag && this.begun) drag.to = this.y(l.at[drag.axis] ?? this.begun.at[drag.axis]!);
		this.walkTo(l?.id ?? null);
	}

	private choose(axis: number): void {
		this.end();
		this.axis = Math.max(0, Math.min(this.data!.axes.length - 1, axis));
		this.ev.onAxis(this.axis);
		this.drawOver();
	}

	/** Starts a range at a run's value, or ends the open one. */
	private range(l: ParallelLine, axis: number): void {
		const at = l.at[axis] ?? null;
		if (at === null) return;
		if (this.begun) {
			const ends = [this.begun.at[axis]!, at];
			const edge = this.data!.axes[axis]!.spread + KEY_EDGE;
			this.end();
			return this.ev.onBrush(axis, [Math.min(...ends) - edge, Math.max(...ends) + edge]);
		}
		this.begun = l;
		this.drag = { axis, from: this.y(at), to: this.y(at) };
		this.drawOver();
	}
}
