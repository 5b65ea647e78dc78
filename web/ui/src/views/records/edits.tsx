// SPDX-License-Identifier: Apache-2.0
// Displays the diff of two texts.
import { around, diff, wordsOf } from '../../base/diff.ts';
import './styles.ts';

const CONTEXT = 2;

/** Changed lines with context; nothing without changes. */
export function Lines({ from, to }: { from: string; to: string }) {
	const list = around(diff(from.split('\n'), to.split('\n')), CONTEXT);
	return (
		<pre class="edits" tabIndex={0} aria-label="Lines that differ">{list.map((e, i) => (e
			? <span key={i} class={e.kind}>{e.kind === 'added' ? '+ ' : e.kind === 'removed' ? '− '
				: '  '}{e.text}</span>
			: <span key={i} class="skip">…</span>))}</pre>
	);
}

/** The second text with removed words of the first. */
export function Words({ from, to }: { from: string; to: string }) {
	return <>{diff(wordsOf(from), wordsOf(to)).map((e, i) => (e.kind === 'same' ? e.text
		: e.kind === 'added' ? <ins key={i} class="added">{e.text}</ins> : <del key={i}
			class="removed">{e.text}</del>))}</>;
}
