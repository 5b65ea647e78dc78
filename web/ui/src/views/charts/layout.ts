// SPDX-License-Identifier: Apache-2.0
// Arrangement of the charts, which the view holds: pinned to the top, hidden, their order and sizes, set by a menu, by
// dragging a caption to another chart, and by dragging a corner. Loaded with the tools of the charts.
import { frontKeys, groupOf } from '../../base/order.ts';
import { PER_ROW_MAX, type View } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { follow } from '../base/drag.ts';

const ROWS_MAX = 4;
/** Pixels of the corner that resizes, and the shortest drag of a caption. */
const CORNER = 16;
const DRAG = 6;
/** Cards that can be arranged. */
const CARD = ':is(.first, .sections .charts) > .chart';

/** Metrics of the charts at the top. */
export function topsNow(): string[] {
	const front = s.view.value.tops ?? frontKeys(s.curve.value, s.goal.value?.key);
	return [...new Set(front.filter((k): k is string => !!k))];
}

const metricOf = (card: Element): string => card.querySelector<HTMLElement>('[data-chart]')!.dataset.chart!;
const metricsNear = (card: Element): string[] => [...card.parentElement!.children].map(metricOf);

/** The list with a metric before another; null: at its end. */
function put(list: readonly string[], key: string, before: string | null): string[] {
	const out = list.filter((k) => k !== key);
	const at = before === null ? -1 : out.indexOf(before);
	out.splice(at < 0 ? out.length : at, 0, key);
	return out;
}

export function pin(key: string, on: boolean): void {
	s.go({ tops: on ? put(topsNow(), key, null) : topsNow().filter((k) => k !== key) });
}

export function hide(key: string, on: boolean): void {
	const others = s.view.value.hidden.filter((k) => k !== key);
	s.go({ hidden: on ? [...others, key] : others });
}

export function resize(key: string, columns: number, rows: number): void {
	const { [key]: _, ...sizes } = s.view.value.sizes;
	const size = Math.max(1, Math.min(PER_ROW_MAX, columns)) * 10 + Math.max(1, Math.min(ROWS_MAX, rows));
	s.go({ sizes: size === 11 ? sizes : { ...sizes, [key]: size } });
}

/** The order with a chart of a group moved. Charts after the last one that ever moved need not be named. */
function ordered(key: string, shown: readonly string[], before: string | null): Pick<View, 'order'> {
	const { order } = s.view.value;
	const next = put(shown, key, before);
	const named = Math.max(...order.map((k) => next.indexOf(k)), shown.indexOf(key), next.indexOf(key));
	return { order: [...order.filter((k) => !next.includes(k)), ...next.slice(0, named + 1)] };
}

/** Moves a chart before or after another: within the top, within its group, or between both. */
export function move(key: string, over: Element, after: boolean): void {
	const shown = metricsNear(over);
	const at = shown.indexOf(metricOf(over)) + (after ? 1 : 0);
	const before = shown[at] ?? null;
	const tops = topsNow();
	const rest = tops.includes(key) ? { tops: tops.filter((k) => k !== key) } : {};
	if (before === key || shown[at - 1] === key) return;
	if (over.parentElement!.matches('.first')) s.go({ tops: put(tops, key, before) });
	else if (groupOf(key) === groupOf(metricOf(over))) s.go({ ...rest, ...ordered(key, shown, before) });
	else s.go(rest);
}

/** Moves a chart by one place. */
export function step(key: string, card: Element, by: 1 | -1): void {
	const next = by > 0 ? card.nextElementSibling : card.previousElementSibling;
	if (next?.matches('.chart')) move(key, next, by > 0);
}

function dragCorner(e: PointerEvent, card: HTMLElement): void {
	const key = metricOf(card);
	const { left, top, width, height } = card.getBoundingClientRect();
	const [w, h] = s.sizeOf(key);
	follow(e, card, (m) => {
		const columns = Math.round((m.clientX - left) * w / width);
		const rows = Math.round((m.clientY - top) * h / height);
		if (String([columns, rows]) !== String(s.sizeOf(key))) resize(key, columns, rows);
	}, () => undefined);
}

/** The card under the pointer, and whether the pointer is in its right half. */
function under(m: PointerEvent): { card: HTMLElement; after: boolean } | null {
	const card = document.elementFromPoint(m.clientX, m.clientY)?.closest<HTMLElement>(CARD);
	if (!card) return null;
	const { left, width } = card.getBoundingClientRect();
	return { card, after: m.clientX > left + width / 2 };
}

function dragCaption(e: PointerEvent, card: HTMLElement): void {
	const marked = () => document.querySelector<HTMLElement>('.chart[data-drop]');
	const unmark = () => delete marked()?.dataset.drop;
	const far = (m: PointerEvent) => Math.hypot(m.clientX - e.clientX, m.clientY - e.clientY) > DRAG;
	const rest = () => {
		unmark();
		card.classList.remove('dragged');
		card.style.translate = '';
	};
	follow(e, card, (m) => {
		if (!far(m)) return;
		card.classList.add('dragged');
		card.style.translate = `${m.clientX - e.clientX}px ${m.clientY - e.clientY}px`;
		const to = under(m);
		unmark();
		if (to) to.card.dataset.drop = to.after ? 'after' : 'before';
	}, (m) => {
		const to = m.type === 'pointerup' && far(m) ? under(m) : null;
		rest();
		if (to) move(metricOf(card), to.card, to.after);
	});
}

addEventListener('pointerdown', (e) => {
	const target = e.target as HTMLElement;
	const card = target.closest?.<HTMLElement>(CARD);
	const elsewhere = card?.matches('.large') || target.closest('dialog'); // a figure is made within its card
	if (!card || e.button !== 0 || e.pointerType === 'touch' || elsewhere) return;
	const { right, bottom } = card.getBoundingClientRect();
	if (right - e.clientX < CORNER && bottom - e.clientY < CORNER) dragCorner(e, card);
	else if (target.closest('figcaption') && !target.closest('button, .picker')) dragCaption(e, card);
});
