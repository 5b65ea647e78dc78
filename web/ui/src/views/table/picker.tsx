// SPDX-License-Identifier: Apache-2.0
// Column picker: a search field and a virtual list of check boxes that opens at once with thousands of metrics. Input
// that starts with = is a formula for a column.
import { useSignal } from '@preact/signals';
import * as s from '../../state/index.ts';
import { formulaOf } from '../../base/formula.ts';
import { FORMULA } from '../../base/panel.ts';
import { DERIVED } from '../../base/rank.ts';
import { matchesWords } from '../../base/url.ts';
import { Panel } from '../base/bits.tsx';
import { place } from './arrange.ts';
import { columns, pickable } from './columns.tsx';

const LINE = 26;
const LINES = 14;

/** Columns whose label contains all words: those of the table in their order, then the others. */
function found(words: string, on: ReadonlySet<string>) {
	const all = pickable.value.filter((c) => matchesWords(words, [c.label]));
	const shown = [...on].flatMap((id) => all.find((c) => c.id === id) ?? []);
	return [...shown, ...all.filter((c) => !on.has(c.id))];
}

/** The first name of a valid formula that no run has; null: all are known. */
function unknownIn(text: string): string | null {
	const formula = formulaOf(text);
	return typeof formula === 'string' ? null : formula.names.find((n) => (n.what === null
		? !s.paramKeys.value.includes(n.key) : !s.metricKeys.value.includes(n.key)))?.key ?? null;
}

/** Offers the formula as a column, or shows its error. */
function Derive({ text, add }: { text: string; add: (id: string) => void }) {
	const formula = formulaOf(text);
	if (typeof formula === 'string') return <p class="problem" role="status">{formula}</p>;
	const unknown = unknownIn(text);
	return (
		<p>{unknown !== null && <span class="problem" role="status">No run has {unknown}.</span>}{' '}
			<button type="button" disabled={unknown !== null}
				onClick={() => add(DERIVED + text)}>Add the column</button></p>
	);
}

/** Buttons that move a column by one position; the pressed one keeps the focus. */
function Move({ id, label }: { id: string; label: string }) {
	const move = (by: number) => (e: MouseEvent) => {
		const button = e.currentTarget as HTMLElement;
		const at = columns.value.findIndex((c) => c.id === id);
		if (place(at, at + by)) queueMicrotask(() => button.focus()); // drawn by then
	};
	return (
		<span class="move">
			<button type="button" class="quiet" aria-label={`Earlier: ${label}`}
				onClick={move(-1)}>↑</button>
			<button type="button" class="quiet" aria-label={`Later: ${label}`} onClick={move(1)}>↓</button>
		</span>
	);
}

export function Picker({ close }: { close: () => void }) {
	const words = useSignal('');
	const top = useSignal(0);
	const on = new Set(columns.value.map((c) => c.id));
	const formula = words.value.trim().startsWith(FORMULA) ? words.value.trim().slice(1).trim() : null;
	const list = found(formula === null ? words.value : '', on);
	const from = Math.max(0, Math.floor(top.value / LINE) - 4);
	const toggle = (id: string) => {
		const ids = columns.value.map((c) => c.id).filter((i) => i !== 'name');
		s.go({ columns: on.has(id) ? ids.filter((i) => i !== id) : [...ids, id] });
	};
	const add = (id: string) => {
		if (!on.has(id)) toggle(id);
		words.value = '';
	};
	return (
		<Panel label="Columns" close={close}>
			<input type="search" placeholder={`Find among ${pickable.value.length} columns, or = a formula`}
				aria-label="Find a column"
					title={'Or a formula: = params.lr * params.batch_size, '
						+ '= val/loss.min - train/loss.min'}
				value={words.value} onInput={(e) => (words.value = e.currentTarget.value)}
				onKeyDown={(e) => {
					const whole = formula && typeof formulaOf(formula) !== 'string';
					if (e.key === 'Enter' && whole && unknownIn(formula) === null)
						add(DERIVED + formula);
				}} />
			{formula !== null && <Derive text={formula} add={add} />}
			<div class="lines" tabIndex={-1} onScroll={(e) => (top.value = e.currentTarget.scrollTop)}
				style={{ height: Math.min(list.length, LINES) * LINE + 'px' }}>
				<div class="tall" style={{ height: list.length * LINE + 'px' }}>
					{list.slice(from, from + LINES + 8).map((c, i) => (
						<span key={c.id} class="line" style={{ top: (from + i) * LINE + 'px' }}>
							<label><input type="checkbox" checked={on.has(c.id)}
								onChange={() => toggle(c.id)} /> {c.label}</label>
							{on.has(c.id) && <Move id={c.id} label={c.label} />}
						</span>
					))}
				</div>
			</div>
			<button type="button" onClick={() => s.go({ columns: null })}>Default columns</button>
		</Panel>
	);
}
