// SPDX-License-Identifier: Apache-2.0
// Summaries of the analysis panels, as sentences and as a table.
import { useSignal, useSignalEffect, type Signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Run } from '../../base/types.ts';
import { count } from '../../base/format.ts';
import { fellOut } from '../../base/goal.ts';
import { numbersOf, relationOf, relationWords } from '../../base/why/relation.ts';
import * as s from '../../state/index.ts';
import { Opener } from '../base/bits.tsx';
import { DataTable } from '../base/datatable.tsx';
import { theme } from '../base/theme.ts';
import type { Axis } from './axes.ts';

/** Maximum of runs that can be charted. */
const SHOW_MAX = 100;
/** Maximum of axes with a sentence each. */
const SENTENCES_MAX = 3;

export function textOf(a: Axis, r: Run): string {
	const v = a.value(r);
	return v === null ? '–' : typeof v === 'number' ? a.format(v) : v;
}

/** "lr 0.1, wd 2". */
function placeOf(axes: readonly Axis[], r: Run): string {
	return axes.map((a) => `${a.title} ${textOf(a, r)}`).join(', ');
}

/** The values of the highlighted run. */
export function litSaid(axes: readonly Axis[]): string {
	const r = s.runs.value.find((o) => o.id === s.lit.value);
	return r ? `${s.nameOf(r.id, r)}: ${placeOf(axes, r)}` : '';
}

/** Keeps a chart in its element: draw reads what it shows. */
export function useRunsChart<C extends { highlight(id: string | null): void; destroy(): void }>(
	box: RefObject<HTMLElement | null>, make: (el: HTMLElement) => C, draw: (c: C) => void): RefObject<C | null> {
	const chart = useRef<C | null>(null);
	useEffect(() => {
		chart.current = make(box.current!);
		return () => chart.current!.destroy();
	}, []);
	useSignalEffect(() => {
		void theme();
		draw(chart.current!);
	});
	useSignalEffect(() => chart.current!.highlight(s.lit.value));
	return chart;
}

export const numberOn = (a: Axis) => (r: Run) => {
	const v = a.value(r);
	return typeof v === 'number' ? v : NaN;
};

const isOfWords = (a: Axis, list: readonly Run[]) => list.some((r) => typeof a.value(r) === 'string');

/** The best run on an axis and its values on the others; '' if no direction is better. */
function bestOn(a: Axis, others: readonly Axis[], list: readonly Run[]): string[] {
	const sign = a.dir === 'max' ? 1 : -1;
	const there = list.filter((r) => !fellOut(r) && Number.isFinite(numberOn(a)(r)));
	if (!a.dir || !there.length) return [];
	const best = there.reduce((b, r) => (sign * (numberOn(a)(r) - numberOn(a)(b)) > 0 ? r : b));
	return [`Best ${a.title}: ${textOf(a, best)} at ${placeOf(others, best)} (${s.nameOf(best.id, best)}).`];
}

/** "12 points", and which runs are missing. */
function numbered(list: readonly Run[], axes: readonly Axis[], word: string): string {
	const lacking = list.filter((r) => axes.some((a) => {
		const v = a.value(r);
		return v === null || typeof v === 'number' && !Number.isFinite(v);
	})).length;
	const lost = list.filter(fellOut).length;
	return count(list.length, word) + (lacking ? `, ${lacking} without a value` : '')
		+ (lost ? `, ${lost} failed or diverged (left out of what follows)` : '') + '.';
}

/** Summary of a scatter plot. */
export function scatterSaid(list: readonly Run[], x: Axis, y: Axis): string[] {
	const counting = list.filter((r) => !fellOut(r));
	const words = [x, y].find((a) => isOfWords(a, list));
	const relation = x.id === y.id ? [] : [words ? `The values of ${words.title} are words: they have no order.`
		: relationWords(x.title, y.title, relationOf(counting.map(numberOn(x)), counting.map(numberOn(y))))];
	return [numbered(list, [x, y], 'point'), ...relation, ...bestOn(y, [x], list)];
}

/** Summary of parallel coordinates: which axes correlate with the goal, with simultaneous intervals. */
export function parallelSaid(list: readonly Run[], axes: readonly Axis[]): string[] {
	const goal = [...axes].reverse().find((a) => a.dir !== null && !isOfWords(a, list));
	const others = axes.filter((a) => a !== goal);
	const first = numbered(list, axes, 'line');
	if (!goal) return [first];
	const counting = list.filter((r) => !fellOut(r));
	const y = counting.map(numberOn(goal));
	const numeric = others.filter((a) => !isOfWords(a, list));
	const found = numeric.map((a) => ({ a, f: relationOf(counting.map(numberOn(a)), y, numeric.length) }))
		.sort((p, q) => Math.abs(q.f.r) - Math.abs(p.f.r));
	const sure = found.filter(({ f }) => f.sure);
	const more = sure.slice(SENTENCES_MAX).map(({ a, f }) => `${a.title} (${numbersOf(f)})`);
	const unsure = found.filter(({ f }) => !f.sure).map(({ a }) => a.title);
	const words = others.filter((a) => isOfWords(a, list)).map((a) => a.title);
	return [
		first, ...sure.slice(0, SENTENCES_MAX).map(({ a, f }) => relationWords(a.title, goal.title, f)),
		...more.length ? [`So do ${more.join(', ')}.`] : [],
		...unsure.length ? [`Cannot tell whether ${goal.title} moves with ${unsure.join(', ')}.`] : [],
		...words.length ? [`Words, which have no order: ${words.join(', ')}.`] : [],
		...bestOn(goal, others, list),
	];
}

/** Sentences below a panel that describe its picture. */
export function Said({ id, said }: { id: string; said: Signal<string[]> }) {
	return <p class="said" id={id}>{said.value.join(' ')}</p>;
}

/** A button that opens the values as a table. */
export function TableOf({ name, axes }: { name: string; axes: () => readonly Axis[] }) {
	const open = useSignal(false);
	const table = (close: () => void) => {
		const own = [...new Map(axes().map((a) => [a.id, a])).values()];
		const row = (r: Run) => ({ id: r.id, name: s.nameOf(r.id, r), href: s.runAddress(r.id),
			cells: own.map((a) => textOf(a, r)) });
		return <DataTable name={name} caption={`${name}: ${count(s.rows.value.length, 'run')}`} row={row}
			head={['Run', ...own.map((a) => a.title)]} rows={s.rows.value} close={close} />;
	};
	return <span class="numbers"><Opener word="Table" open={open} panel={table} /></span>;
}

/** Number of picked runs and the actions for them. */
export function Picked({ ids, where = '', clear }: { ids: readonly string[]; where?: string; clear: () => void }) {
	return (
		<><b>{count(ids.length, 'run')}</b>{where}
			<button type="button" disabled={!ids.length}
				onClick={() => s.setShown(new Set(ids.slice(0, SHOW_MAX)))}>
				Show {ids.length > SHOW_MAX ? `${SHOW_MAX} of them`
					: 'only these'} in the charts</button>
			<button type="button" onClick={clear}>Clear</button></>
	);
}

/** Values of a figure's runs on axes, below the names of these. */
export function rowsOn(axes: readonly Axis[], names: readonly string[], list: readonly Run[],
	items: readonly { id: string; name: string }[]): unknown[][] {
	return [['run', ...names],
		...items.map((i) => [i.name, ...axes.map((a) => a.value(list.find((r) => r.id === i.id)!))])];
}
