// SPDX-License-Identifier: Apache-2.0
// Base class of charts of runs, which are opened, and picked by a drag or by keys at two of them.
import { blank } from './ink.ts';
import { Chart, type Paintable, type Painted } from './chart.ts';

interface PickEvents {
	onHover(id: string | null): void;
	onOpen(id: string): void;
}

/** In a narrower element nothing is drawn. */
const LEAST_PX = 60;

export abstract class PickChart<Data, Item, Drag, Events extends PickEvents> extends Chart<Data, Events>
	implements Paintable {
	protected drag: Drag | null = null;
	/** The run at which a keyboard selection started. */
	protected begun: Item | null = null;

	constructor(el: HTMLElement, ev: Events) {
		super(el, ev);
		this.listen({
			keydown: this.key, pointermove: (e) => this.move(e), pointerdown: (e) => this.down(e),
			pointerup: () => this.up(), pointercancel: () => this.cancel(), click: (e) => this.click(e),
			pointerleave: () => this.drag || this.hover(null),
		});
	}

	abstract paint(g: CanvasRenderingContext2D): Painted | null;
	protected abstract move(e: PointerEvent): void;
	protected abstract down(e: PointerEvent): void;
	protected abstract up(): void;
	protected abstract click(e: MouseEvent): void;
	/** Handles a key; returns false if it is not bound. */
	protected abstract act(key: string): boolean;

	protected draw(): void {
		const { clientWidth: width, clientHeight } = this.el;
		if (!this.data || width < LEAST_PX) return;
		this.paint(blank(this.base, width, clientHeight));
		this.drawOver();
	}

	private readonly key = (e: KeyboardEvent): void => {
		if (!this.data || !this.act(e.key)) return;
		e.preventDefault();
		e.stopPropagation();
	};

	protected cancel(): void {
		this.drag = null;
		this.drawOver();
	}

	protected end(): void {
		this.begun = null;
		this.cancel();
	}
}
