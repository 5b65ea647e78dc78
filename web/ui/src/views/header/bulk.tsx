// SPDX-License-Identifier: Apache-2.0
// Bar of the selected runs: it counts what an action touches, asks before more than one run is deleted, and offers
// undo.
import { signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { count } from '../../base/format.ts';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { archiveRuns, deleteRuns, moveRuns, type Outcome } from '../../state/saved/bulk.ts';
import { changeTag, keyProblem } from '../../state/tagging.ts';
import { filled, parts, Str } from '../../strings/en.ts';
import { Opener, Panel } from '../base/bits.tsx';
import { Icon } from '../base/icon.tsx';
import { Menu, type MenuItem } from '../base/menu.tsx';
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
	wrong.value = out.refused ? filled(Str.xOfXRefusedX, count(out.refused, Str.run), list.length, out.why) : '';
}

/** Deletes one run at once, and more after a question. */
function remove(): void {
	if (s.chosenRuns.value.length > 1) asking.value = true;
	else void act(deleteRuns);
}

function Ask({ close }: { close: () => void }) {
	const n = count(s.chosenRuns.value.length, Str.run);
	return (
		<Panel label={filled(Str.AskDeleteX, n)} close={close}>
			<p><b>{parts(Str.AskDeleteX, n)}</b></p>
			<p class="dim">{names(s.chosenRuns.value)}</p>
			<p>{Str.TheyMoveToTheTrashFrom}</p>
			<span class="options"><button type="button" class="danger" onClick={() => {
				close();
				void act(deleteRuns);
			}}>{parts(Str.DeleteX, n)}</button>
				<button type="button" onClick={close}>{Str.Cancel}</button></span>
		</Panel>
	);
}

const NAMED = 5;

function names(list: readonly Run[]): string {
	const first = list.slice(0, NAMED).map((r) => s.nameOf(r.id, r)).join(', ');
	return first + (list.length > NAMED ? filled(Str.andXMore, list.length - NAMED) : '');
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
			(done) => (said.value = filled(Str.xOfX, done, list.length)));
		said.value = refused.length ? filled(Str.xRefusedX, count(refused.length, Str.run), refused[0]!.why)
			: `${to === null ? Str.RemovedFrom : Str.SetOn} ${count(list.length, Str.run)}`;
	};
	return (
		<Panel label={filled(Str.TagX, count(n, Str.run))} close={close}><form class="bulktag"
			onSubmit={(e) => {
			e.preventDefault();
			void begin(value.value);
		}}>
			<input aria-label={Str.Tag} placeholder={Str.Tag} list="bulkkeys" value={key.value}
				onInput={(e) => (key.value = e.currentTarget.value)} />
			<input aria-label={Str.Value} placeholder={Str.Value} value={value.value}
				onInput={(e) => (value.value = e.currentTarget.value)} />
			<datalist id="bulkkeys">{s.tagKeys.value.map((k) => <option key={k} value={k} />)}</datalist>
			<span class="options"><button type="submit" class="primary">{parts(Str.SetOnX, count(n,
				Str.run))}</button>
				<button type="button" onClick={() => void begin(null)}>{Str.Remove}</button></span>
			<span role="status" class="dim">{said.value}</span>
		</form></Panel>
	);
}

/** Target of a move: an existing experiment or a new name. */
function MoveForm({ close }: { close: () => void }) {
	const to = useSignal('');
	const others = (s.experiments.value ?? []).filter((e) => e.name !== s.experiment.value);
	return (
		<Panel label={Str.MoveToAnExperiment} close={close}><form class="bulktag" onSubmit={(e) => {
			e.preventDefault();
			const name = to.value.trim();
			if (!name) return;
			close();
			void act((l) => moveRuns(l, name));
		}}>
			<input aria-label={Str.ExperimentToMoveTo} placeholder={Str.Experiment} list="moveto"
				value={to.value} onInput={(e) => (to.value = e.currentTarget.value)} />
			<datalist id="moveto">{others.map((e) => <option key={e.id} value={e.name} />)}</datalist>
			<button type="submit" class="primary">{parts(Str.MoveX, count(s.chosenRuns.value.length,
				Str.run))}</button>
		</form></Panel>
	);
}

/** Further actions on the selected runs. */
function restOf(list: readonly Run[]): MenuItem[] {
	const away = list.filter(s.isArchived);
	const archive: MenuItem = { word: Str.Archive, icon: 'archive', act: () =>
		void act((l) => archiveRuns(l.filter((r) => !s.isArchived(r)), true)) };
	const unarchive: MenuItem = { word: Str.Unarchive, icon: 'archive', act: () =>
		void act(() => archiveRuns(away, false)) };
	const only = () => s.setShown(new Set(list.map((r) => r.id)));
	return [
		{ word: Str.ShowOnlyTheseInTheCharts, icon: 'eye', act: only },
		...away.length < list.length ? [archive] : [], ...away.length > 0 ? [unarchive] : [],
		{ word: Str.Delete, icon: 'trash', act: remove, danger: true },
	];
}

const open = { tag: signal(false), move: signal(false) };

function Actions(): ComponentChildren {
	const list = s.chosenRuns.value;
	const mayWrite = s.session.value?.mayWrite ?? true;
	const compared = list.length > 1 && list.length <= s.COMPARED_MAX;
	return (
		<>
			<button type="button" disabled={!compared} title={compared ? undefined
				: filled(Str.Select2ToXRuns, s.COMPARED_MAX)}
				onClick={() => s.compareRuns(list)}><Icon name="compare" />{Str.Compare}</button>
			{mayWrite && <Opener word={Str.Tag} icon="tag" open={open.tag} panel={(c) => <TagForm close={c}
				/>} />}
			{mayWrite && <Opener word={Str.Move} icon="move" open={open.move} panel={(c) => <MoveForm
				close={c} />} />}
			<button type="button" onClick={() => saveTable(s.experiment.value ?? 'runs', list)}>
				<Icon name="download" />{Str.Export}</button>
			{mayWrite && <Menu label={Str.MoreActions} items={restOf(list)} />}
		</>
	);
}

export function Bulk() {
	const list = s.chosenRuns.value;
	const hidden = s.selected.value.size - list.length;
	return (
		<div class="facts bulk" role="toolbar" aria-label={Str.SelectedRuns}>
			<b role="status">{parts(Str.xSelected, list.length)}</b>
			{hidden > 0 && <span class="dim">{parts(Str.xNotInTheTableNot, hidden)}</span>}
			<Actions />
			<button type="button" class="quiet" onClick={() => s.selectRuns([])}>{Str.Clear}</button>
			<span class="pop">{asking.value && <Ask close={() => (asking.value = false)} />}</span>
			{busy.value && <span class="dim" role="status">…</span>}
			{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}
		</div>
	);
}
