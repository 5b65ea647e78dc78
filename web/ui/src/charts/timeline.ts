// SPDX-License-Identifier: Apache-2.0
// Timeline: spans over time, a band per row, nested spans below each other, with highlighted parts. Dragging pans, the
// wheel zooms.
import { Chart } from './base/chart.ts';
import { blank, cut } from './base/ink.ts';
import { evenTicks } from './base/ticks.ts';

export interface Bar {
	name: string;
	colour: string;
	from: number;
	to: number;
	depth: number;
}

export interface Band {
	name: string;
	depth: number;
	bars: readonly Bar[];
}

export interface TimelineData {
	bands: readonly Band[];
	/** Visible range. */
	look: { from: number; to: number };
	/** Selected band and bar; -1: none. */
	chosen: [number, number];
	/** Parts of the time in which a band is highlighted. */
	critical: readonly { band: number; from: number; to: number }[];
	format(us: number): string;
}

interface Events {
	onHover(id: string | null): void;
	onLook(change: { at: number; factor: number } | { by: number }): void;
	onChoose(band: number, time: number): void;
}

const LEFT = 110;
const AXIS = 20;
export const LINE = 15;
const GAP = 6;
const TICK_EVERY = 90;
const WHEEL = 0.0015;

/** Height that shows all bands. */
export function heightOf(bands: readonly { depth: number }[]): number {
	return AXIS + bands.reduce((h, b) => h + Math.max(1, b.depth) * LINE + GAP, GAP);
}

export class Timeline extends Chart<TimelineData, Events> {
	private dragged: { x: number; moved: boolean } | null = null;

	constructor(el: HTMLElement, ev: Events) {
		super(el, ev);
		this.listen({
			wheel: (e) => this.wheel(e),
			pointerdown: (e) => (this.dragged = { x: e.clientX, moved: false }),
			pointermove: (e) => this.drag(e),
			pointerup: (e) => this.release(e),
			pointerleave: () => (this.dragged = null),
		});
	}

	protected draw(): void {
		const { clientWidth: width, clientHeight: height } = this.el;
		const d = this.data;
		if (!d || width <= LEFT + 20) return;
		const g = blank(this.base, width, height);
		this.axis(g, d, width, height);
		let top = AXIS + GAP;
		d.bands.forEach((band, i) => {
			this.band(g, d, i, top, width);
			top += Math.max(1, band.depth) * LINE + GAP;
		});
	}

	protected drawOver(): void {
		// no overlay follows the pointer
	}

	private x(d: TimelineData, time: number, width: number): number {
		return LEFT + ((time - d.look.from) / (d.look.to - d.look.from)) * (width - LEFT);
	}

	private time(x: number): number {
		const { look } = this.data!;
		return look.from + ((x - LEFT) / (this.el.clientWidth - LEFT)) * (look.to - look.from);
	}

	private axis(g: CanvasRenderingContext2D, d: TimelineData, width: number, height: number): void {
		g.fillStyle = this.theme.dim;
		g.strokeStyle = this.theme.grid;
		for (const t of evenTicks(d.look.from, d.look.to, (width - LEFT) / TICK_EVERY)) {
			const x = this.x(d, t, width);
			g.fillText(d.format(t), x + 3, AXIS / 2);
			g.beginPath();
			g.moveTo(x, 0);
			g.lineTo(x, height);
			g.stroke();
		}
	}

	private band(g: CanvasRenderingContext2D, d: TimelineData, index: number, top: number, width: number): void {
		const band = d.bands[index]!;
		g.fillStyle = this.theme.text;
		g.fillText(cut(g, band.name, LEFT - 8), 0, top + LINE / 2);
		g.save();
		g.beginPath();
		g.rect(LEFT, top, width - LEFT, Math.max(1, band.depth) * LINE);
		g.clip();
		let last = -1; // spans below a pixel share it
		band.bars.forEach((b, i) => {
			const [from, to] = [this.x(d, b.from, width), this.x(d, b.to, width)];
			if (to < LEFT || from > width) return;
			const pixel = Math.floor(from) * 64 + b.depth;
			if (to - from < 1 && pixel === last) return;
			last = pixel;
			const y = top + b.depth * LINE;
			g.fillStyle = b.colour;
			g.fillRect(from, y, Math.max(1, to - from - 0.5), LINE - 2);
			if (to - from > 30) {
				g.fillStyle = '#14181d';
				g.fillText(cut(g, b.name, Math.min(to, width) - Math.max(from, LEFT) - 6),
					Math.max(from, LEFT) + 3, y + LINE / 2 - 1);
			}
			if (d.chosen[0] === index && d.chosen[1] === i) {
				g.strokeStyle = this.theme.text;
				g.lineWidth = 2;
				g.strokeRect(from, y, Math.max(2, to - from), LINE - 2);
				g.lineWidth = 1;
			}
		});
		g.fillStyle = this.theme.accent;
		for (const c of d.critical)
			if (c.band === index) g.fillRect(this.x(d, c.from, width), top - 3,
				this.x(d, c.to, width) - this.x(d, c.from, width), 2);
		g.restore();
	}

	private wheel(e: WheelEvent): void {
		if (!this.data || !(e.ctrlKey || e.metaKey || e.shiftKey)) return;
		e.preventDefault();
		const [x] = this.pixelsOf(e);
		if (e.shiftKey) this.ev.onLook({ by: Math.sign(e.deltaY || e.deltaX) * 0.1 });
		else this.ev.onLook({ at: this.time(x), factor: Math.exp(e.deltaY * WHEEL) });
	}

	private drag(e: PointerEvent): void {
		if (!this.dragged || !this.data || !(e.buttons & 1)) return;
		const by = (this.dragged.x - e.clientX) / (this.el.clientWidth - LEFT);
		if (Math.abs(this.dragged.x - e.clientX) < 3) return;
		this.dragged = { x: e.clientX, moved: true };
		this.ev.onLook({ by });
	}

	private release(e: PointerEvent): void {
		const still = this.dragged && !this.dragged.moved;
		this.dragged = null;
		if (!still || !this.data) return;
		const [x, y] = this.pixelsOf(e);
		let top = AXIS + GAP / 2;
		this.data.bands.some((b, i) => {
			top += Math.max(1, b.depth) * LINE + GAP;
			if (y < top && y > AXIS) this.ev.onChoose(i, this.time(x));
			return y < top;
		});
	}
}
