// SPDX-License-Identifier: Apache-2.0
// Help on keys; opened by ? and closed by Escape.
import { useRef } from 'preact/hooks';
import { Str } from '../../strings/en.ts';
import { useFocus } from '../base/focus.ts';
import '../base/later.ts';

const KEYS: [string, [string, string][]][] = [
	[Str.Everywhere, [['/', Str.TheFilter], ['?', Str.TheseKeys], ['z', Str.UndoTheLastRemoval],
		[Str.Escape, Str.Close]]],
	[Str.Table, [
		['↑ ↓ j k', Str.NextOrPreviousRun], [Str.HomeEnd, Str.NextOrPreviousCell], [Str.Page, Str.ByPage],
		[Str.Enter, Str.OpenTheRunOnAHeader], [Str.ShiftEnter, Str.OnAHeaderSecondSort],
		['m', Str.OnAHeaderItsMenu], [Str.SpaceX, Str.Select], [Str.ShiftSpaceX, Str.SelectAllUpToTheLast],
		['v', Str.ShowOrHideInTheCharts], ['V', Str.AllUpToTheLastOne],
		['o', Str.OnlyThisRunInTheCharts], ['p', Str.Pin],
		['b', Str.UseAsBaseline], ['+ −', Str.ShowOrHideNestedRuns],
		[Str.Alt, Str.OnAHeaderMoveTheColumn], [Str.AltShift, Str.OnAHeaderResizeTheColumn],
	]],
	[Str.Charts, [
		[Str.HomeEnd, Str.TheCursorWithShiftBy], ['+', Str.ZoomIn],
		[Str.minusEscape, Str.TheWholeRange], ['↑ ↓', Str.FromRunToRunByValue], [Str.Enter, Str.OpenTheRun],
	]],
	[Str.ParamsAndGoalScatter, [
		[Str.Arrows, Str.FromRunToRunBetweenAxes], [Str.Enter, Str.OpenTheRun],
		[Str.Space, Str.StartOrEndARangeAt], [Str.Delete, Str.RemoveTheRangeOfTheAxis],
	]],
	[Str.ARun, [['n', Str.TheNextRunOfTheTable], ['N', Str.TheOneBefore], ['e', Str.EditTheNotes]]],
	[Str.Console, [['↑ ↓', Str.NextOrPreviousLineWith], [Str.Enter, Str.ThisTimeInTheCharts]]],
];

export function Keys({ close }: { close: () => void }) {
	const box = useRef<HTMLDivElement>(null);
	useFocus(box, []);
	return (
		<div class="keys" role="dialog" aria-modal="true" aria-label={Str.Keys} tabIndex={-1} ref={box}
			onKeyDown={(e) => e.key === 'Escape' && close()}>
			<button type="button" class="quiet" aria-label={Str.Close} onClick={close}>✕</button>
			{KEYS.map(([where, list]) => (
				<section key={where}><h2>{where}</h2><dl>{list.map(([key, does]) => (
					<div key={key}><dt><kbd>{key}</kbd></dt><dd>{does}</dd></div>))}</dl></section>
			))}
		</div>
	);
}
