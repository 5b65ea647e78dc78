// SPDX-License-Identifier: Apache-2.0
// Filter of the runs by the values of a column: a list to choose from, a range for numbers, a text for names and notes.
// It writes the expression that one could type.
import { useSignal } from '@preact/signals';
import { fieldWords, testsOf, valueWords, withTests } from '../../base/filter/edit.ts';
import { count } from '../../base/format.ts';
import { metricColumn } from '../../base/rank.ts';
import { matchesWords } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { valuesOf } from '../base/fieldvalues.ts';
import '../base/later.ts';
import type { Column } from './column.ts';

const LISTED = 200;

/** The field of a column in the filter; null: it has none. */
export function filterField(c: Column): string | null {
	const m = metricColumn(c.id);
	if (m) return `m:${m.what === 'best' ? s.dirOf(m.key) ?? 'last' : m.what}:${m.key}`;
	if (/^[pt]:/.test(c.id)) return c.id;
	const names: Record<string, string> = { name: 'a:name', status: 'a:status', notes: 'a:notes',
		time: 'a:duration', start: 'a:start_time' };
	return names[c.id] ?? null;
}

/** A number, or a date in quotes. */
const bound = (text: string, date: boolean) => (date ? `'${text}'` : valueWords(text));

interface Part {
	field: string;
	/** Puts the tests of the field into the filter. */
	put: (tests: string[]) => void;
	words: string;
}

/** Limits of a number or a date. */
function Range({ field, put, words }: Part) {
	const date = field === 'a:start_time';
	const now = testsOf(s.view.value.filter, field);
	const from = useSignal(now.find((t) => t.op === '>=')?.values[0] ?? '');
	const to = useSignal(now.find((t) => t.op === '<=')?.values[0] ?? '');
	const take = (v: typeof from) => (e: { currentTarget: HTMLInputElement }) =>
		(v.value = e.currentTarget.value.trim());
	const input = (label: string, v: typeof from) => <label>{label} {date
		? <input type="date" value={v.value} onInput={take(v)} />
		: <input type="text" inputMode="decimal" value={v.value} onInput={take(v)} />}</label>;
	const wrong = !date && [from.value, to.value].some((v) => v !== '' && Number.isNaN(Number(v)));
	return (
		<form class="bulktag" onSubmit={(e) => {
			e.preventDefault();
			if (!wrong) put([...from.value === '' ? [] : [`${words} >= ${bound(from.value, date)}`],
				...to.value === '' ? [] : [`${words} <= ${bound(to.value, date)}`]]);
		}}>
			{input('At least', from)}{input('At most', to)}
			{field === 'a:duration' && <small class="dim">in seconds</small>}
			{wrong && <span class="problem" role="alert">A limit is a number.</span>}
			<button type="submit" class="primary" disabled={wrong}>Apply</button>
		</form>
	);
}

/** A text that occurs in a name or a note. */
function Contains({ field, put, words }: Part) {
	const was = testsOf(s.view.value.filter, field).find((t) => t.op === 'ILIKE')?.values[0] ?? '';
	const text = useSignal(was.replace(/^%|%$/g, ''));
	return (
		<form class="bulktag" onSubmit={(e) => {
			e.preventDefault();
			put(text.value === '' ? [] : [`${words} ILIKE ${valueWords(`%${text.value}%`)}`]);
		}}>
			<label>Contains <input value={text.value}
				onInput={(e) => (text.value = e.currentTarget.value)} /></label>
			<button type="submit" class="primary">Apply</button>
		</form>
	);
}

/** The test of a choice of values; null stands for runs without one. */
function testOf(words: string, on: ReadonlySet<string | null>): string {
	const list = [...on].filter((v) => v !== null).map(valueWords);
	const some = list.length === 1 ? `${words} = ${list[0]}` : `${words} IN (${list.join(', ')})`;
	return !on.has(null) ? some : list.length ? `(${some} OR ${words} IS NULL)` : `${words} IS NULL`;
}

/** A list of the values with the numbers of their runs. */
function Choose({ field, put, words }: Part) {
	const values = valuesOf(field);
	const all = s.knownRuns.value.length;
	const lack = all - values.reduce((n, [, k]) => n + k, 0);
	const now = testsOf(s.view.value.filter, field).filter((t) => ['=', 'IN', 'IS'].includes(t.op));
	const on = useSignal<ReadonlySet<string | null>>(new Set([...now.flatMap((t) => t.values),
		...now.some((t) => t.none) ? [null] : []]));
	const find = useSignal('');
	const rows: [string | null, number][] = [...values, ...lack > 0 ? [[null, lack] as [null, number]] : []];
	const found = rows.filter(([v]) => matchesWords(find.value, [v ?? 'no value']));
	const toggle = (v: string | null) => {
		const set = new Set(on.value);
		if (!set.delete(v)) set.add(v);
		on.value = set;
	};
	return (
		<form class="bulktag" onSubmit={(e) => {
			e.preventDefault();
			put(on.value.size ? [testOf(words, on.value)] : []);
		}}>
			{rows.length > 8 && <input type="search" placeholder={`Find among ${rows.length}`}
				aria-label="Find a value" value={find.value}
				onInput={(e) => (find.value = e.currentTarget.value)} />}
			<ul class="files">{found.slice(0, LISTED).map(([v, n]) => (
				<li key={v}><label class="choice"><input type="checkbox" checked={on.value.has(v)}
					onChange={() => toggle(v)} /> {v ?? <i>no value</i>}
					<small class="dim">{n}</small></label></li>
			))}</ul>
			{found.length > LISTED && <small class="dim">
				{count(found.length - LISTED, 'more value')}: search them</small>}
			<button type="submit" class="primary">
				{on.value.size ? `Show ${count(on.value.size, 'value')}` : 'Show all'}</button>
		</form>
	);
}

export function ValueFilter({ c, close }: { c: Column; close: () => void }) {
	const field = filterField(c)!;
	const put = (tests: string[]) => {
		close();
		s.go({ filter: withTests(s.view.value.filter, field, tests) });
	};
	const part: Part = { field, put, words: fieldWords(field, s.isParam) };
	const range = field.startsWith('m:') || field === 'a:duration' || field === 'a:start_time';
	const words = field === 'a:name' || field === 'a:notes';
	return (
		<>
			<b>{c.title}</b>
			{range ? <Range {...part} /> : words ? <Contains {...part} /> : <Choose {...part} />}
			{field.startsWith('p:') && c.number && <Range {...part} />}
		</>
	);
}
