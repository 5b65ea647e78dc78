// SPDX-License-Identifier: Apache-2.0
// Changing a filter: what may stand at the cursor, and the tests of one field.
import { ENTITIES, isAttribute, isExpression, readTokens, type Reading, tokensOf, WORDS } from './filter.ts';

/** The token that the cursor is in or after, and what may stand in its place. */
export function contextAt(s: string, cursor: number, known: (key: string) => boolean):
	Reading & { from: number; to: number; part: string } {
	const list = tokensOf(s.slice(0, cursor));
	const last = list.at(-1);
	const inside = last !== undefined && last.to === cursor && !['op', '(', ')', ','].includes(last.kind);
	const before = inside ? list.slice(0, -1) : list;
	const from = inside ? last.from : cursor;
	const rest = /^[\w\-/:.\u0080-\uffff]*/.exec(s.slice(cursor))![0].length;
	const got = readTokens(before, known);
	return { kind: got.kind, want: got.want, field: got.field, fields: got.fields, from,
		to: inside ? cursor + rest : cursor,
		part: inside ? s.slice(last.from, cursor).replace(/^['"`]/, '') : '' };
}

const PLAIN_KEY = /^[A-Za-z_\u0080-\uffff][\w\-/:.\u0080-\uffff]*$/;

/** The text of a field by its id ("p:lr", "m:max:loss", "t:team", "a:status"); a param or metric without its prefix
 * where that means the same. */
export function fieldWords(id: string, isParam: (key: string) => boolean): string {
	const kind = id[0]!;
	const m = kind === 'm' ? /^m:(last|first|min|max):([^]+)$/.exec(id) : null;
	const [what, key] = [m?.[1] ?? '', m?.[2] ?? id.slice(2)];
	if (kind === 'a') return key;
	const tail = what === 'last' || what === '' ? '' : '.' + what;
	const clear = PLAIN_KEY.test(key) && !isAttribute(key) && !WORDS.test(key)
		&& ENTITIES[key.split('.')[0]!.toLowerCase()] === undefined;
	if (clear && (kind === 'p' || (kind === 'm' && !isParam(key + tail) && !/\.(?:last|first|min|max)$/.test(key))))
		return key + tail;
	return `${{ p: 'params', m: 'metrics', t: 'tags' }[kind]}."${key.replaceAll('"', '""')}"${tail}`;
}

/** A value as the filter writes it. */
export function valueWords(v: string): string {
	return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(v) ? v : `'${v.replaceAll('\'', '\'\'')}'`;
}

/** Returns true if a field as read is the one of an id. */
function isField(field: string, id: string): boolean {
	if (field === id) return true;
	if (field[0] !== '?') return false;
	const [, what, key] = /^m:(\w+):([^]+)$/.exec(id) ?? [];
	const key0 = field.slice(2);
	return what === undefined ? id === 'p:' + key0 : key0 === `${key}.${what}` || (what === 'last' && key0 === key);
}

/** The parts of an expression that AND joins on its first level; null if OR does. */
function partsOf(s: string): string[] | null {
	const out: string[] = [];
	let [depth, from] = [0, 0];
	for (const t of tokensOf(s)) {
		depth += t.kind === '(' ? 1 : t.kind === ')' ? -1 : 0;
		if (depth || t.kind !== 'word') continue;
		if (/^or$/i.test(t.text)) return null;
		if (!/^and$/i.test(t.text)) continue;
		out.push(s.slice(from, t.from).trim());
		from = t.to;
	}
	return [...out, s.slice(from).trim()].filter((p) => p !== '');
}

/** A test of a field: its operator and its values. */
interface FieldTest {
	op: string;
	values: string[];
	/** A run without the field passes too. */
	none: boolean;
}

/** The tests of a field that AND joins to the rest. */
export function testsOf(filter: string, id: string): FieldTest[] {
	const own = (p: string) => readTokens(tokensOf(p), () => true).fields.every((f) => isField(f, id));
	return (isExpression(filter) ? partsOf(filter) ?? [] : []).filter(own).map((p) => {
		const list = tokensOf(p).filter((t) => t.kind !== '(' && t.kind !== ')' && t.kind !== ',');
		const op = list.find((t) => t.kind === 'op' || /^(?:in|i?like|is)$/i.test(t.text));
		const at = op ? list.indexOf(op) : -1;
		const end = list.findIndex((t, i) => i > at && t.kind === 'word' && /^or$/i.test(t.text));
		return { op: op?.text.toUpperCase() ?? '', none: /\bnull\b/i.test(p),
			values: list.slice(at + 1, end < 0 ? undefined : end).map((t) => t.text)
				.filter((t) => !/^null$/i.test(t)) };
	});
}

/** The filter with these tests of a field in place of its own; words are replaced. */
export function withTests(filter: string, id: string, tests: readonly string[]): string {
	if (!isExpression(filter)) return tests.join(' AND ');
	const parts = partsOf(filter);
	const rest = parts === null ? [`(${filter})`]
		: parts.filter((p) => !readTokens(tokensOf(p), () => true).fields.every((f) => isField(f, id)));
	return [...rest, ...tests].join(' AND ');
}
