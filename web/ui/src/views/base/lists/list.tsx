// SPDX-License-Identifier: Apache-2.0
// A list of things, the same on every screen: a table with a search, more rows on request, and what can be done with
// each at the end of its row; on phones each row is a card. And a question before what cannot be undone.
import { useSignal, type Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { count } from '../../../base/format.ts';
import { matchesWords } from '../../../base/url.ts';
import { Opener, Panel } from '../bits.tsx';
import '../later.ts';

/** Initial number of rows, and number of rows from which they can be searched. */
const FIRST_ROWS = 100;
const SEARCHED_FROM = 5;

export interface Column<T> {
	head: string;
	cell: (of: T) => ComponentChildren;
	/** A number or a time. */
	num?: boolean;
	/** Not on phones. */
	wide?: boolean;
}

interface ListOptions<T> {
	/** What it lists, in the plural. */
	label: string;
	/** null: they are loaded. */
	rows: readonly T[] | null;
	id: (of: T) => string;
	columns: readonly Column<T>[];
	/** At the end of a row. */
	acts?: (of: T) => ComponentChildren;
	/** Texts that its search looks in. */
	texts?: (of: T) => string[];
	/** Instead of an empty list. */
	none?: ComponentChildren;
}

/** The search field of a list of more than `from` things. */
export function Find({ label, n, words, from = SEARCHED_FROM }: { label: string; n: number; words: Signal<string>;
	from?: number }) {
	const of = label.toLowerCase();
	if (n <= from && !words.value) return null;
	return <p class="listfind"><input type="search" placeholder={`Find among ${n} ${of}`} aria-label={`Find ${of}`}
		value={words.value} onInput={(e) => (words.value = e.currentTarget.value)} /></p>;
}

export function List<T>({ label, rows, id, columns, acts, texts, none }: ListOptions<T>) {
	const most = useSignal(FIRST_ROWS);
	const words = useSignal('');
	if (!rows) return <div class="wait" aria-busy="true" />;
	const found = texts ? rows.filter((r) => matchesWords(words.value, texts(r))) : rows;
	const kind = (c: Column<T>) => `${c.num ? 'num' : ''}${c.wide ? ' wide' : ''}`;
	return (
		<>
			{texts && <Find label={label} n={rows.length} words={words} />}
			{found.length > 0 && <div class="box list"><table aria-label={label}>
				<thead><tr>{columns.map((c) => <th key={c.head} class={kind(c)}>{c.head}</th>)}
					{acts && <th><span class="unseen">Actions</span></th>}</tr></thead>
				<tbody>{found.slice(0, most.value).map((r) => (
					<tr key={id(r)}>{columns.map((c) => (
						<td key={c.head} class={kind(c)} data-name={c.head}>{c.cell(r)}</td>))}
						{acts && <td class="rowacts">{acts(r)}</td>}</tr>))}</tbody>
			</table>
			{found.length > most.value && <button type="button" onClick={() => (most.value += FIRST_ROWS)}>
				{count(found.length - most.value, 'more line')}</button>}</div>}
			{!found.length && (words.value ? <p class="dim">Nothing contains “{words.value}”.</p>
				: typeof none === 'string' ? <p class="dim">{none}</p> : none)}
		</>
	);
}

interface AskOptions {
	/** The question. */
	title: string;
	/** The answer that does it. */
	word: string;
	act: () => void;
	close: () => void;
	children?: ComponentChildren;
}

/** Asks before what cannot be undone. */
export function Ask({ title, word, act, close, children }: AskOptions) {
	return (
		<Panel label={title} close={close}>
			<p><b>{title}</b></p>
			{children}
			<span class="options"><button type="button" class="danger" onClick={() => {
				close();
				act();
			}}>{word}</button><button type="button" onClick={close}>Cancel</button></span>
		</Panel>
	);
}

/** A button that asks. */
export function AskButton({ label, ...o }: Omit<AskOptions, 'close'> & { label: string }) {
	const open = useSignal(false);
	return <Opener word={label} open={open} panel={(close) => <Ask {...o} close={close} />} />;
}

/** Does things; `said` is the last refusal, or ''. */
export function useAct() {
	const said = useSignal('');
	const act = (what: () => Promise<unknown>) => {
		said.value = '';
		what().catch((e: Error) => (said.value = e.message));
	};
	return { act, said: said.value && <p class="problem" role="alert">{said.value}</p> };
}
