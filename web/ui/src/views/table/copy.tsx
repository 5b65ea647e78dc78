// SPDX-License-Identifier: Apache-2.0
// Exports the displayed table as Markdown or LaTeX, the best in bold.
import { isValidElement, type ComponentChildren } from 'preact';
import type { TextCell, TextTable } from '../../base/text/texttable.ts';
import * as s from '../../state/index.ts';
import { CopyText } from '../base/copytext.tsx';
import { columns } from './columns.tsx';
import { groupColumns, orderGroups } from './groupcells.tsx';
import { visibleRows } from './rows.ts';

const ROWS_MAX = 1000;
/** Columns without a text form. */
const LEFT_OUT: ReadonlySet<string> = new Set(['cursor', 'phase', 'notes']);

/** Text of a cell; drawings have none. */
function wordsOf(c: ComponentChildren): TextCell {
	if (typeof c === 'string' || typeof c === 'number') return { text: String(c), best: false };
	if (Array.isArray(c)) {
		const parts = c.map(wordsOf).filter((p) => p.text !== '');
		return { text: parts.map((p) => p.text).join(' '), best: parts.some((p) => p.best) };
	}
	if (!isValidElement(c)) return { text: '', best: false };
	const { children, class: name } = c.props as { children?: ComponentChildren; class?: string };
	const inner = wordsOf(children);
	return { text: name === 'none' ? '' : inner.text, best: inner.best || name === 'best' };
}

function groupTable(): TextTable {
	const cols = groupColumns.value.filter((c) => !LEFT_OUT.has(c.of.id));
	const plain = (text: string): TextCell => ({ text, best: false });
	const rows = orderGroups(s.runGroups.value, groupColumns.value).slice(0, ROWS_MAX);
	return {
		head: ['group', 'n', ...cols.slice(1).map((c) => c.of.title)],
		numbers: [false, true, ...cols.slice(1).map((c) => c.of.number)],
		rows: rows.map((g) => [plain(g.title), plain(String(g.runs.length)),
			...cols.slice(1).map((c) => wordsOf(c.cell(g)))]),
	};
}

function runTable(): TextTable {
	const cols = columns.value.filter((c) => !LEFT_OUT.has(c.id));
	return {
		head: cols.map((c) => c.title),
		numbers: cols.map((c) => c.number),
		rows: visibleRows.value.slice(0, ROWS_MAX).map((r) => cols.map((c) => wordsOf(c.cell(r)))),
	};
}

export function CopyTable({ close }: { close: () => void }) {
	return <CopyText label="Copy the table" table={() => (s.isGrouped.value ? groupTable() : runTable())}
		close={close} />;
}
