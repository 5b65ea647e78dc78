// SPDX-License-Identifier: Apache-2.0
// A table column, and its width measured from the displayed texts in the page's font.
import type { ComponentChildren } from 'preact';
import type { Run } from '../../base/types.ts';

export interface Column {
	id: string;
	title: string;
	/** Second, smaller header line; title attribute. */
	hint: string;
	width: number;
	/** Width if there is room. */
	wanted?: number;
	/** The user set the width. */
	sized?: boolean;
	/** Where it stays while the others scroll, in pixels. */
	left?: number;
	number: boolean;
	sortable: boolean;
	cell(r: Run): ComponentChildren;
	/** Full value for the title attribute and for copying. */
	full(r: Run): string;
}

const PAD = 14;
/** The arrow of a sorted head, next to its last line. */
const ARROW = 7;
/** Room to press a head next to the button of its menu. */
const WIDTH_LEAST = 42;
/** Runs whose texts determine the width. */
const SAMPLE = 300;
/** Number of longest texts that are measured: a measurement takes microseconds. */
const MEASURED = 16;
const ruler = document.createElement('canvas').getContext('2d')!;
/** The page's font, once known. */
let family: string | null = null;

/** Splits a header into one or two lines near its middle. */
export function twoLines(title: string): string[] {
	const words = title.split(' ');
	if (words.length < 2) return [title];
	let best = 1;
	const long = (i: number) => Math.max(words.slice(0, i).join(' ').length, words.slice(i).join(' ').length);
	for (let i = 2; i < words.length; i++) if (long(i) < long(best)) best = i;
	return [words.slice(0, best).join(' '), words.slice(best).join(' ')];
}

/** Column width from the displayed texts, in the page's font. */
export function widthOf(title: string, texts: Iterable<string>, max: number): number {
	family ??= getComputedStyle(document.documentElement).fontFamily;
	ruler.font = '600 11.5px ' + family;
	const lines = twoLines(title).map((l) => ruler.measureText(l).width + 2);
	let n = Math.max(...lines, lines.at(-1)! + ARROW);
	ruler.font = '600 12.5px ' + family;
	const longest = [...new Set(texts)].sort((a, b) => b.length - a.length).slice(0, MEASURED);
	// digits have equal widths: the table uses tabular figures
	for (const t of new Set(longest.map((l) => l.replace(/\d/g, '0')))) n = Math.max(n, ruler.measureText(t).width);
	return Math.ceil(Math.min(max, Math.max(WIDTH_LEAST, n + PAD)));
}

/** Keeps the columns of these ids, which come first, at the left; the name before them has its width then. */
export function keepLeft(cols: Column[], fixed: readonly string[]): Column[] {
	const n = cols.filter((c) => fixed.includes(c.id)).length;
	let left = 0;
	return !n ? cols : cols.map((c, i) => {
		const at = left;
		left += c.width;
		return i > n ? c : { ...c, wanted: undefined, left: i ? at : undefined };
	});
}

export function* sample<T>(list: readonly Run[], f: (r: Run) => T): Generator<T> {
	for (let i = 0; i < Math.min(list.length, SAMPLE); i++) yield f(list[i]!);
}
