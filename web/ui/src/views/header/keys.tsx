// Help on keys; opened by ? and closed by Escape.
import { useRef } from 'preact/hooks';
import { useFocus } from '../base/focus.ts';
import '../base/later.ts';

const KEYS: [string, [string, string][]][] = [
	['everywhere', [['/', 'the filter'], ['?', 'these keys'], ['Escape', 'closes what is open']]],
	['table', [
		['↑ ↓ j k', 'from run to run'], ['← → Home End', 'from cell to cell'], ['Page ↑ ↓', 'by pages'],
		['Enter', 'opens the run; on a head: sorts'], ['Space', 'in the charts or not'],
		['Shift Space', 'all up to the last one'], ['o', 'only this run in the charts'], ['p', 'stays on top'],
		['b', 'the others are measured by it'], ['+ −', 'shows or hides the runs below'],
		['Alt ← →', 'on a head: moves the column'], ['Alt Shift ← →', 'on a head: its width'],
	]],
	['charts', [
		['← → Home End', 'the cursor; with Shift by larger steps'], ['+', 'closer'],
		['− Escape', 'the whole range'],
	]],
	['params and goal, scatter', [
		['arrows', 'from run to run; between axes'], ['Enter', 'opens the run'],
		['Space', 'begins a range at the run, and ends it'], ['Delete', 'takes the range of the axis away'],
	]],
	['a run', [['n', 'the next run of the table'], ['N', 'the one before']]],
	['console', [['↑ ↓', 'from the time of a line to the next'], ['Enter', 'this time in the charts']]],
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
