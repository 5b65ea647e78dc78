// SPDX-License-Identifier: Apache-2.0
// Completion of the filter: fields, operators and values that may stand at the cursor.
import { contextAt, fieldWords, valueWords } from '../../base/filter/edit.ts';
import { ATTRIBUTES } from '../../base/filter/filter.ts';
import { count, fixed } from '../../base/format.ts';
import * as s from '../../state/index.ts';
import { valuesOf } from '../base/fieldvalues.ts';

export interface Suggestion {
	/** What is shown and inserted. */
	text: string;
	note: string;
}

interface Suggestions {
	list: Suggestion[];
	/** The part of the filter that one of them replaces. */
	from: number;
	to: number;
}

const MOST = 60;
/** Values of params in place of a field. */
const VALUES_MOST = 6;
const DATE = "a date such as '2026-11-28'";
const NOTES: Record<string, string> = { name: "the run's name", duration: 'seconds', last_step: 'the last step',
	status: 'running, finished, failed, killed, preempted or scheduled', start_time: DATE, end_time: DATE,
	notes: 'text of the note', run_id: "the run's id" };
const NUMBER_TESTS: [string, string][] = [['>', 'above'], ['<', 'below'], ['>=', 'at least'], ['<=', 'at most'],
	['=', 'equal to'], ['!=', 'other than'], ['IS NULL', 'the run has none']];
const TEXT_TESTS: [string, string][] = [['=', 'is'], ['!=', 'is not'], ['LIKE', 'matches, % stands for any text'],
	['ILIKE', 'matches in upper or lower case'], ['IN', 'one of a list'], ['IS NULL', 'the run has none']];

/** How well a text matches what is typed; lower is better, null: not at all. */
function match(text: string, part: string): number | null {
	const at = text.toLowerCase().indexOf(part.toLowerCase());
	return at < 0 ? null : at === 0 ? 0 : /[\w]/.test(text[at - 1]!) && text[at - 1] !== '_' ? 2 : 1;
}

function ranked<T>(list: readonly T[], part: string, of: (x: T) => string): T[] {
	const found = list.map((x, i) => ({ x, i, m: match(of(x), part) })).filter((f) => f.m !== null);
	return found.sort((a, b) => a.m! - b.m! || a.i - b.i).map((f) => f.x);
}

function metricValues(id: string): Suggestion[] {
	const [, what, key] = /^m:(\w+):([^]+)$/.exec(id)!;
	const all = s.knownRuns.value.map((r) => r.metrics[key!]?.[what as 'last'])
		.filter((v): v is number => typeof v === 'number' && Number.isFinite(v)).sort((a, b) => a - b);
	if (!all.length) return [];
	return [[all.length >> 1, 'median'], [0, 'lowest'], [all.length - 1, 'highest']].map(([i, note]) =>
		({ text: fixed(all[i as number]!, null), note: `${note} of ${count(all.length, 'run')}` }));
}

/** "?:lr" as a param or a metric. */
function resolved(field: string): string {
	if (field[0] !== '?') return field;
	const key = field.slice(2);
	const m = /^(.+)\.(last|first|min|max)$/.exec(key);
	return s.isParam(key) ? 'p:' + key
		: m && s.knownMetrics.value.has(m[1]!) ? `m:${m[2]}:${m[1]}` : `m:last:${key}`;
}

function fieldIds(): { id: string; note: string }[] {
	const { differ, same } = s.split.value;
	const params = [...new Set([...differ, ...same.map(([k]) => k), ...s.knownRuns.value.flatMap((r) =>
		Object.keys(r.params))])];
	return [...params.map((k) => ({ id: 'p:' + k, note: 'param' })),
		...s.goal.value ? [{ id: `m:${s.goal.value.dir ?? 'last'}:${s.goal.value.key}`, note: 'goal' }] : [],
		...ATTRIBUTES.map((k) => ({ id: 'a:' + k, note: NOTES[k] ?? '' })),
		...[...s.knownMetrics.value].map((k) => ({ id: 'm:last:' + k, note: 'metric, last value' })),
		...s.tagKeys.value.map((k) => ({ id: 't:' + k, note: 'tag' }))];
}

function fields(part: string): Suggestion[] {
	const all = fieldIds().map(({ id, note }) => ({ text: fieldWords(id, s.isParam), note }));
	const found = ranked(all, part, (f) => f.text);
	if (part === '') return found;
	const tests = s.split.value.differ.flatMap((k) => valuesOf('p:' + k).filter(([v]) => match(v, part) === 0
		&& Number.isNaN(Number(v))).map(([v, n]) => ({ note: count(n, 'run'),
		text: `${fieldWords('p:' + k, s.isParam)} = ${valueWords(v)}` })));
	const near = found.filter((f) => match(f.text, part)! < 2);
	return [...near, ...tests.slice(0, VALUES_MOST), ...found.slice(near.length)];
}

function values(id: string, part: string): Suggestion[] {
	if (id.startsWith('m:')) return metricValues(id).filter((v) => v.text.startsWith(part));
	return ranked(valuesOf(id), part, ([v]) => v).map(([v, n]) => ({ text: valueWords(v), note: count(n, 'run') }));
}

function isNumeric(id: string): boolean {
	if (id.startsWith('m:')) return true;
	if (id.startsWith('a:')) return /duration|step|time/.test(id);
	return valuesOf(id).every(([v]) => !Number.isNaN(Number(v)));
}

function listFor(want: string, id: string, part: string): Suggestion[] {
	const plain = (pairs: readonly [string, string][]) => ranked(pairs, part, ([t]) => t)
		.map(([text, note]) => ({ text, note }));
	switch (want) {
	case 'field': return fields(part);
	case 'operator': return plain(isNumeric(id) ? NUMBER_TESTS : TEXT_TESTS);
	case 'value': case 'item': return values(id, part);
	case 'open': return plain([['(', 'begins the list']]);
	case 'next': return plain([[',', 'one more value'], [')', 'ends the list']]);
	case 'null': return plain([['NULL', ''], ['NOT NULL', '']]);
	case 'joint': return plain([['AND', 'both are true'], ['OR', 'one of them is true']]);
	default: return [];
	}
}

export function suggest(text: string, cursor: number): Suggestions {
	const at = contextAt(text, cursor, s.isKnown);
	const nothing = at.want === 'field' && at.part === '' && text.trim() === '';
	const list = at.kind === 'words' && at.want === 'none' ? [] : listFor(at.want, resolved(at.field), at.part);
	const typed = text.slice(at.from, at.to);
	const rest = list.filter((i) => i.text !== typed).slice(0, nothing ? 12 : MOST);
	return { list: rest, from: at.from, to: at.to };
}

/** The filter with a suggestion in its place, and the new position of the cursor. */
export function accept(text: string, at: Suggestions, chosen: Suggestion): { text: string; cursor: number } {
	const head = text.slice(0, at.from);
	const lead = head === '' || /[\s(]$/.test(head) || chosen.text === ',' || chosen.text === ')' ? '' : ' ';
	const tail = text.slice(at.to).replace(/^\s+/, '');
	const made = head + lead + chosen.text + ' ';
	return { text: made + tail, cursor: made.length };
}
