// SPDX-License-Identifier: Apache-2.0
// The tooltip of a line chart: the position, then a list of the lines by value with their colours. It is placed in the
// window. After a tap it has buttons that move to the next point; it takes no other pointer events.
import type { Reading } from './read.ts';

/** Pixels between the cursor and the tooltip, and to the edge of the window. */
const OFF = 14;
const EDGE = 6;
/** Pixels of a row, and of what is above and below the rows. */
const ROW = 17;
const FRAME = 64;
const ROWS_MAX = 24;

const SVG = 'http://www.w3.org/2000/svg';

export interface TipRow {
	reading: Reading;
	value: string;
	/** More about the value: its own position, a band, a smoothed value. */
	note: string;
}

export interface TipText {
	head: string;
	rows: readonly TipRow[];
	/** Id of the emphasised line. */
	front: string | null;
	/** Index of the row at the pointer's height; the rows around it are shown if not all fit. */
	around: number;
}

function element(tag: string, kind: string, text = ''): HTMLElement {
	const e = document.createElement(tag);
	e.className = kind;
	e.textContent = text;
	return e;
}

/** A line in the colour and dash of the chart's. */
function keyOf(colour: string, dash: readonly number[]): SVGElement {
	const svg = document.createElementNS(SVG, 'svg');
	const line = document.createElementNS(SVG, 'path');
	svg.setAttribute('class', 'key');
	svg.setAttribute('width', '18');
	svg.setAttribute('height', '10');
	line.setAttribute('d', 'M0 5h18');
	line.setAttribute('stroke', colour);
	line.setAttribute('stroke-width', '3');
	line.setAttribute('stroke-dasharray', dash.join(' '));
	svg.append(line);
	return svg;
}

function rowOf(r: TipRow, front: string | null): HTMLElement {
	const { line, beyond } = r.reading;
	const li = element('li', (line.id === front ? 'front' : '') + (beyond ? ' beyond' : ''));
	li.dataset.line = line.id;
	li.append(keyOf(line.colour, line.dash), element('span', 'name', line.name), element('b', '', r.value));
	if (r.note) li.append(element('small', '', r.note));
	return li;
}

/** A button whose events do not reach the chart below it. */
function stepButton(sign: string, label: string, act: () => void): HTMLElement {
	const b = element('button', '', sign);
	b.setAttribute('type', 'button');
	b.setAttribute('aria-label', label);
	b.addEventListener('click', act);
	for (const type of ['pointerdown', 'pointermove', 'pointerup', 'click', 'dblclick', 'keydown'])
		b.addEventListener(type, (e) => e.stopPropagation());
	return b;
}

export class Tip {
	private readonly el = element('div', 'readings');
	private readonly steps = element('div', 'steps');
	private readonly body = element('div', '');

	/** step: moves to the point before (-1) or after (1). */
	constructor(private readonly host: HTMLElement, step: (dir: 1 | -1) => void) {
		this.steps.append(stepButton('‹', 'Previous step', () => step(-1)),
			stepButton('›', 'Next step', () => step(1)));
		this.el.append(this.steps, this.body);
		this.el.hidden = true;
		host.append(this.el);
	}

	hide(): void {
		this.el.hidden = true;
	}

	remove(): void {
		this.el.remove();
	}

	/** Shows the text next to a position of the host, in pixels; null: where it was, so that the buttons stay
	 * under the finger. Assistive technology reads what keys show. */
	show(text: TipText, at: { x: number; y: number } | null, by: 'pointer' | 'touch' | 'keys'): void {
		const room = Math.max(4, Math.min(ROWS_MAX, Math.floor((innerHeight - FRAME) / ROW)));
		const n = text.rows.length;
		const first = n <= room ? 0 : Math.min(n - room, Math.max(0, text.around - Math.floor(room / 2)));
		const list = element('ol', '');
		list.append(...text.rows.slice(first, first + room).map((r) => rowOf(r, text.front)));
		const rest = n > room ? [element('p', 'dim', `${first} above, ${n - room - first} below`)] : [];
		this.el.setAttribute('aria-live', by === 'keys' ? 'polite' : 'off');
		this.el.setAttribute('role', by === 'touch' ? 'group' : 'tooltip');
		this.steps.hidden = by !== 'touch';
		this.body.replaceChildren(element('p', 'where', text.head), list, ...rest);
		this.el.hidden = false;
		if (at) this.place(at);
	}

	/** Right of the cursor if there is room, else left; within the window, and if possible below the caption of the
	 * chart, which has its buttons, else above it. */
	private place(at: { x: number; y: number }): void {
		const host = this.host.getBoundingClientRect();
		const { width, height } = this.el.getBoundingClientRect();
		const x = host.left + at.x;
		const right = x + OFF + width + EDGE <= innerWidth;
		const left = right ? x + OFF : Math.max(EDGE, x - OFF - width);
		const lowest = innerHeight - height - EDGE;
		const caption = host.top + EDGE; // its buttons are higher than its line
		const below = Math.min(lowest, Math.max(EDGE, caption, host.top + at.y - height / 2));
		const above = this.host.parentElement!.getBoundingClientRect().top - height;
		const top = below < caption && above >= EDGE ? above : below;
		this.el.style.left = left + 'px';
		this.el.style.top = Math.max(EDGE, top) + 'px';
	}
}
