// SPDX-License-Identifier: Apache-2.0
// Parses Markdown (GitHub flavour) of notes to marked's tokens. They are rendered as elements, never as HTML: HTML in a
// note stays text, and only safe links become links.
import { lexer, type MarkedToken } from 'marked';

/** Longer notes are shown as plain text: hostile emphasis takes quadratic time, half a second at this size. */
const LENGTH_MAX = 16_000;

const plain = (text: string): MarkedToken[] => [{ type: 'code', raw: text, text }];

export function parseMarkdown(text: string): MarkedToken[] {
	if (text.length > LENGTH_MAX) return plain(text);
	try {
		return lexer(text) as MarkedToken[];
	} catch {
		return plain(text); // nested too deep for the stack
	}
}

/** Child tokens; marked's type also allows extensions, which are not used here. */
export function inside(t: MarkedToken): MarkedToken[] {
	if (t.type === 'list') return t.items;
	return ('tokens' in t && t.tokens ? t.tokens : []) as MarkedToken[];
}

/** Allows http, https and mailto; other schemes could run code or resolve inside the page. */
export function safeLink(href: string): boolean {
	return /^(https?:\/\/|mailto:)/i.test(href);
}
