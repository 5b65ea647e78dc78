// SPDX-License-Identifier: Apache-2.0
// The filter of runs: words, or an expression with completion. While an expression lacks its end, the table keeps its
// last state.
import { signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import * as s from '../../state/index.ts';
import { ATTRIBUTES, readFilter, withUnderscores } from '../../base/filter/filter.ts';
import { selectIn } from '../base/focus.ts';
import { lazy } from '../base/lazy.tsx';
import { useKey } from '../base/asking.ts';

const Completion = lazy(() => import('./completion.tsx').then((m) => m.Completion));
const FILTER_MS = 250;

/** What is typed and not in the view; null: the view's filter is shown. */
const typed = signal<string | null>(null);
/** The field has had the focus: its completion is loaded. */
const begun = signal(false);
/** What an expression lacks, by what may follow. */
const LACKS: Record<string, string> = { field: 'a name is missing', operator: 'a comparison such as > is missing',
	value: 'a value is missing', pattern: 'a text in quotes is missing', joint: 'a bracket is not closed' };

/** The filter that this field has put into the view. */
let applied: string | null = null;

function put(text: string): void {
	applied = text;
	s.go({ filter: text });
}

/** A field's name, or a word that begins one and is found in no run: the reader is about to compare it. */
function beginsField(text: string): boolean {
	const word = text.trim().toLowerCase();
	if (word === '' || /\s/.test(word)) return false;
	if (s.isKnown(text.trim())) return true;
	if (s.knownRuns.value.some((r) => s.hasWords(r, word))) return false;
	return [...ATTRIBUTES, ...s.knownMetrics.value, 'metrics.', 'params.', 'tags.', 'attributes.']
		.some((k) => k.toLowerCase().startsWith(word) || word.startsWith(k.toLowerCase() + '.'));
}

/** Puts the text into the view unless it is an expression without its end, or may become one; said: the reader has
 * pressed Enter. */
function apply(given: string, said = false): void {
	const text = withUnderscores(given, s.isKnown);
	const { kind, want } = readFilter(text, s.isKnown);
	s.filterProblem.value = null;
	if (kind !== 'partial') return void ((said || !beginsField(text)) && put(text));
	if (said) s.filterProblem.value = `The filter is not complete: ${LACKS[want] ?? 'its end is missing'}.`;
	// the words that were its beginning were no search
	if (readFilter(s.view.value.filter).kind === 'words') put('');
}

export function Filter() {
	const box = useRef<HTMLInputElement>(null);
	const timer = useRef(0);
	const before = useRef<Element | null>(null);
	const active = useSignal<string | null>(null);
	const { filter } = s.view.value;
	useEffect(() => {
		if (filter !== applied) typed.value = null; // changed elsewhere
		applied = null;
	}, [filter]);
	useKey('/', () => {
		before.current = document.activeElement;
		selectIn(box.current);
	});
	const take = (text: string, now = false) => {
		typed.value = text;
		clearTimeout(timer.current);
		if (now) apply(text, true);
		else timer.current = window.setTimeout(() => apply(text), FILTER_MS);
	};
	const leave = () => {
		clearTimeout(timer.current); // discard the pending input
		typed.value = null;
		s.filterProblem.value = null;
		s.go({ filter: '' });
		const grid = document.querySelector<HTMLElement>('.grid [tabindex="0"]');
		const back = before.current instanceof HTMLElement && before.current.isConnected
			&& before.current !== document.body ? before.current : grid;
		back?.focus();
	};
	const text = typed.value ?? filter;
	const wrong = s.filterProblem.value;
	return (
		<><span class="filter">
			<input ref={box} type="text" role="combobox" aria-autocomplete="list" aria-label="Filter runs"
				aria-expanded={active.value !== null} aria-activedescendant={active.value || undefined}
				aria-controls={active.value === null ? undefined : 'completion'}
				placeholder="Filter: words, or lr > 0.1" autocomplete="off" spellcheck={false}
				title={'Words of names, params, tags and notes, or an expression: lr > 0.1 AND '
					+ 'epoch/top1.max > 0.9   ( / focuses this field )'}
				value={text} aria-invalid={wrong !== null}
				onFocus={() => (begun.value = true)}
				onInput={(e) => take(e.currentTarget.value)} onKeyDown={(e) => {
					if (e.defaultPrevented) return;
					if (e.key === 'Enter') take(e.currentTarget.value, true);
					if (e.key !== 'Escape') return;
					e.currentTarget.value = '';
					leave();
				}} />
			{text !== '' && <button type="button" class="quiet" aria-label="Clear the filter"
				onClick={leave}>✕</button>}
			{begun.value && <Completion box={box} text={text} take={take} active={active} />}
		</span>{wrong !== null && <span class="problem" role="alert" title={wrong}>{wrong}</span>}</>
	);
}
