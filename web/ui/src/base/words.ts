// SPDX-License-Identifier: Apache-2.0
// Removes common Markdown marks from a text, for a single line in the table. Unknown marks are kept.

const LINE_MARKS = /^\s*(?:>\s?|#{1,6}\s+|[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,9}[.)]\s+)*/;
const NO_WORDS = /^\s*(?:(?:```|~~~).*|[-*_=](?:\s*[-*_=])*|\|?[\s:|-]+\|?)\s*$/;
const INLINE: [RegExp, string][] = [
	[/!?\[([^[\]]*)\]\([^()\s]*(?:\s+"[^"]*")?\)/g, '$1'],
	[/(\*\*|~~)(?=\S)(.*?\S)\1/g, '$2'],
	[/(?<![\w_])__(?=\S)(.*?\S)__(?![\w_])/g, '$1'],
	[/\*(?=\S)([^*]*?[^\s*])\*/g, '$1'],
	[/(?<![\w_])_(?=\S)([^_]*?[^\s_])_(?![\w_])/g, '$1'],
	[/\\([!-/:-@[-`{-~])/g, '$1'],
];

function lineWords(line: string): string {
	if (NO_WORDS.test(line)) return '';
	const cells = line.trimStart().startsWith('|') ? line.replace(/\|/g, ' ') : line.replace(LINE_MARKS, '');
	const plain = (t: string) => INLINE.reduce((u, [mark, words]) => u.replace(mark, words), t);
	return cells.split(/`([^`]+)`/).map((t, i) => (i % 2 ? t : plain(t))).join('');
}

/** Meant for the first few hundred characters of a text. */
export function plainText(text: string): string {
	return text.split('\n').map(lineWords).join(' ').replace(/\s+/g, ' ').trim();
}
