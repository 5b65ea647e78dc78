// SPDX-License-Identifier: Apache-2.0
// Help on keys; opened by ? and closed by Escape.
import { useRef } from 'preact/hooks';
import { Str } from '../../strings/en.ts';
import { useFocus } from '../base/focus.ts';
import '../base/later.ts';

const KEYS: [string, [string, string][]][] = [
	[Str.everywhere, [['/', Str.theFilter], ['?', Str.theseKeys], [Str.Escape, Str.close]]],
	[Str.table, [
		['↑ ↓ j k', Str.nextOrPreviousRun], [Str.HomeEnd, Str.nextOrPreviousCell], [Str.Page, Str.byPage],
		[Str.Enter, Str.openTheRunOnAHeader], [Str.ShiftEnter, Str.onAHeaderSecondSort],
		['m', Str.onAHeaderItsMenu], [Str.Space, Str.showOrHideInTheCharts],
		[Str.ShiftSpace, Str.allUpToTheLastOne], ['x', Str.select], ['X', Str.selectAllUpToTheLast],
		['o', Str.onlyThisRunInTheCharts], ['p', Str.pin],
		['b', Str.useAsBaseline], ['+ −', Str.showOrHideNestedRuns],
		[Str.Alt, Str.onAHeaderMoveTheColumn], [Str.AltShift, Str.onAHeaderResizeTheColumn],
	]],
	[Str.charts, [
		[Str.HomeEnd, Str.theCursorWithShiftBy], ['+', Str.zoomIn],
		[Str.minusEscape, Str.theWholeRange], ['↑ ↓', Str.fromRunToRunByValue], [Str.Enter, Str.openTheRun],
	]],
	[Str.paramsAndGoalScatter, [
		[Str.arrows, Str.fromRunToRunBetweenAxes], [Str.Enter, Str.openTheRun],
		[Str.Space, Str.startOrEndARangeAt], [Str.Delete, Str.removeTheRangeOfTheAxis],
	]],
	[Str.aRun, [['n', Str.theNextRunOfTheTable], ['N', Str.theOneBefore]]],
	[Str.console, [['↑ ↓', Str.nextOrPreviousLineWith], [Str.Enter, Str.thisTimeInTheCharts]]],
];

export function Keys({ close }: { close: () => void }) {
	const box = useRef<HTMLDivElement>(null);
	useFocus(box, []);
	return (
		<div class="keys" role="dialog" aria-modal="true" aria-label={Str.Keys} tabIndex={-1} ref={box}
			onKeyDown={(e) => e.key === 'Escape' && close()}>
			<button type="button" class="quiet" aria-label={Str.close} onClick={close}>✕</button>
			{KEYS.map(([where, list]) => (
				<section key={where}><h2>{where}</h2><dl>{list.map(([key, does]) => (
					<div key={key}><dt><kbd>{key}</kbd></dt><dd>{does}</dd></div>))}</dl></section>
			))}
		</div>
	);
}
