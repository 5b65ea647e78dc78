// SPDX-License-Identifier: Apache-2.0
// Archives, moves or deletes many runs; the page offers undo.
import { useSignal } from '@preact/signals';
import { count } from '../../base/format.ts';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { archiveRuns, deleteRuns, moveRuns, type Outcome } from '../../state/saved/bulk.ts';
import { Panel } from '../base/bits.tsx';
import { meant, Which } from './which.tsx';

/** Target of a move: an existing experiment or a new name. */
function Move({ off, move }: { off: boolean; move: (to: string) => void }) {
	const to = useSignal('');
	const others = (s.experiments.value ?? []).filter((e) => e.name !== s.experiment.value);
	return (
		<form class="options" onSubmit={(e) => {
			e.preventDefault();
			if (to.value.trim()) move(to.value.trim());
		}}>
			<input aria-label="Experiment to move to" placeholder="experiment" list="moveto"
				value={to.value} onInput={(e) => (to.value = e.currentTarget.value)} />
			<datalist id="moveto">{others.map((e) => <option key={e.id} value={e.name} />)}</datalist>
			<button type="submit" disabled={off}>move</button>
		</form>
	);
}

export function Manage({ close }: { close: () => void }) {
	const all = useSignal(false);
	const busy = useSignal(false);
	const wrong = useSignal('');
	const list = meant(all.value);
	const away = list.filter(s.isArchived);
	const act = async (change: (list: readonly Run[]) => Promise<Outcome>) => {
		busy.value = true;
		const out = await change(list);
		busy.value = false;
		wrong.value = out.refused ? `${count(out.refused, 'run')} refused: ${out.why}` : '';
		if (!out.refused) close();
	};
	const off = busy.value || !list.length;
	return (
		<Panel label="Change runs" close={close}><div class="bulktag">
			<Which all={all.value} set={(v) => (all.value = v)} />
			<span class="options">
				{away.length < list.length && <button type="button" disabled={off}
					title="out of the table; they stay whole"
					onClick={() => void act((l) => archiveRuns(l, true))}>archive</button>}
				{away.length > 0 && <button type="button" disabled={off}
					onClick={() => void act(() => archiveRuns(away, false))}>unarchive</button>}
				<button type="button" disabled={off} title="into the trash"
					onClick={() => void act(deleteRuns)}>delete</button>
			</span>
			<Move off={off} move={(to) => void act((l) => moveRuns(l, to))} />
			<span role="status">{busy.value && <span class="dim">…</span>}
				{wrong.value && <span class="problem">{wrong.value}</span>}</span>
		</div></Panel>
	);
}
