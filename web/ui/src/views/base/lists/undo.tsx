// SPDX-License-Identifier: Apache-2.0
// Offers to undo the last removal; loaded after the first screen.
import * as s from '../../../state/index.ts';

export function Undo() {
	const done = s.done.value;
	return done && (
		<p class="banner undo" role="status">{done.text} <button type="button"
			title="z" aria-keyshortcuts="z" onClick={() => void s.undoLast(done)}>Undo</button>
			{!!done.each?.length && <span class="each">or only{done.each.map((one, i) => <button
				key={i} type="button" aria-label={`Undo for ${one.name}`}
				onClick={() => void s.undoLast(one)}>{one.name}</button>)}</span>}
			<button type="button" class="quiet" aria-label="Close"
				onClick={() => (s.done.value = null)}>✕</button></p>
	);
}
