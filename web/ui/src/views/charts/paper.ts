// SPDX-License-Identifier: Apache-2.0
// The page on paper: light colours, the paper's width, many rows of the table, and charts as vectors, since a browser
// may print a canvas before it is drawn. Ctrl P first loads the charts that have not been on the screen; the browser's
// menu cannot wait, so those say that they are missing. Styles are in views/base/later.part.css ([data-paper]).
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

/** How long to wait for charts. */
const LOAD_MS = 6000;
const LOOK_MS = 50;

type Plot = HTMLElement & { chart?: unknown };

const plots = () => [...document.querySelectorAll<Plot>('.plot')];

/** Returns true for a chart whose lines are not loaded. */
function isUnseen({ chart, parentElement }: Plot): boolean {
	return chart instanceof LineChart && !chart.data?.lines.length && !parentElement!.querySelector('.nothing');
}

/** Loads the charts that have not been on the screen: until then they are, invisibly. */
async function loadAll(): Promise<void> {
	const unseen = plots().filter(isUnseen);
	for (const el of unseen) {
		Object.assign(el.style, { width: el.clientWidth + 'px', height: el.clientHeight + 'px' });
		el.dataset.loading = '';
	}
	for (const end = Date.now() + LOAD_MS; unseen.some(isUnseen) && Date.now() < end;)
		await new Promise((done) => setTimeout(done, LOOK_MS));
	for (const el of unseen) {
		Object.assign(el.style, { width: '', height: '' });
		delete el.dataset.loading;
	}
}

/** Says how many rows are left out. */
function sayRows(grid: HTMLElement | null): void {
	const all = Number(grid?.ariaRowCount) - 1;
	const rows = grid?.querySelectorAll('.row:not(.head)').length ?? 0;
	if (rows < all) grid!.dataset.cut = `The first ${rows} of ${all} rows`;
}

function toPaper(el: Plot): void {
	const { chart } = el;
	el.toggleAttribute('data-unseen', isUnseen(el));
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
	if (on) sayRows(grid);
	else delete grid?.dataset.cut;
	for (const el of plots()) {
		if (on) toPaper(el);
		else el.querySelector('svg')?.remove();
	}
}

export function paper(): void {
	addEventListener('beforeprint', () => void fit(true));
	addEventListener('afterprint', () => void fit(false));
	addEventListener('keydown', (e) => {
		if (!(e.ctrlKey || e.metaKey) || e.shiftKey || e.altKey || e.key !== 'p') return;
		if (!plots().some(isUnseen)) return;
		e.preventDefault();
		void loadAll().then(print);
	});
	document.documentElement.dataset.prints = ''; // tests wait for it
}
