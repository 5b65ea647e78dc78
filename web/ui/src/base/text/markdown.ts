// Markdown of notes as marked's tokens (GitHub's flavour). They are drawn as elements, never as HTML: markup that a
// note contains stays text, and only links that cannot run anything become links.
import { lexer, type MarkedToken } from 'marked';

/** Longer notes are shown as they are: hostile emphasis takes time that grows with the square, here half a second. */
const LENGTH_MAX = 16_000;

function plain(text: string): MarkedToken[] {
	return [{ type: 'code', raw: text, text }];
}

export function parseMarkdown(text: string): MarkedToken[] {
	if (text.length > LENGTH_MAX) return plain(text);
	try {
		return lexer(text) as MarkedToken[];
	} catch {
		return plain(text); // nested too deep for a stack
	}
}

/** Tokens inside a token; marked's type leaves room for extensions, of which there are none here. */
export function inside(t: MarkedToken): MarkedToken[] {
	if (t.type === 'list') return t.items;
	return ('tokens' in t && t.tokens ? t.tokens : []) as MarkedToken[];
}

/** http, https and mailto; anything else would be followed inside the page or run. */
export function safeLink(href: string): boolean {
	return /^(https?:\/\/|mailto:)/i.test(href);
}
