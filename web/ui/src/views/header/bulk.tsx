// SPDX-License-Identifier: Apache-2.0
// Bar of the selected runs: it counts what an action touches, asks before more than one run is deleted, and offers
// undo.
import { signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { count } from '../../base/format.ts';
import type { Run } from '../../base/types.ts';
import { mayWrite } from '../../state/access.ts';
import * as s from '../../state/index.ts';
import { archiveRuns, deleteRuns, moveRuns, type Outcome } from '../../state/saved/bulk.ts';
import { SHARED_MAX } from '../../state/shares.ts';
import { changeTag, keyProblem } from '../../state/tagging.ts';
import { Opener, Panel } from '../base/bits.tsx';
import { Icon } from '../base/icon.tsx';
import { Ask } from '../base/lists/list.tsx';
import { Menu, type MenuItem } from '../base/menu.tsx';
import { Share } from '../base/share.tsx';
import { saveTable } from '../table/csv.ts';
import '../base/later.ts';

type Change = (list: readonly Run[]) => Promise<Outcome>;

/** The refusals of the last action; '' while none. */
const wrong = signal('');
const busy = signal(false);
const asking = signal(false);

async function act(change: Change): Promise<void> {
	const list = s.chosenRuns.value;
	busy.value = true;
	const out = await change(list);
	busy.value = false;
	const gone = new Set(out.done.map((r) => r.id));
	s.selectRuns(list.filter((r) => !gone.has(r.id)));
	wrong.value = out.refused ? `${count(out.refused, 'run')} of ${list.length} refused: ${out.why}` : '';
}

/** Deletes one run at once, and more after a question. */
function remove(): void {
	if (s.chosenRuns.value.length > 1) asking.value = true;
	else void act(deleteRuns);
}

function AskDelete({ close }: { close: () => void }) {
	const n = count(s.chosenRuns.value.length, 'run');
	return (
		<Ask title={`Delete ${n}?`} word={`Delete ${n}`} act={() => void act(deleteRuns)} close={close}>
			<p class="dim">{names(s.chosenRuns.value)}</p>
			<p>They move to the trash, from which they can be restored.</p>
		</Ask>
	);
}

const NAMED = 5;

function names(list: readonly Run[]): string {
	const first = list.slice(0, NAMED).map((r) => s.nameOf(r.id, r)).join(', ');
	return first + (list.length > NAMED ? ` and ${list.length - NAMED} more` : '');
}

/** Sets one tag of the runs, or removes it. */
function TagForm({ close }: { close: () => void }) {
	const key = useSignal('');
	const value = useSignal('');
	const said = useSignal('');
	const n = s.chosenRuns.value.length;
	const begin = async (to: string | null) => {
		said.value = keyProblem(key.value);
		if (said.value) return;
		const list = s.chosenRuns.value.filter((r) => to !== null
			|| s.tagsOf(r)[key.value.trim()] !== undefined);
		const refused = await changeTag(list.map((r) => r.id), key.value.trim(), to,
			(done) => (said.value = `${done} of ${list.length}`));
		said.value = refused.length ? `${count(refused.length, 'run')} refused: ${refused[0]!.why}`
			: `${to === null ? 'Removed from' : 'Set on'} ${count(list.length, 'run')}`;
	};
	return (
		<Panel label={`Tag ${count(n, 'run')}`} close={close}><form class="bulktag"
			onSubmit={(e) => {
			e.preventDefault();
			void begin(value.value);
		}}>
			<input aria-label="Tag" placeholder="Tag" list="bulkkeys" value={key.value}
				onInput={(e) => (key.value = e.currentTarget.value)} />
			<input aria-label="Value" placeholder="Value" value={value.value}
				onInput={(e) => (value.value = e.currentTarget.value)} />
			<datalist id="bulkkeys">{s.tagKeys.value.map((k) => <option key={k} value={k} />)}</datalist>
			<span class="options"><button type="submit" class="primary">Set on {count(n, 'run')}</button>
				<button type="button" onClick={() => void begin(null)}>Remove</button></span>
			<span role="status" class="dim">{said.value}</span>
		</form></Panel>
	);
}

/** Target of a move: an existing experiment or a new name. */
function MoveForm({ close }: { close: () => void }) {
	const to = useSignal('');
	const others = (s.experiments.value ?? []).filter((e) => s.chosenRuns.value.some((r) =>
		r.experiment !== e.name));
	return (
		<Panel label="Move to an experiment" close={close}><form class="bulktag" onSubmit={(e) => {
			e.preventDefault();
			const name = to.value.trim();
			if (!name) return;
			close();
			void act((l) => moveRuns(l, name));
		}}>
			<input aria-label="Experiment to move to" placeholder="Experiment" list="moveto"
				value={to.value} onInput={(e) => (to.value = e.currentTarget.value)} />
			<datalist id="moveto">{others.map((e) => <option key={e.id} value={e.name} />)}</datalist>
			<button type="submit" class="primary">Move {count(s.chosenRuns.value.length, 'run')}</button>
		</form></Panel>
	);
}

/** Further actions on the selected runs. */
function restOf(list: readonly Run[]): MenuItem[] {
	const away = list.filter(s.isArchived);
	const archive: MenuItem = { word: 'Archive', icon: 'archive', act: () =>
		void act((l) => archiveRuns(l.filter((r) => !s.isArchived(r)), true)) };
	const unarchive: MenuItem = { word: 'Unarchive', icon: 'archive', act: () =>
		void act(() => archiveRuns(away, false)) };
	const only = () => s.setShown(new Set(list.map((r) => r.id)));
	return [
		{ word: 'Show only these in the charts', icon: 'eye', act: only },
		...away.length < list.length ? [archive] : [], ...away.length > 0 ? [unarchive] : [],
		{ word: 'Delete', icon: 'trash', act: remove, danger: true },
	];
}

const open = { tag: signal(false), move: signal(false) };

function Actions(): ComponentChildren {
	const list = s.chosenRuns.value;
	const may = s.shownExperiments.value.every(mayWrite);
	const compared = list.length > 1 && list.length <= s.COMPARED_MAX;
	return (
		<>
			<button type="button" disabled={!compared} title={compared ? undefined
				: `Select 2 to ${s.COMPARED_MAX} runs`}
				onClick={() => s.compareRuns(list)}><Icon name="compare" />Compare</button>
			{list.length > 1 && list.length <= SHARED_MAX && <Share kind="comparison"
				target={list.map((r) => r.id)} />}
			{may && <Opener word="Tag" icon="tag" open={open.tag} panel={(c) => <TagForm close={c}
				/>} />}
			{may && <Opener word="Move" icon="move" open={open.move} panel={(c) => <MoveForm
				close={c} />} />}
			<button type="button" onClick={() => saveTable(s.experiment.value ?? 'runs', list)}>
				<Icon name="download" />Export</button>
			{may && <Menu label="More actions" items={restOf(list)} />}
		</>
	);
}

export function Bulk() {
	const list = s.chosenRuns.value;
	const hidden = s.selected.value.size - list.length;
	return (
		<div class="facts bulk" role="toolbar" aria-label="Selected runs">
			<b role="status">{list.length} selected</b>
			{hidden > 0 && <span class="dim">{hidden} not in the table, not touched</span>}
			<Actions />
			<button type="button" class="quiet" onClick={() => s.selectRuns([])}>Clear</button>
			<span class="pop">{asking.value && <AskDelete close={() => (asking.value = false)} />}</span>
			{busy.value && <span class="dim" role="status">…</span>}
			{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}
		</div>
	);
}
