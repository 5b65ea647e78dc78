// SPDX-License-Identifier: Apache-2.0
// Help on keys; opened by ? and closed by Escape.
import { useRef } from 'preact/hooks';
import { useFocus } from '../base/focus.ts';
import '../base/later.ts';

const KEYS: [string, [string, string][]][] = [
	['Everywhere', [['/', 'The filter'], ['?', 'These keys'], ['z', 'Undo the last removal, while it is offered'],
		['Escape', 'Close']]],
	['Table', [
		['↑ ↓ j k', 'Next or previous run'], ['← → Home End', 'Next or previous cell'], ['Page ↑ ↓', 'By page'],
		['Enter', 'Open the run; on a header: sort'], ['Shift Enter', 'On a header: second sort'],
		['m', 'On a header: its menu'], ['Space x', 'Select'],
			['Shift Space X', 'Select all up to the last one'],
		['v', 'Show or hide in the charts'], ['V', 'All up to the last one'],
		['o', 'Only this run in the charts'], ['c', 'Its colour'], ['p', 'Pin'],
		['b', 'Use as baseline'], ['+ −', 'Show or hide nested runs'],
		['Alt ← →', 'On a header: move the column'], ['Alt Shift ← →', 'On a header: resize the column'],
	]],
	['Charts', [
		['← → Home End', 'The cursor by one logged point, also where the pointer rests; with Shift by larger '
			+ 'steps'], ['+', 'Zoom in'],
		['− Escape', 'The whole range'], ['↑ ↓', 'From run to run, by value'], ['Enter', 'Open the run'],
		['c', 'Its colour'],
	]],
	['Params and goal, scatter', [
		['Arrows', 'From run to run; between axes'], ['Enter', 'Open the run'],
		['Space', 'Start or end a range at the run'], ['Delete', 'Remove the range of the axis'],
	]],
	['A run', [['n', 'The next run of the table'], ['N', 'The one before'], ['e', 'Edit the notes']]],
	['Console', [['↑ ↓', 'Next or previous line with a time'], ['Enter', 'This time in the charts']]],
];

export function Keys({ close }: { close: () => void }) {
	const box = useRef<HTMLDivElement>(null);
	useFocus(box, []);
	return (
		<div class="keys" role="dialog" aria-modal="true" aria-label="Keys" tabIndex={-1} ref={box}
			onKeyDown={(e) => e.key === 'Escape' && close()}>
			<button type="button" class="quiet" aria-label="Close" onClick={close}>✕</button>
			{KEYS.map(([where, list]) => (
				<section key={where}><h2>{where}</h2><dl>{list.map(([key, does]) => (
					<div key={key}><dt><kbd>{key}</kbd></dt><dd>{does}</dd></div>))}</dl></section>
			))}
		</div>
	);
}
