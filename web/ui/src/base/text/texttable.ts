// SPDX-License-Identifier: Apache-2.0
// Formats a table as Markdown or LaTeX, for papers and issues.

export interface TextCell {
	text: string;
	/** The best value of its column. */
	best: boolean;
}

export interface TextTable {
	head: readonly string[];
	/** Right-aligned columns of numbers. */
	numbers: readonly boolean[];
	rows: readonly (readonly TextCell[])[];
}

const line = (text: string) => text.replace(/\s+/g, ' ').trim();

function markdownCell({ text, best }: TextCell): string {
	const plain = line(text).replace(/[\\|*_`<]/g, '\\$&');
	return best && plain ? `**${plain}**` : plain;
}

export function markdownTable({ head, numbers, rows }: TextTable): string {
	const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
	return [
		row(head.map((text) => markdownCell({ text, best: false }))),
		row(numbers.map((n) => (n ? '---:' : ':---'))),
		...rows.map((r) => row(r.map(markdownCell))),
	].join('\n') + '\n';
}

const LATEX: Record<string, string> = {
	'\\': '\\textbackslash{}', '~': '\\textasciitilde{}', '^': '\\textasciicircum{}', '&': '\\&', '%': '\\%',
	'$': '\\$', '#': '\\#', '_': '\\_', '{': '\\{', '}': '\\}', '±': '$\\pm$', '−': '$-$', '–': '--',
	'∞': '$\\infty$', 'Δ': '$\\Delta$', 'µ': '$\\mu$', '…': '\\ldots{}', '<': '$<$', '>': '$>$',
};

function latexCell({ text, best }: TextCell): string {
	const plain = line(text).replace(/[\\~^&%$#_{}±−–∞Δµ…<>]/g, (c) => LATEX[c]!);
	return best && plain ? `\\textbf{${plain}}` : plain;
}

/** Uses the rules of the package booktabs. */
export function latexTable({ head, numbers, rows }: TextTable): string {
	const row = (cells: readonly string[]) => `  ${cells.join(' & ')} \\\\`;
	return [
		`\\begin{tabular}{${numbers.map((n) => (n ? 'r' : 'l')).join('')}}`,
		'  \\toprule',
		row(head.map((text) => latexCell({ text, best: false }))),
		'  \\midrule',
		...rows.map((r) => row(r.map(latexCell))),
		'  \\bottomrule',
		'\\end{tabular}',
	].join('\n') + '\n';
}
