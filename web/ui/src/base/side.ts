// Runs side by side: one row for each name, one cell for each run, and whether they differ. No browser here.
import { bytes, natural } from './format.ts';

export interface SideRow {
	name: string;
	/** undefined where the run has none. */
	cells: (string | undefined)[];
	differs: boolean;
}

/** Rows of what several runs say under the same names, in the order of the names. */
export function sideRows(maps: readonly Readonly<Record<string, string>>[]): SideRow[] {
	const names = [...new Set(maps.flatMap((m) => Object.keys(m)))].sort(natural);
	return names.map((name) => {
		const cells = maps.map((m) => m[name]);
		return { name, cells, differs: new Set(cells).size > 1 };
	});
}

export interface SideFile {
	bytes: number;
	/** null where it is not known. */
	sha256: string | null;
}

const DIGITS = 10;

/**
 * Rows of files: they differ by their digests where all of them have one, else by their sizes; what is said of one is
 * both.
 */
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

/** "name==version" a line, as names and versions. */
export function packagesOf(text: string): Record<string, string> {
	const pairs = text.split('\n').filter((l) => l.trim() !== '').map((l) => {
		const m = /^([^=\s@]+)\s*(?:==|@|\s)\s*(.*)$/.exec(l.trim());
		return m ? [m[1]!, m[2]!] : [l.trim(), 'there'];
	});
	return Object.fromEntries(pairs) as Record<string, string>;
}

/** Lines of a diff that say what changed where, without those that differ from commit to commit alone. */
export function changeLines(diff: string): string[] {
	return diff.split('\n').filter((l) => !/^(index |@@ |diff --git )/.test(l));
}

/** How many lines a diff adds and takes away, and in how many files. */
export function diffSize(diff: string): { added: number; removed: number; files: number } {
	const lines = diff.split('\n');
	const begin = (word: string) => lines.filter((l) => l.startsWith(word)).length;
	return {
		added: lines.filter((l) => /^\+(?!\+\+ )/.test(l)).length,
		removed: lines.filter((l) => /^-(?!-- )/.test(l)).length,
		files: begin('diff --git ') || begin('+++ '),
	};
}
