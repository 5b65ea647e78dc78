// SPDX-License-Identifier: Apache-2.0
// Saved views of the experiment: open, share by link; users with write access save, rename, delete and set the default.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { mayWrite } from '../../state/access.ts';
import * as s from '../../state/index.ts';
import { deleteView, isChanged, preferView, renameView, replaceView, saveView } from '../../state/saved/saved.ts';
import { loadSaved, savedNow, savedViews, type Saved } from '../../state/saved/saved.ts';
import { mayShare } from '../../state/shares.ts';
import { emptyView, PLAIN } from '../../base/url.ts';
import { followed, Panel } from '../base/bits.tsx';
import { NameForm } from '../base/nameform.tsx';
import { ShareForm } from '../base/share.tsx';
import '../base/later.ts';

interface LineOptions {
	v: Saved;
	/** Runs an action and shows the server's refusal. */
	act: (what: () => Promise<void>) => void;
	/** Deletes it; can be undone. */
	remove: () => void;
}

function Acts({ v, act, remove, rename }: LineOptions & { rename: () => void }) {
	return (
		<span class="savedacts">
			<button type="button" class="quiet" aria-pressed={v.preferred}
				aria-label={`Show as default: ${v.name}`}
				title={v.preferred ? 'The experiment opens with this view'
					: 'Let the experiment open with it'}
				onClick={() => act(() => preferView(v, !v.preferred))}>
				{v.preferred ? '★ Default' : 'Show as default'}</button>
			<button type="button" class="quiet" aria-label={`Rename ${v.name}`}
				onClick={rename}>Rename</button>
			<button type="button" class="quiet" aria-label={`Delete ${v.name}`} onClick={remove}>✕</button>
		</span>
	);
}

function Line(o: LineOptions) {
	const { v } = o;
	const naming = useSignal(false);
	const sharing = useSignal(false);
	const here = s.view.value.saved === v.id;
	const may = mayWrite(s.experiment.value);
	if (naming.value)
		return <li><NameForm was={v.name} close={() => (naming.value = false)}
			save={(name) => renameView(v, name)} /></li>;
	return (
		<li class="savedline">
			<a href={`?v=${v.id}`} aria-current={here ? 'page' : undefined}
				onClick={followed(() => s.openSaved(v))}>{v.name}</a>
			{!may && v.preferred && <span class="dim">★ Default</span>}
			{here && isChanged(v) && may && <button type="button"
				title="The saved view becomes what is on the screen"
				onClick={() => o.act(() => replaceView(v))}>Update</button>}
			{mayShare.value && <button type="button" class="quiet" aria-expanded={sharing.value}
				aria-label={`Share ${v.name}`}
				onClick={() => (sharing.value = !sharing.value)}>Share</button>}
			{may && <Acts {...o} rename={() => (naming.value = true)} />}
			{sharing.value && <ShareForm kind="view" target={[v.id]} />}
		</li>
	);
}

function SaveForm({ act }: Pick<LineOptions, 'act'>) {
	const name = useSignal('');
	return (
		<form class="tagform" onSubmit={(e) => {
			e.preventDefault();
			if (name.value.trim() === '') return;
			act(async () => {
				await saveView(name.value.trim());
				name.value = '';
			});
		}}>
			<input aria-label="Name of the view" placeholder="Save this view as …" value={name.value}
				onInput={(e) => (name.value = e.currentTarget.value)} />
			<button type="submit" disabled={name.value.trim() === ''}>Save</button>
		</form>
	);
}

/** Opens the experiment without its views. */
export function WithoutView() {
	const plain = { ...emptyView, experiment: s.experiment.value, saved: PLAIN };
	return <a href={s.addressOf(plain)} onClick={followed(() => s.go(plain, true))}>Without a view</a>;
}

export function SavedViews({ close }: { close: () => void }) {
	const said = useSignal('');
	const undo = useSignal<{ name: string; again: () => Promise<void> } | null>(null);
	useEffect(() => void loadSaved(), [s.experiment.value]);
	const act = (what: () => Promise<void>) => {
		said.value = '';
		undo.value = null;
		what().catch((e: unknown) => (said.value = (e as Error).message));
	};
	const remove = (v: Saved) => act(async () => {
		undo.value = { name: v.name, again: await deleteView(v) };
	});
	const list = savedViews.value;
	const now = savedNow();
	return (
		<Panel label="Saved views" close={close}>
			{mayWrite(s.experiment.value) && <SaveForm act={act} />}
			{said.value && <p class="problem" role="alert">{said.value}</p>}
			{undo.value && <p class="dim" role="status">{undo.value.name} is deleted. <button
				type="button" onClick={() => act(undo.value!.again)}>Undo</button></p>}
			<ul class="files">{list?.map((v) => (
				<Line key={v.id} v={v} act={act} remove={() => remove(v)} />))}</ul>
			{list && !list.length && <p class="dim">No view of this experiment is saved. A saved view keeps
				runs, columns, charts, panels, groups and zoom; its link opens it alike for others.</p>}
			{(now || list?.some((v) => v.preferred)) && <WithoutView />}
		</Panel>
	);
}
