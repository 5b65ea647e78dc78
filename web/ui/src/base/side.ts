// SPDX-License-Identifier: Apache-2.0
// Side-by-side comparison: a row per name, a cell per run, and whether they differ. Needs no browser.
import { bytes, natural } from './format.ts';

export interface SideRow {
	name: string;
	/** undefined if the run has no value. */
	cells: (string | undefined)[];
	differs: boolean;
}

/** Rows of equal names of several runs, sorted by name. */
export function sideRows(maps: readonly Readonly<Record<string, string>>[]): SideRow[] {
	const names = [...new Set(maps.flatMap((m) => Object.keys(m)))].sort(natural);
	return names.map((name) => {
		const cells = maps.map((m) => m[name]);
		return { name, cells, differs: new Set(cells).size > 1 };
	});
}

export interface SideFile {
	bytes: number;
	/** null if unknown. */
	sha256: string | null;
}

const DIGITS = 10;

/** Rows of files. Files are compared by digest if all have one, else by size; one cell shows both. */
export function fileRows(maps: readonly Readonly<Record<string, SideFile>>[]): (SideRow & { texts: string[] })[] {
	const names = [...new Set(maps.flatMap((m) => Object.keys(m)))].sort(natural);
	return names.map((name) => {
		const files = maps.map((m) => m[name]);
		const known = files.every((f) => !f || f.sha256 !== null);
		const cells = files.map((f) => f && (known ? 'SHA-256 ' + f.sha256 : `${f.bytes} bytes`));
		const texts = files.map((f) =>
			(f ? (f.sha256 ? f.sha256.slice(0, DIGITS) + ', ' : '') + bytes(f.bytes) : ''));
		return { name, cells, differs: new Set(cells).size > 1, texts };
	});
}

/** Parses "name==version" lines. */
export function packagesOf(text: string): Record<string, string> {
	const pairs = text.split('\n').filter((l) => l.trim() !== '').map((l) => {
		const m = /^([^=\s@]+)\s*(?:==|@|\s)\s*(.*)$/.exec(l.trim());
		return m ? [m[1]!, m[2]!] : [l.trim(), 'there'];
	});
	return Object.fromEntries(pairs) as Record<string, string>;
}

/** Lines of a diff without those that differ in every commit. */
export function changeLines(diff: string): string[] {
	return diff.split('\n').filter((l) => !/^(index |@@ |diff --git )/.test(l));
}

/** Counts added and removed lines and files of a diff. */
export function diffSize(diff: string): { added: number; removed: number; files: number } {
	const lines = diff.split('\n');
	const begin = (word: string) => lines.filter((l) => l.startsWith(word)).length;
	return {
		added: lines.filter((l) => /^\+(?!\+\+ )/.test(l)).length,
		removed: lines.filter((l) => /^-(?!-- )/.test(l)).length,
		files: begin('diff --git ') || begin('+++ '),
	};
}
