// SPDX-License-Identifier: Apache-2.0
// Notes of a run, rendered, and editable for users with write access.
import { signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Run } from '../../base/types.ts';
import { mayWrite } from '../../state/access.ts';
import { keepDraft, readDraft, storedBy, wordOfEditing } from '../../state/draft.ts';
import * as s from '../../state/index.ts';
import { artifactAddress, changeRun } from '../../state/run.ts';
import { Conflict } from '../base/conflict.tsx';
import { useFocus } from '../base/focus.ts';
import { lazy } from '../base/lazy.tsx';

const Markdown = lazy(() => import('../base/markdown.tsx').then((m) => m.Markdown));
const ROWS_MIN = 5;
const ROWS_MAX = 20;
/** How long a change of notes waits, also while typing continues. */
const SAVE_MS = 1000;

/** Resolves once notes can be drawn. */
export function notesReady(): Promise<void> {
	return Markdown.ahead();
}

/** Address of an image in a note: one of the run's artifacts, or none. */
function imageOf(r: Run, src: string): string | null {
	return /^[a-z]+:|^[/#]/i.test(src) ? null : artifactAddress(r.id, src);
}

/** What another author stored while these notes were edited. */
interface Theirs {
	text: string;
	etag: string;
}

/** Saves the text of a run's notes every second while it changes; a text that could not be saved remains as a draft,
 * and one of another author is not replaced. */
function useSaving(r: Run, changed: (r: Run) => void) {
	const draft = readDraft(r.id);
	const text = useSignal(draft?.text ?? r.notes);
	const stored = useSignal(r.notes);
	const wrong = useSignal('');
	const theirs = useSignal<Theirs | null>(null);
	const seen = useRef(draft?.etag ?? r.notes_etag);
	const editing = useRef(wordOfEditing());
	const timer = useRef(0);
	const queue = useRef(Promise.resolve());
	const write = async () => {
		const now = text.value;
		if (now === stored.value || theirs.value) return;
		try {
			const saved = await changeRun(r.id, { notes: now, editing: editing.current }, seen.current);
			stored.value = now;
			seen.current = saved.notes_etag;
			wrong.value = '';
			if (text.value === now) keepDraft(r.id, null);
			if (s.opened.value?.id === saved.id) changed(saved);
		} catch (e) {
			const has = storedBy(e as Error);
			if (has) theirs.value = { text: String(has.notes), etag: String(has.notes_etag) };
			else wrong.value = (e as Error).message;
		}
	};
	// one after the other, so that the last text is stored last
	const save = () => {
		clearTimeout(timer.current);
		timer.current = 0;
		return (queue.current = queue.current.then(write));
	};
	const type = (words: string) => {
		text.value = words;
		keepDraft(r.id, words === stored.value ? null : { text: words, etag: seen.current });
		timer.current ||= window.setTimeout(() => void save(), SAVE_MS);
	};
	/** Ends a conflict with this text in place of theirs. */
	const settle = (words: string) => {
		const t = theirs.value!;
		seen.current = t.etag;
		stored.value = t.text;
		theirs.value = null;
		type(words);
		return save();
	};
	useEffect(() => {
		void save(); // a draft of before
		return () => void save();
	}, []);
	return { text, stored, wrong, theirs, type, save, settle };
}

function Editor({ r, changed, close }: { r: Run; changed: (r: Run) => void; close: () => void }) {
	const box = useRef<HTMLDivElement>(null);
	const before = useRef(r.notes);
	const { text, stored, wrong, theirs, type, save, settle } = useSaving(r, changed);
	useFocus(box, ['textarea']);
	useEffect(() => box.current!.scrollIntoView({ block: 'nearest' }), []);
	const end = () => save().then(() => wrong.value || theirs.value || close());
	const says = text.value !== stored.value ? 'Saving …' : text.value !== before.current ? 'Saved'
		: 'Saved while you type.';
	const rows = Math.min(ROWS_MAX, Math.max(ROWS_MIN, text.value.split('\n').length + 1));
	return (
		<div ref={box} tabIndex={-1} onKeyDown={(e) => {
			if ((e.key === 'Enter' && (e.ctrlKey || e.metaKey)) || e.key === 'Escape') void end();
		}}>
			<textarea aria-label="Notes" rows={rows} value={text.value} placeholder="Markdown"
				onInput={(e) => type(e.currentTarget.value)} />
			<span class="options">
				<button type="button" class="primary" onClick={() => void end()}>Done</button>
				{text.value !== before.current && <button type="button" onClick={() => {
					type(before.current);
					void end();
				}}>Undo changes</button>}
				{!wrong.value && !theirs.value && <span class="dim" role="status">{says}</span>}</span>
			{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}
			{theirs.value && <Conflict what="These notes" base={before.current} mine={text.value}
				theirs={theirs.value.text} save={(words) => void settle(words)}
				drop={() => void settle(theirs.value!.text)} />}
		</div>
	);
}

/** The run whose notes are edited. */
export const edited = signal<string | null>(null);

export function Notes({ r, done }: { r: Run; done: (r: Run) => void }) {
	const may = mayWrite(r.experiment);
	const editing = may && edited.value === r.id;
	useEffect(() => () => void (edited.value = null), []);
	const draft = !editing && may && readDraft(r.id) !== null;
	return (
		<section class="box notes">
			<h2>Notes {may && !editing && <button type="button" class="quiet"
				title="Edit the notes (e)" aria-keyshortcuts="e" onClick={() => (edited.value = r.id)}>
				{draft ? 'Continue draft' : r.notes ? 'Edit' : 'Add'}</button>}</h2>
			{editing ? <Editor r={r} changed={done} close={() => (edited.value = null)} />
				: !r.notes ? <p class="dim">
					{draft ? 'An unsaved draft is kept in this browser.' : 'No notes yet'}</p>
				: <Markdown text={r.notes} meanwhile={<pre>{r.notes}</pre>}
					imageOf={(src) => imageOf(r, src)} />}
		</section>
	);
}
