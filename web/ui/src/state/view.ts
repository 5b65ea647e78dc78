// SPDX-License-Identifier: Apache-2.0
// The view: the state in the address, and what the pointer or the keyboard is on.
import { signal } from '@preact/signals';
import { emptyView, linkedQuery, parseView, viewQuery, type View } from '../base/url.ts';

const ADDRESS_MS = 120;

export const view = signal<View>(parseView(linkedQuery(location.hash) ?? location.search));
/** The run under the pointer or the keyboard, whose lines are in front. */
export const lit = signal<string | null>(null);
/** Position of the pointer in a chart: the metric, and x in units of the chart. */
export const cursor = signal<{ key: string; x: number } | null>(null);

/** In menuOf.id: of a run, not of a column. */
export const RUN = 'run:';
/** The column or run whose menu is open, and where. */
export const menuOf = signal<{ id: string; left: number; top: number } | null>(null);

/** Opens a menu below an element, or at the pointer. */
export function openMenu(id: string, near: Element, { clientX, clientY }: { clientX?: number; clientY?: number } = {}):
	void {
	const { left, bottom } = near.getBoundingClientRect();
	menuOf.value = { id, left: Math.max(8, Math.min(clientX ?? left, innerWidth - 268)),
		top: clientY ?? bottom + 3 };
}

/** Opens the colours of a run, where its table is. */
export function openColours(run: string, near: Element, at?: { clientX?: number; clientY?: number }): void {
	if (view.value.page === 'compare') openMenu(RUN + run, near, at);
}

/** Changes that Back undoes, as it undoes a change of page. */
const UNDONE = ['zoom', 'epochZoom', 'filter', 'group', 'x', 'log', 'logX', 'full', 'limits', 'perRow', 'tops',
	'hidden', 'order', 'sizes', 'colours'] as const;
/** Changes of one kind within this time are one: the letters of a filter. */
const ONE_MS = 1000;
let undone = { kind: '', at: 0 };

/** Returns true for a change that Back undoes, unless it continues the one before. */
function isStep(patch: Partial<View>): boolean {
	const differs = (k: keyof View) => k in patch && JSON.stringify(patch[k]) !== JSON.stringify(view.value[k]);
	const kind = UNDONE.filter(differs).join();
	if (!kind || patch.page) return false;
	const { kind: before, at } = undone;
	undone = { kind, at: Date.now() };
	return kind !== before || undone.at - at > ONE_MS;
}

/** Changes the view; push adds a history entry, for changes of page. */
export function go(patch: Partial<View>, push = false): void {
	const next = { ...view.value, ...patch };
	if (isStep(patch) || push) {
		writeAddress();
		history.pushState(null, '', location.pathname + viewQuery(next));
	}
	view.value = next;
	if (Date.now() - wroteAt > ADDRESS_MS) writeAddress();
	else if (!addressTimer) addressTimer = window.setTimeout(writeAddress, ADDRESS_MS);
}

let addressTimer = 0;
let wroteAt = 0;

/** Limits the rate of address changes, which browsers restrict, while a slider moves. */
function writeAddress(): void {
	clearTimeout(addressTimer);
	addressTimer = 0;
	wroteAt = Date.now();
	const address = location.pathname + viewQuery(view.value);
	if (address !== location.pathname + location.search) history.replaceState(null, '', address);
}

export function addressOf(patch: Partial<View>): string {
	return location.pathname + (viewQuery({ ...view.value, ...patch }) || '?');
}

/** Columns and rows that a chart takes. */
export function sizeOf(metric: string): [number, number] {
	const size = view.value.sizes[metric] ?? 11;
	return [Math.floor(size / 10), size % 10];
}

/** Resets the zoom and the axis of a visited spike. */
export function resetZoom(): void {
	go({ zoom: null, epochZoom: null, full: false });
}

/** The view of a run's page; an id prefix suffices. */
function pageOf(id: string, tab = view.value.page === 'run' ? view.value.tab : ''): Partial<View> {
	return { page: 'run', run: id.slice(0, 12), tab };
}

/** Opens a run's page at a tab, by default that of the run before; the first one has the reason of a failure. */
export function openRun(id: string, tab?: string): void {
	lit.value = null;
	cursor.value = null;
	go(pageOf(id, tab), true);
}

export function runAddress(id: string): string {
	return addressOf(pageOf(id));
}

export function openExperiment(name: string): void {
	go({ ...emptyView, experiment: name }, true);
}

/** Sets the position of the cursor in a metric's chart, in its unit; null: left. */
export function setCursor(key: string, x: number | null): void {
	cursor.value = x === null ? null : { key, x };
}

addEventListener('popstate', () => {
	clearTimeout(addressTimer);
	addressTimer = 0;
	undone.kind = '';
	view.value = parseView(linkedQuery(location.hash) ?? location.search);
});
