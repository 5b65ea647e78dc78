// SPDX-License-Identifier: Apache-2.0
// The list below the filter: what may stand at the cursor. ↓ ↑ choose, Enter or Tab insert, Escape closes.
import { useSignal, type Signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { readFilter } from '../../base/filter/filter.ts';
import * as s from '../../state/index.ts';
import { accept, suggest, type Suggestion } from './suggest.ts';
import '../base/later.ts';

interface Options {
	box: RefObject<HTMLInputElement | null>;
	text: string;
	take: (text: string) => void;
	/** Id of the chosen line, '': none is chosen, null: the list is closed. */
	active: Signal<string | null>;
}

export function Completion({ box, text, take, active }: Options) {
	/** asked: by an arrow key, which also shows what may follow a complete filter. */
	const open = useSignal<'' | 'typed' | 'asked'>('');
	const at = useSignal(-1);
	const cursor = box.current?.selectionStart ?? text.length;
	const { kind } = readFilter(text, s.isKnown);
	const closed = open.value === '' || (open.value === 'typed' && kind === 'whole' && /\s$/.test(text));
	const found = closed ? { list: [], from: 0, to: 0 } : suggest(text, cursor);
	const { list } = found;
	const shown = list.length > 0;
	const insert = (i: Suggestion) => {
		const to = accept(text, found, i);
		const el = box.current!;
		el.value = to.text;
		el.setSelectionRange(to.cursor, to.cursor);
		el.focus();
		at.value = -1;
		take(to.text);
	};
	const key = (e: KeyboardEvent) => {
		const by = e.key === 'ArrowDown' ? 1 : e.key === 'ArrowUp' ? -1 : 0;
		if (by) {
			open.value = 'asked';
			const from = at.value < 0 && by < 0 ? 0 : at.value;
			at.value = shown ? (from + by + list.length) % list.length : 0;
		} else if (!shown) return;
		else if ((e.key === 'Enter' || e.key === 'Tab') && list[at.value]) insert(list[at.value]!);
		else if (e.key === 'Enter' && kind === 'partial' && list.length === 1) insert(list[0]!);
		else if (e.key === 'Escape' && (at.value >= 0 || kind !== 'words')) open.value = '';
		else {
			if (e.key === 'Enter') open.value = '';
			return;
		}
		e.preventDefault();
	};
	const latest = useRef(key);
	latest.current = key;
	// attached once: a listener added between two listeners of an event would miss it
	useLayoutEffect(() => {
		const el = box.current!;
		const over = new AbortController();
		const { signal } = over;
		const input = () => {
			open.value = 'typed';
			at.value = -1;
		};
		if (document.activeElement === el && el.value !== '') input();
		el.addEventListener('keydown', (e) => latest.current(e), { signal, capture: true });
		el.addEventListener('input', input, { signal });
		el.addEventListener('blur', () => (open.value = ''), { signal });
		return () => over.abort();
	}, []);
	useEffect(() => {
		active.value = !shown ? null : at.value < 0 ? '' : 'completion-' + at.value;
		if (active.value) document.getElementById(active.value)?.scrollIntoView({ block: 'nearest' });
	});
	useEffect(() => () => void (active.value = null), []);
	if (!shown) return null;
	return (
		<span class="completion">
			<ul id="completion" role="listbox" aria-label="Completion">{list.map((i, n) => (
				<li key={i.text} id={'completion-' + n} role="option" aria-selected={n === at.value}
					onMouseDown={(e) => {
						e.preventDefault();
						insert(i);
					}}><span>{i.text}</span><small>{i.note}</small></li>
			))}</ul>
			<small class="dim">{kind === 'partial' ? 'Not complete yet: the table keeps its last state'
				: '↓ ↑ choose, Enter inserts'}</small>
		</span>
	);
}
