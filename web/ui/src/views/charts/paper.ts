// SPDX-License-Identifier: Apache-2.0
// The page on paper: light colours, the paper's width, all rows of the table, and charts as vectors, since a browser
// may print a canvas before it is drawn. Styles are in views/base/later.part.css ([data-paper]).
import { options } from 'preact';
import { LineChart } from '../../charts/line/index.ts';
import { svgOf } from '../../charts/line/picture.ts';
import { printed } from '../base/theme.ts';

/** Width in CSS pixels of A4 without the margins of later.part.css; Letter is wider. */
const WIDTH = 733;
/** Microtasks until components and their effects have followed a signal. */
const TURNS = 12;
/** Smallest scale of a wide table. */
const SCALE_LEAST = 0.5;

function toPaper(el: HTMLElement & { chart?: unknown }): void {
	const { chart } = el;
	if (!(chart instanceof LineChart)) return;
	chart.redraw();
	const pane = chart.paint(document.createElement('canvas').getContext('2d')!);
	const text = pane && svgOf(chart, pane, '');
	if (text) el.append(new DOMParser().parseFromString(text, 'image/svg+xml').documentElement);
}

/** Changes to or from the light theme of paper; resolves when all has followed, before the browser draws or prints:
 * only microtasks run. */
export async function setPrinted(on: boolean): Promise<void> {
	options.requestAnimationFrame = queueMicrotask;
	printed.value = on;
	for (let n = 0; n < TURNS; n++) await null;
	delete options.requestAnimationFrame;
}

/** Ends before the browser prints. */
async function fit(on: boolean): Promise<void> {
	document.documentElement.toggleAttribute('data-paper', on);
	const grid = document.querySelector<HTMLElement>('.grid');
	const wide = parseFloat(grid?.style.getPropertyValue('--min') ?? '') + 9;
	grid?.style.setProperty('zoom', on ? String(Math.max(SCALE_LEAST, Math.min(1, WIDTH / wide))) : '');
	await setPrinted(on);
	for (const el of document.querySelectorAll<HTMLElement>('.plot')) {
		if (on) toPaper(el);
		else el.querySelector('svg')?.remove();
	}
}

export function paper(): void {
	addEventListener('beforeprint', () => void fit(true));
	addEventListener('afterprint', () => void fit(false));
	document.documentElement.dataset.prints = ''; // tests wait for it
}
