// SPDX-License-Identifier: Apache-2.0
// Base class of charts: stacked canvases that fill an element, drawing in the next frame and on resize, a highlighted
// line, and hit testing under the pointer.
import { themeOf, type Theme } from './ink.ts';

export interface Box {
	left: number;
	top: number;
	width: number;
	height: number;
}

/** What a chart has painted, in CSS pixels of its element. */
export interface Painted {
	/** The plot area. */
	box: Box;
	/** The whole element. */
	width: number;
	height: number;
	theme: Theme;
}

/** A chart of which pictures are made. */
export interface Paintable {
	/** Draws everything except the overlay on another canvas; returns null before the first draw. */
	paint(g: CanvasRenderingContext2D): Painted | null;
	redraw(): void;
	destroy(): void;
}

type Listeners = { [K in keyof HTMLElementEventMap]?: (e: HTMLElementEventMap[K]) => void };

export abstract class Chart<Data, Events extends { onHover(id: string | null): void }> {
	data: Data | null = null;
	protected theme: Theme;
	/** All lines. */
	protected readonly base: HTMLCanvasElement;
	/** The overlay that follows the pointer, so that a hover never redraws all lines. */
	protected readonly over: HTMLCanvasElement;
	/** The highlighted line, and the last line reported under the pointer. */
	protected lit: string | null = null;
	protected hoverId: string | null = null;
	private readonly layers: HTMLCanvasElement[] = [];
	private readonly size = new ResizeObserver(() => this.later());
	private readonly gone = new AbortController();
	private frame = 0;

	constructor(protected readonly el: HTMLElement, readonly ev: Events) {
		this.theme = themeOf(el);
		this.base = this.layer('chart-lines');
		this.over = this.layer('chart-over');
		this.size.observe(el);
		(el as HTMLElement & { chart?: unknown }).chart = this;
	}

	set(data: Data): void {
		this.data = data;
		this.later();
	}

	/** Highlights one line; null resets. */
	highlight(id: string | null): void {
		if (id === this.lit) return;
		this.lit = id;
		this.drawOver();
	}

	/** Draws at once, in the page's style and size of now. */
	redraw(): void {
		this.theme = themeOf(this.el);
		this.draw();
	}

	/** Removes all that the chart added to its element. */
	destroy(): void {
		cancelAnimationFrame(this.frame);
		this.size.disconnect();
		this.gone.abort();
		for (const c of this.layers) c.remove();
		this.data = null;
	}

	/** Draws everything; the element may be too small, or the data missing. */
	protected abstract draw(): void;

	/** Draws the overlay. */
	protected abstract drawOver(): void;

	/** Adds a canvas on top. */
	protected layer(name: string): HTMLCanvasElement {
		const c = document.createElement('canvas');
		c.className = name;
		this.layers.push(c);
		return this.el.appendChild(c);
	}

	/** Listens to events of the element until it is destroyed. */
	protected listen(to: Listeners): void {
		for (const [type, f] of Object.entries(to))
			this.el.addEventListener(type, f as EventListener, { signal: this.gone.signal });
	}

	/** Listens to events of the page, also those that do not bubble, until it is destroyed. */
	protected listenOutside(to: Record<string, (e: Event) => void>): void {
		for (const [type, f] of Object.entries(to))
			addEventListener(type, f, { signal: this.gone.signal, capture: true });
	}

	/** The highlighted line. The others lose most of their hue meanwhile, which keeps their contrast. */
	protected front<Line extends { id: string }>(lines: readonly Line[]): Line | undefined {
		const line = lines.find((l) => l.id === this.lit);
		this.base.style.filter = line ? 'var(--rest)' : '';
		this.el.dataset.lit = line?.id ?? '';
		return line;
	}

	protected hover(id: string | null): void {
		if (id === this.hoverId) return;
		this.hoverId = id;
		this.ev.onHover(id);
	}

	/** Highlights by key at once, so that the next key event sees it. */
	protected walkTo(id: string | null): void {
		this.hover(id);
		this.highlight(id);
	}

	/** Position of an event in the element. */
	protected pixelsOf(e: MouseEvent): [number, number] {
		const r = this.el.getBoundingClientRect();
		return [e.clientX - r.left, e.clientY - r.top];
	}

	/** Draws in the next frame, when the page has its new style and colours. */
	private later(): void {
		if (!this.frame) this.frame = requestAnimationFrame(() => {
			this.frame = 0;
			this.redraw();
		});
	}
}
