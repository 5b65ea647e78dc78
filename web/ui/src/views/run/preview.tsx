// SPDX-License-Identifier: Apache-2.0
// Preview of a run's file: images, tables, texts; for others a link. Files are untrusted: text is never interpreted.
import { useSignal } from '@preact/signals';
import { bytes } from '../../base/format.ts';
import type { Artifact } from '../../base/types.ts';
import { artifactAddress, getText } from '../../state/run.ts';
import { useLoaded } from '../base/bits.tsx';
import { lazy } from '../base/lazy.tsx';

const Markdown = lazy(() => import('../base/markdown.tsx').then((m) => m.Markdown));
const PICTURES = /\.(png|jpe?g|gif|webp|bmp|avif|svg)$/i;
const TEXTS = new RegExp('\\.(txt|log|md|markdown|json|jsonl|csv|tsv|ya?ml|toml|ini|cfg|conf|xml|html?|py|c|h|cc|cpp|cu'
	+ '|js|ts|sh|diff|patch|env|lock|requirements|rst|tex|sql)$'
	+ '|(^|/)(MLmodel|Makefile|Dockerfile|LICENSE|README)$', 'i');
const ROWS_MAX = 200;
const COLUMNS_MAX = 50;

/** Parses comma or tab separated cells: quotes protect separators and line ends; two quotes stand for one. */
function cellsOf(text: string, separator: string): string[][] {
	const rows: string[][] = [];
	const pattern = new RegExp(`("(?:[^"]|"")*"|[^${separator}\\n]*)(${separator}|\\n|$)`, 'g');
	let row: string[] = [];
	for (const [whole, cell, end] of text.replace(/\r\n/g, '\n').matchAll(pattern)) {
		row.push(cell!.startsWith('"') ? cell!.slice(1, -1).replace(/""/g, '"') : cell!);
		if (end === separator) continue;
		if (whole !== '' || row.length > 1) rows.push(row);
		row = [];
		if (end === '' || rows.length > ROWS_MAX) break;
	}
	return rows;
}

function Table({ rows }: { rows: string[][] }) {
	const [head, ...body] = rows;
	return (
		<table>
			<thead><tr>{head?.slice(0, COLUMNS_MAX).map((c, i) => <th key={i}>{c}</th>)}</tr></thead>
			<tbody>{body.slice(0, ROWS_MAX).map((r, n) => (
				<tr key={n}>{r.slice(0, COLUMNS_MAX).map((c, i) => <td key={i}>{c}</td>)}</tr>
			))}</tbody>
		</table>
	);
}

function pretty(text: string): string {
	try {
		return JSON.stringify(JSON.parse(text), null, 2);
	} catch {
		return text;
	}
}

function Words({ path, text, cut }: { path: string; text: string; cut: boolean }) {
	if (/\.(csv|tsv)$/i.test(path)) return <Table rows={cellsOf(text, /\.tsv$/i.test(path) ? '\t' : ',')} />;
	if (/\.(md|markdown)$/i.test(path))
		return <Markdown text={text} meanwhile={<pre>{text}</pre>} imageOf={() => null} />;
	return <pre>{/\.json$/i.test(path) && !cut ? pretty(text) : text}</pre>;
}

function TextFile({ run, f }: { run: string; f: Artifact }) {
	const { value, wrong } = useLoaded(() => getText(run, f.path), [run, f.path]);
	if (wrong) return <p class="problem" role="alert">{wrong}</p>;
	if (!value) return <p class="dim">…</p>;
	return (
		<>
			<Words path={f.path} {...value} />
			{value.cut && <p class="dim">The beginning of {bytes(f.bytes ?? 0)}.</p>}
		</>
	);
}

/** Renders HTML in a sandboxed frame without access to the page or the network, or as text. */
function Page({ address, name, run, f }: { address: string; name: string; run: string; f: Artifact }) {
	const source = useSignal(false);
	return (
		<>
			<p><label><input type="checkbox" checked={source.value}
				onChange={() => (source.value = !source.value)} /> Source</label></p>
			{source.value ? <TextFile run={run} f={f} key={f.path} />
				: <iframe src={address + '?view=frame'} title={name} sandbox="allow-scripts"
					referrerpolicy="no-referrer" />}
		</>
	);
}

export function Preview({ run, f, close }: { run: string; f: Artifact; close: () => void }) {
	const address = artifactAddress(run, f.path);
	const name = f.path.split('/').pop()!;
	return (
		<div class="preview" role="region" aria-label={`Preview of ${name}`} tabIndex={0}>
			<p><b>{name}</b> <span class="dim">{bytes(f.bytes ?? 0)}</span>{' '}
				<a href={address} download>Download</a>
				<button type="button" class="quiet" aria-label="Close the preview"
					onClick={close}>✕</button></p>
			{/\.html?$/i.test(f.path) ? <Page address={address} name={name} run={run} f={f} />
				: PICTURES.test(f.path) ? <img src={address} alt={name} />
				: TEXTS.test(f.path) ? <TextFile run={run} f={f} key={f.path} />
				: <p class="dim">No preview for this type of file.</p>}
		</div>
	);
}
