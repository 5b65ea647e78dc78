// SPDX-License-Identifier: Apache-2.0
// Help on keys; opened by ? and closed by Escape.
import { useRef } from 'preact/hooks';
import { useFocus } from '../base/focus.ts';
import '../base/later.ts';

const KEYS: [string, [string, string][]][] = [
	['everywhere', [['/', 'the filter'], ['?', 'these keys'], ['Escape', 'close']]],
	['table', [
		['↑ ↓ j k', 'next or previous run'], ['← → Home End', 'next or previous cell'], ['Page ↑ ↓', 'by page'],
		['Enter', 'open the run; on a header: sort'], ['Shift Enter', 'on a header: second sort'],
		['m', 'on a header: its menu'], ['Space', 'show or hide in the charts'],
		['Shift Space', 'all up to the last one'], ['x', 'select'], ['X', 'select all up to the last one'],
		['o', 'only this run in the charts'], ['p', 'pin'],
		['b', 'use as baseline'], ['+ −', 'show or hide nested runs'],
		['Alt ← →', 'on a header: move the column'], ['Alt Shift ← →', 'on a header: resize the column'],
	]],
	['charts', [
		['← → Home End', 'the cursor; with Shift by larger steps'], ['+', 'zoom in'],
		['− Escape', 'the whole range'],
	]],
	['params and goal, scatter', [
		['arrows', 'from run to run; between axes'], ['Enter', 'open the run'],
		['Space', 'start or end a range at the run'], ['Delete', 'remove the range of the axis'],
	]],
	['a run', [['n', 'the next run of the table'], ['N', 'the one before']]],
	['console', [['↑ ↓', 'next or previous line with a time'], ['Enter', 'this time in the charts']]],
];

export function Keys({ close }: { close: () => void }) {
	const box = useRef<HTMLDivElement>(null);
	useFocus(box, []);
	return (
		<div class="keys" role="dialog" aria-modal="true" aria-label="Keys" tabIndex={-1} ref={box}
			onKeyDown={(e) => e.key === 'Escape' && close()}>
			<button type="button" class="quiet" aria-label="close" onClick={close}>✕</button>
			{KEYS.map(([where, list]) => (
				<section key={where}><h2>{where}</h2><dl>{list.map(([key, does]) => (
					<div key={key}><dt><kbd>{key}</kbd></dt><dd>{does}</dd></div>))}</dl></section>
			))}
		</div>
	);
}
