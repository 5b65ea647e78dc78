// SPDX-License-Identifier: Apache-2.0
// Filter expressions as the server parses them (web/store/filter): whether a text is one, whether it is complete, what
// may follow.

type Kind = 'word' | 'quoted' | 'text' | 'number' | 'op' | '(' | ')' | ',' | 'bad';

interface Token {
	kind: Kind;
	/** Without quotes. */
	text: string;
	from: number;
	to: number;
}

const TOKEN = new RegExp([/\s+/, /([(),])/, /([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?=[\s(),=!<>]|$)/,
	/([=!<>]+)/, /('(?:[^']|'')*')/, /("(?:[^"]|"")*"|`(?:[^`]|``)*`)/, /([\w\-/:.\u0080-\uffff]+)/]
	.map((r) => r.source).join('|'), 'iy');

/** The tokens; one that is not closed or not known is bad and the last. */
export function tokensOf(s: string): Token[] {
	const out: Token[] = [];
	TOKEN.lastIndex = 0;
	for (let from = 0; from < s.length; from = TOKEN.lastIndex) {
		const m = TOKEN.exec(s);
		if (!m) return [...out, { kind: 'bad', text: s.slice(from), from, to: s.length }];
		const kinds: (Kind | undefined)[] = [undefined, m[1] as Kind, 'number', 'op', 'text', 'quoted', 'word'];
		const which = m.findIndex((g, i) => i > 0 && g !== undefined);
		const bare = (t: string) => t.slice(1, -1).replaceAll(t[0]! + t[0]!, t[0]!);
		const raw = m[0];
		if (which > 0)
			out.push({ kind: kinds[which]!, text: which === 4 || which === 5 ? bare(raw) : raw, from,
				to: from + raw.length });
	}
	return out;
}

export const ENTITIES: Record<string, string> = { metric: 'm', metrics: 'm', param: 'p', params: 'p', parameter: 'p',
	parameters: 'p', tag: 't', tags: 't', attribute: 'a', attributes: 'a', attr: 'a', run: 'a', dataset: 'd',
	datasets: 'd' };
export const ATTRIBUTES: readonly string[] = ['name', 'status', 'duration', 'last_step', 'start_time', 'end_time',
	'notes', 'experiment', 'run_id'];
const OTHER_NAMES: readonly string[] = ['run_name', 'created', 'id'];
export const isAttribute = (key: string) => ATTRIBUTES.includes(key.toLowerCase())
	|| OTHER_NAMES.includes(key.toLowerCase());
export const WORDS = /^(?:and|or|not|in|like|ilike|is|null)$/i;

/** What may come next. */
type Want = 'field' | 'operator' | 'value' | 'open' | 'item' | 'next' | 'pattern' | 'null' | 'joint' | 'none';

export interface Reading {
	/** words: for a search of words; partial: an expression that lacks its end; wrong: one with an error. */
	kind: 'words' | 'partial' | 'whole' | 'wrong';
	want: Want;
	/** The last field: "p:lr", "m:max:loss", "t:team", "a:status"; "?:lr" without a prefix. */
	field: string;
	/** All fields, in order. */
	fields: string[];
}

/** "?:loss.min" as written; a metric's aggregate comes before its key. */
function fieldOf(word: string, quoted: Token | undefined, after: Token | undefined): string {
	const dot = word.indexOf('.');
	const entity = dot > 0 ? ENTITIES[word.slice(0, dot).toLowerCase()] : undefined;
	if (entity === undefined) return (isAttribute(word) ? 'a:' : '?:') + word;
	let key = quoted ? quoted.text : word.slice(dot + 1);
	if (entity !== 'm') return `${entity}:${key}`;
	const m = /^(.+)\.(last|first|min|max)$/.exec(key);
	const what = quoted ? /^\.(last|first|min|max)$/.exec(after?.text ?? '')?.[1] : m?.[2];
	if (!quoted && m) key = m[1]!;
	return `m:${what ?? 'last'}:${key}`;
}

/** Reads a list of tokens from the state before a field. known: names that comparisons by words may follow. */
class Machine implements Reading {
	kind: Reading['kind'] = 'words';
	want: Want = 'field';
	field = '';
	fields: string[] = [];
	private state = 'field';
	private depth = 0;
	/** It can only be an expression. */
	private sure = false;
	/** The last field exists. */
	private named = false;

	constructor(private known: (key: string) => boolean) {}

	private to(state: string, want: Want, sure = false): true {
		this.state = state;
		this.want = want;
		this.sure ||= sure;
		return true;
	}

	/** Reads a field; returns the number of tokens, 0 without one. */
	private name(list: readonly Token[], at: number): number {
		const [t, next, after] = [list[at]!, list[at + 1], list[at + 2]];
		if (t.kind !== 'word' && t.kind !== 'quoted') return 0;
		const split = t.kind === 'word' && t.text.endsWith('.') && next?.kind === 'quoted'
			&& next.from === t.to;
		this.field = t.kind === 'quoted' ? '?:' + t.text
			: fieldOf(t.text, split ? next : undefined, after?.from === next?.to ? after : undefined);
		this.fields.push(this.field);
		const plain = this.field.slice(2);
		const prefixed = t.kind === 'word' && !'a?'.includes(this.field[0]!);
		const dotted = /^\w+\./.test(t.text) && this.field[0] === 'a' && isAttribute(plain);
		this.to('operator', 'operator', prefixed || dotted);
		this.named = this.field[0] !== '?' || this.known(plain);
		const tail = split && this.field.startsWith('m:') && after?.from === next!.to && after.text[0] === '.';
		return split ? (tail ? 3 : 2) : 1;
	}

	private operator(t: Token, word: string): boolean {
		if (t.kind === 'op') return this.to('value', 'value', true);
		if (word === 'in') return this.to('list', 'open', this.named);
		if (word === 'like' || word === 'ilike') return this.to('pattern', 'pattern', this.named);
		if (word === 'not') return this.to('operator', 'operator', this.named);
		return word === 'is' && this.to('is', 'null', this.named);
	}

	private value(t: Token): boolean {
		return ['number', 'text', 'quoted'].includes(t.kind) || (t.kind === 'word' && !WORDS.test(t.text));
	}

	/** Reads the next token; false: it cannot follow. */
	private one(t: Token): boolean {
		const word = t.kind === 'word' ? t.text.toLowerCase() : t.kind;
		switch (this.state) {
		case 'operator': return this.operator(t, word);
		case 'value': return this.value(t) && this.to('joint', 'joint');
		case 'list': return word === '(' && this.to('item', 'item');
		case 'item': return this.value(t) && this.to('next', 'next');
		case 'next': return word === ',' ? this.to('item', 'item')
			: word === ')' && this.to('joint', 'joint', true);
		case 'pattern': return (t.kind === 'text' || t.kind === 'quoted') && this.to('joint', 'joint', true);
		case 'is': return word === 'not' ? this.to('null', 'null')
			: word === 'null' && this.to('joint', 'joint', true);
		case 'null': return word === 'null' && this.to('joint', 'joint', true);
		case 'joint':
			if (word === ')' && this.depth > 0) return this.depth-- > 0;
			return (word === 'and' || word === 'or') && this.to('field', 'field', true);
		default: return false;
		}
	}

	read(list: readonly Token[]): this {
		for (let at = 0; at < list.length;) {
			const t = list[at]!;
			const opens = this.state === 'field' && (t.kind === '(' || /^not$/i.test(t.text));
			if (opens && t.kind === '(') this.depth++;
			const n = opens ? 1 : this.state === 'field' ? this.name(list, at) : Number(this.one(t));
			const last = at === list.length - 1 && t.kind === 'bad' && /^['"`]/.test(t.text);
			if (!n) {
				this.kind = !this.sure ? 'words' : last ? 'partial' : 'wrong';
				this.want = last && this.sure ? this.want : 'none';
				return this;
			}
			at += n;
		}
		const whole = this.state === 'joint' && this.depth === 0;
		this.kind = !this.sure ? 'words' : whole ? 'whole' : 'partial';
		return this;
	}
}

export const readTokens = (list: readonly Token[], known: (key: string) => boolean) => new Machine(known).read(list);

/** Returns true if words from one token to another, with an underscore between them, are the name of a known field. */
function isSpaced(list: readonly Token[], known: (key: string) => boolean): boolean {
	const field = fieldOf(list.map((t) => t.text).join('_'), undefined, undefined);
	const key = field.replace(/^(?:m:)?[\w?]+:/, '');
	return list.length > 1 && (known(key) || known(key.replace(/\.(?:last|first|min|max)$/, '')));
}

/** The filter with an underscore for each space in a name that is compared, as in "batch size = 256", where that makes
 * it a known name. */
export function withUnderscores(s: string, known: (key: string) => boolean): string {
	let out = '';
	let done = 0;
	let words: Token[] = [];
	for (const t of tokensOf(s)) {
		const compares = t.kind === 'op' || (t.kind === 'word' && /^(?:not|in|i?like|is)$/i.test(t.text));
		if (compares && isSpaced(words, known)) {
			out += s.slice(done, words[0]!.from) + words.map((w) => w.text).join('_');
			done = words.at(-1)!.to;
		}
		words = t.kind === 'word' && !WORDS.test(t.text) ? [...words, t] : [];
	}
	return out + s.slice(done);
}

/** A comparison between blanks is no search of words. */
const COMPARED = /\s(?:[<>]=?|!=|==?)\s/;

export function readFilter(s: string, known: (key: string) => boolean = () => false): Reading {
	const got = readTokens(tokensOf(s), known);
	if (got.kind === 'words' && got.want === 'none' && COMPARED.test(s)) got.kind = 'wrong';
	return got;
}

/** Returns true for a filter expression (evaluated by the server), false for search words (matched here). */
export function isExpression(s: string): boolean {
	return readFilter(s).kind !== 'words';
}
