// SPDX-License-Identifier: Apache-2.0
// Myers' diff of two lists of lines or words: the shortest edit script.

export interface Edit {
	/** In both, in the second alone, in the first alone. */
	kind: 'same' | 'added' | 'removed';
	text: string;
}

/** With more edits the rest counts as replaced, since the search is quadratic in their number. */
const EDITS_MAX = 600;

/** Furthest position on each diagonal after each number of edits; null with too many edits. */
function walk(a: readonly string[], b: readonly string[]): Map<number, number>[] | null {
	const trace: Map<number, number>[] = [];
	let ends = new Map([[1, 0]]);
	for (let d = 0; d <= Math.min(EDITS_MAX, a.length + b.length); d++) {
		trace.push(ends);
		const next = new Map<number, number>();
		for (let k = -d; k <= d; k += 2) {
			const down = k === -d || (k !== d && (ends.get(k - 1) ?? -1) < (ends.get(k + 1) ?? -1));
			let x = down ? ends.get(k + 1)! : ends.get(k - 1)! + 1;
			while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
			next.set(k, x);
			if (x >= a.length && x - k >= b.length) return [...trace, next];
		}
		ends = next;
	}
	return null;
}

/** Walks the trace backwards and returns the edits in order. */
function back(a: readonly string[], b: readonly string[], trace: readonly Map<number, number>[]): Edit[] {
	const out: Edit[] = [];
	let [x, y] = [a.length, b.length];
	for (let d = trace.length - 2; d >= 0; d--) {
		const ends = trace[d]!;
		const k = x - y;
		const down = k === -d || (k !== d && (ends.get(k - 1) ?? -1) < (ends.get(k + 1) ?? -1));
		const px = ends.get(down ? k + 1 : k - 1)!;
		const py = px - (down ? k + 1 : k - 1);
		while (x > px && y > py && x > 0 && y > 0) {
			out.push({ kind: 'same', text: a[--x]! });
			y--;
		}
		if (d > 0) out.push(down ? { kind: 'added', text: b[--y]! } : { kind: 'removed', text: a[--x]! });
	}
	return out.reverse();
}

export function diff(a: readonly string[], b: readonly string[]): Edit[] {
	let from = 0;
	while (from < a.length && from < b.length && a[from] === b[from]) from++;
	let end = 0;
	while (end < a.length - from && end < b.length - from && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
	const [x, y] = [a.slice(from, a.length - end), b.slice(from, b.length - end)];
	const trace = walk(x, y);
	const same = (list: readonly string[]): Edit[] => list.map((text) => ({ kind: 'same', text }));
	const middle: Edit[] = trace ? back(x, y, trace) : [
		...x.map((text): Edit => ({ kind: 'removed', text })), ...y.map((text): Edit => ({ kind: 'added',
			text }))];
	return [...same(a.slice(0, from)), ...middle, ...same(a.slice(a.length - end))];
}

/** Splits text into words and blanks. */
export function wordsOf(text: string): string[] {
	return text.match(/\s+|[^\s]+/g) ?? [];
}

/** Keeps `context` unchanged lines around each edit; null marks omitted lines. */
export function around(edits: readonly Edit[], context: number): (Edit | null)[] {
	const near = new Set<number>();
	edits.forEach((e, i) => {
		if (e.kind !== 'same') for (let k = i - context; k <= i + context; k++) near.add(k);
	});
	const out: (Edit | null)[] = [];
	edits.forEach((e, i) => {
		if (near.has(i)) out.push(e);
		else if (out.length === 0 || out[out.length - 1] !== null) out.push(null);
	});
	return near.size ? out : [];
}
