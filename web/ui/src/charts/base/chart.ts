// What every chart does: canvases above each other that fill its element, data drawn in the next frame and again when
// the size changes, one line in front of the others, word of the line under the pointer. How it looks is the chart's
// own.
import { themeOf, type Theme } from './ink.ts';

type Listeners = { [K in keyof HTMLElementEventMap]?: (e: HTMLElementEventMap[K]) => void };

export abstract class Chart<Data, Events extends { onHover(id: string | null): void }> {
	protected data: Data | null = null;
	protected theme: Theme;
	/** All lines. */
	protected readonly base: HTMLCanvasElement;
	/** What follows the pointer, so that a hover never redraws all lines. */
	protected readonly over: HTMLCanvasElement;
	/** The line in front, and the one that the pointer was last said to be on. */
	protected lit: string | null = null;
	protected hoverId: string | null = null;
	private readonly layers: HTMLCanvasElement[] = [];
	private readonly size = new ResizeObserver(() => this.later());
	private readonly gone = new AbortController();
	private frame = 0;

	constructor(protected readonly el: HTMLElement, protected readonly ev: Events) {
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

	/** Brings one line forward; null brings all back. */
	highlight(id: string | null): void {
		if (id === this.lit) return;
		this.lit = id;
		this.drawOver();
	}

	/** Takes away all that the chart put into its element. */
	destroy(): void {
		cancelAnimationFrame(this.frame);
		this.size.disconnect();
		this.gone.abort();
		for (const c of this.layers) c.remove();
		this.data = null;
	}

	/** Draws everything; the element may be too small for it, or without data. */
	protected abstract draw(): void;

	/** Draws what lies over the lines. */
	protected abstract drawOver(): void;

	/** Another canvas, above those that are there. */
	protected layer(name: string): HTMLCanvasElement {
		const c = document.createElement('canvas');
		c.className = name;
		this.layers.push(c);
		return this.el.appendChild(c);
	}

	/** Hears its element until it is destroyed. */
	protected listen(to: Listeners): void {
		for (const [type, f] of Object.entries(to))
			this.el.addEventListener(type, f as EventListener, { signal: this.gone.signal });
	}

	/** The line in front; the others stay as strong as said behind it. */
	protected front<Line extends { id: string }>(lines: readonly Line[], others: string): Line | undefined {
		const line = lines.find((l) => l.id === this.lit);
		this.base.style.opacity = line ? others : '1';
		this.el.dataset.lit = line?.id ?? '';
		return line;
	}

	protected hover(id: string | null): void {
		if (id === this.hoverId) return;
		this.hoverId = id;
		this.ev.onHover(id);
	}

	/** By a key: the next one finds it in front, however soon it comes. */
	protected walkTo(id: string | null): void {
		this.hover(id);
		this.highlight(id);
	}

	/** Where an event lies in the element. */
	protected pixelsOf(e: MouseEvent): [number, number] {
		const r = this.el.getBoundingClientRect();
		return [e.clientX - r.left, e.clientY - r.top];
	}

	/** Draws in the next frame: only then has the page its new style, and with it its colours. */
	private later(): void {
		if (!this.frame) this.frame = requestAnimationFrame(() => {
			this.frame = 0;
			this.theme = themeOf(this.el);
			this.draw();
		});
	}
}
