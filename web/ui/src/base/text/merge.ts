// SPDX-License-Identifier: Apache-2.0
// Two edits of one text, by lines.

/** The lines of base that an edit replaces, from the first to the last that differs, and what replaces them. */
function changed(base: string[], text: string[]): { from: number; to: number; lines: string[] } {
	let from = 0;
	let end = 0;
	const most = Math.min(base.length, text.length);
	while (from < most && base[from] === text[from]) from++;
	while (end < most - from && base[base.length - 1 - end] === text[text.length - 1 - end]) end++;
	return { from, to: base.length - end, lines: text.slice(from, text.length - end) };
}

/** The text with both edits of base; null if they touch the same lines, or neighbours. */
export function merged(base: string, one: string, other: string): string | null {
	if (one === base || other === base) return one === base ? other : one;
	const lines = base.split('\n');
	const [a, b] = [one, other].map((text) => changed(lines, text.split('\n')))
		.sort((x, y) => x.from - y.from || x.to - y.to) as [ReturnType<typeof changed>, ReturnType<typeof
			changed>];
	if (a.to >= b.from) return null;
	return [...lines.slice(0, a.from), ...a.lines, ...lines.slice(a.to, b.from), ...b.lines, ...lines.slice(b.to)]
		.join('\n');
}
