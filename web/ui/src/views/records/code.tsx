// SPDX-License-Identifier: Apache-2.0
// Code of a run: commit, diff, packages; and its alerts.
import { useSignal } from '@preact/signals';
import { count, when } from '../../base/format.ts';
import type { RunDetail } from '../../base/types.ts';
import { matchesWords } from '../../base/url.ts';
import { getAlerts, getCode, type ToldAlert } from '../../state/records.ts';
import * as s from '../../state/index.ts';
import { useAsked } from '../base/bits.tsx';
import './styles.ts';

/** Entries with their own section, or none. */
const WHOLE = ['diff', 'packages'];

function Packages({ text }: { text: string }) {
	const words = useSignal('');
	const all = text.split('\n').filter(Boolean);
	const found = all.filter((p) => matchesWords(words.value, [p]));
	return (
		<details><summary>{count(all.length, 'package')}</summary>
			<input type="search" placeholder="Find a package" aria-label="Find a package"
				value={words.value} onInput={(e) => (words.value = e.currentTarget.value)} />
			<ul class="files">{found.map((p) => <li key={p}>{p}</li>)}</ul>
		</details>
	);
}

function lineKind(line: string): string {
	return /^\+(?!\+\+)/.test(line) ? 'added' : /^-(?!--)/.test(line) ? 'removed' : '';
}

export function Code({ r }: { r: RunDetail }) {
	const code = useAsked(() => getCode(r.id), [r.id, s.liveRev.value]);
	if (!code || !Object.keys(code).length) return null;
	const lines = (code.diff ?? '').split('\n');
	const changed = lines.filter((l) => lineKind(l)).length;
	return (
		<section class="box">
			<h2>Code</h2>
			<dl class="pairs">{Object.entries(code).filter(([k]) => !WHOLE.includes(k)).map(([k, v]) => (
				<div key={k}><dt>{k}</dt><dd title={v}>{v.length > 200 ? v.slice(0, 200) + '…'
					: v}</dd></div>))}</dl>
			{code.diff && <details><summary>{count(changed, 'line')} changed since the commit</summary>
				<pre class="edits" tabIndex={0}>{lines.map((l, i) => <span key={i}
					class={lineKind(l)}>{l}</span>)}</pre>
			</details>}
			{code.packages && <Packages text={code.packages} />}
		</section>
	);
}

function Line({ a }: { a: ToldAlert }) {
	return (
		<li><b class={a.level}>{a.title}</b> {a.text} <span class="dim">
			{a.step >= 0 ? `step ${a.step}, ` : ''}{when(a.time)}</span></li>
	);
}

export function Alerts({ r }: { r: RunDetail }) {
	const list = useAsked(() => getAlerts(r.id), [r.id, s.liveRev.value]);
	if (!list?.length) return null;
	return (
		<section class="box">
			<h2>Alerts</h2>
			<ul class="files alerts">{list.map((a, i) => <Line key={i} a={a} />)}</ul>
		</section>
	);
}
