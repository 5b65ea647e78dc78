// SPDX-License-Identifier: Apache-2.0
// Scatter plot of runs over two axes, each numeric or categorical, with the Pareto front as a line. Takes points, emits
// events.
import type { Painted } from './base/chart.ts';
import { blank, cut, disc, FONT, halo } from './base/ink.ts';
import { PickChart } from './base/pick.ts';
import { xyPlace, type Place } from './place.ts';

interface ScatterPoint {
	id: string;
	name: string;
	colour: string;
	/** Positions on the axes from 0 to 1; null without a value. */
	x: number | null;
	y: number | null;
	/** Dimmed and in the background. */
	back: boolean;
}

interface ScatterAxis {
	title: string;
	ticks: { at: number; text: string }[];
}

export interface ScatterData {
	x: ScatterAxis;
	y: ScatterAxis;
	points: ScatterPoint[];
	/** Points of the Pareto front sorted by x; empty: not drawn. */
	front: [number, number][];
}

interface ScatterEvents {
	onHover(id: string | null): void;
	onOpen(id: string): void;
	/** The runs in the selected rectangle. */
	onPick(ids: string[]): void;
}

interface Drawn {
	points: { id: string; px: number; py: number; back: boolean }[];
	front: number;
}

const PAD = { left: 62, right: 16, top: 14, bottom: 34 };
const NEAR_PX = 14;
const DRAG_PX = 4;
const RADIUS = 4;
const RADIUS_MANY = 2.6;
const MANY = 300;

/** Corners of a drag. */
type Drag = [number, number, number, number];

/** Arrows step through the runs by x, Enter opens; Space starts a rectangle at a run and ends it at another. */
export class ScatterChart extends PickChart<ScatterData, ScatterPoint, Drag, ScatterEvents> {
	drawn(): Drawn | null {
		const d = this.data;
		const at = this.place;
		return d && {
			points: d.points.flatMap((p) => (p.x === null || p.y === null ? []
				: [{ id: p.id, px: at.x(p.x), py: at.y(p.y), back: p.back }])),
			front: d.front.length,
		};
	}

	private get place(): Place {
		return xyPlace(this.el.clientWidth, this.el.clientHeight, PAD);
	}

	paint(g: CanvasRenderingContext2D): Painted | null {
		const d = this.data;
		if (!d) return null;
		this.drawAxes(g, d);
		this.drawFront(g, d);
		const radius = d.points.length > MANY ? RADIUS_MANY : RADIUS;
		for (const back of [true, false]) {
			g.globalAlpha = back ? 0.25 : 0.85;
			for (const p of d.points) if (p.back === back) this.dot(g, p, radius);
		}
		g.globalAlpha = 1;
		const { left, right, top, bottom } = this.place;
		return { width: this.el.clientWidth, height: this.el.clientHeight, theme: this.theme,
			box: { left, top, width: right - left, height: bottom - top } };
	}

	private dot(g: CanvasRenderingContext2D, p: ScatterPoint, radius: number): void {
		if (p.x === null || p.y === null) return;
		g.fillStyle = p.colour;
		disc(g, this.place.x(p.x), this.place.y(p.y), radius);
	}

	private drawFront(g: CanvasRenderingContext2D, d: ScatterData): void {
		if (d.front.length < 2) return;
		g.strokeStyle = this.theme.accent;
		g.lineWidth = 1.4;
		g.setLineDash([5, 3]);
		g.beginPath();
		d.front.forEach(([x, y], i) => {
			if (i) g.lineTo(this.place.x(x), this.place.y(d.front[i - 1]![1]));
			g[i ? 'lineTo' : 'moveTo'](this.place.x(x), this.place.y(y));
		});
		g.stroke();
		g.setLineDash([]);
	}

	private drawAxes(g: CanvasRenderingContext2D, d: ScatterData): void {
		const at = this.place;
		const { left, right, top, bottom } = at;
		g.font = FONT;
		g.fillStyle = this.theme.grid;
		for (const t of d.x.ticks) g.fillRect(Math.round(at.x(t.at)), top, 1, bottom - top);
		for (const t of d.y.ticks) g.fillRect(left, Math.round(at.y(t.at)), right - left, 1);
		g.fillStyle = this.theme.dim;
		g.textAlign = 'center';
		const room = Math.max(24, (right - left) / Math.max(1, d.x.ticks.length) - 6);
		for (const t of d.x.ticks) g.fillText(cut(g, t.text, room), at.x(t.at), bottom + 10);
		g.textAlign = 'right';
		for (const t of d.y.ticks) g.fillText(cut(g, t.text, left - 10), left - 6, at.y(t.at));
		g.font = 'bold ' + FONT;
		g.fillStyle = this.theme.text;
		g.fillText(d.x.title, right, bottom + 25);
		g.textAlign = 'left';
		g.fillText(d.y.title, 4, 6);
		g.font = FONT;
	}

	protected drawOver(): void {
		const d = this.data;
		if (!d) return;
		const g = blank(this.over, this.el.clientWidth, this.el.clientHeight);
		const p = this.front(d.points);
		if (this.drag) {
			const [x0, y0, x1, y1] = this.drag;
			g.globalAlpha = 0.2;
			g.fillStyle = this.theme.accent;
			g.fillRect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
			g.globalAlpha = 1;
		}
		if (!p || p.x === null || p.y === null) return;
		this.dot(g, p, RADIUS + 2);
		g.font = 'bold ' + FONT;
		const width = g.measureText(p.name).width;
		const x = Math.min(this.place.x(p.x) + 9, this.el.clientWidth - width - 4);
		halo(g, this.theme, p.name, { x, y: Math.max(10, this.place.y(p.y) - 11), colour: p.colour });
		g.font = FONT;
	}

	private closest(px: number, py: number): string | null {
		let best: string | null = null;
		let dist = NEAR_PX;
		for (const p of this.data!.points) {
			if (p.x === null || p.y === null) continue;
			const away = Math.hypot(this.place.x(p.x) - px, this.place.y(p.y) - py);
			if (away < dist) [dist, best] = [away, p.id];
		}
		return best;
	}

	protected move(e: PointerEvent): void {
		if (!this.data) return;
		const [px, py] = this.pixelsOf(e);
		if (this.drag && !this.begun) {
			this.drag = [this.drag[0], this.drag[1], px, py];
			return this.drawOver();
		}
		const id = this.closest(px, py);
		this.el.style.cursor = id === null ? '' : 'pointer';
		this.hover(id);
	}

	protected down(e: PointerEvent): void {
		if (!this.data || e.button !== 0 || e.pointerType === 'touch') return;
		const [px, py] = this.pixelsOf(e);
		this.begun = null;
		this.drag = [px, py, px, py];
		this.el.setPointerCapture(e.pointerId);
	}

	protected up(): void {
		const drag = this.drag;
		if (!drag || this.begun) return;
		this.cancel();
		const [x0, y0, x1, y1] = drag;
		if (Math.abs(x1 - x0) < DRAG_PX && Math.abs(y1 - y0) < DRAG_PX) return;
		this.hover(null); // a click follows and opens the hovered run
		this.pick(x0, y0, x1, y1);
	}

	/** Selects the runs in a rectangle. */
	private pick(x0: number, y0: number, x1: number, y1: number): void {
		const within = (v: number, a: number, b: number) => v >= Math.min(a, b) && v <= Math.max(a, b);
		this.ev.onPick(this.data!.points.filter((p) => p.x !== null && p.y !== null
			&& within(this.place.x(p.x), x0, x1) && within(this.place.y(p.y), y0, y1)).map((p) => p.id));
	}

	protected click(): void {
		if (this.hoverId !== null) this.ev.onOpen(this.hoverId);
	}

	protected act(key: string): boolean {
		const list = this.data!.points.filter((p) => p.x !== null && p.y !== null)
			.sort((a, b) => a.x! - b.x! || a.y! - b.y!);
		const at = list.findIndex((p) => p.id === this.lit);
		if (key === 'ArrowRight' || key === 'ArrowDown') this.walk(list[Math.min(list.length - 1, at + 1)]);
		else if (key === 'ArrowLeft' || key === 'ArrowUp') this.walk(list[Math.max(0, at - 1)]);
		else if (key === 'Enter' && at >= 0) this.ev.onOpen(list[at]!.id);
		else if (key === ' ' && at >= 0) this.corner(list[at]!);
		else if (key === 'Escape' && this.begun) this.end();
		else return false;
		return true;
	}

	private pixels(p: ScatterPoint): [number, number] {
		return [this.place.x(p.x!), this.place.y(p.y!)];
	}

	private walk(p: ScatterPoint | undefined): void {
		if (p && this.begun) this.drag = [...this.pixels(this.begun), ...this.pixels(p)];
		this.walkTo(p?.id ?? null);
	}

	/** Starts a rectangle at a run, or ends the open one. */
	private corner(p: ScatterPoint): void {
		const from = this.begun;
		if (from) {
			this.end();
			return this.pick(...this.pixels(from), ...this.pixels(p));
		}
		this.begun = p;
		this.walk(p);
		this.drawOver();
	}
}
