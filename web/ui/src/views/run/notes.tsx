// SPDX-License-Identifier: Apache-2.0
// Notes of a run, rendered, and editable for users with write access.
import { signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Run } from '../../base/types.ts';
import { mayWrite } from '../../state/access.ts';
import * as s from '../../state/index.ts';
import { artifactAddress, changeRun } from '../../state/run.ts';
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

const draftOf = (r: Run) => 'dptrack-draft-' + r.id;

/** The unsaved text of a run's notes, kept in the browser; null: none. */
function readDraft(r: Run): string | null {
	try {
		return localStorage.getItem(draftOf(r));
	} catch {
		return null;
	}
}

function keepDraft(r: Run, text: string | null): void {
	try {
		if (text === null || text === r.notes) localStorage.removeItem(draftOf(r));
		else localStorage.setItem(draftOf(r), text);
	} catch {
		// without storage it is lost when the page is left
	}
}

/** Saves the text of a run's notes every second while it changes; a text that could not be saved remains as a draft. */
function useSaving(r: Run, changed: (r: Run) => void) {
	const text = useSignal(readDraft(r) ?? r.notes);
	const stored = useSignal(r.notes);
	const wrong = useSignal('');
	const timer = useRef(0);
	const queue = useRef(Promise.resolve());
	const write = async () => {
		const now = text.value;
		if (now === stored.value) return;
		try {
			const saved = await changeRun(r.id, { notes: now });
			stored.value = now;
			wrong.value = '';
			if (text.value === now) keepDraft(r, null);
			if (s.opened.value?.id === saved.id) changed(saved);
		} catch (e) {
			wrong.value = (e as Error).message;
		}
	};
	// one after the other, so that the last text is stored last
	const save = () => {
		clearTimeout(timer.current);
		timer.current = 0;
		return (queue.current = queue.current.then(write));
	};
	const type = (words: string) => {
		keepDraft(r, (text.value = words));
		timer.current ||= window.setTimeout(() => void save(), SAVE_MS);
	};
	useEffect(() => {
		void save(); // a draft of before
		return () => void save();
	}, []);
	return { text, stored, wrong, type, save };
}

function Editor({ r, changed, close }: { r: Run; changed: (r: Run) => void; close: () => void }) {
	const box = useRef<HTMLDivElement>(null);
	const before = useRef(r.notes);
	const { text, stored, wrong, type, save } = useSaving(r, changed);
	useFocus(box, ['textarea']);
	useEffect(() => box.current!.scrollIntoView({ block: 'nearest' }), []);
	const end = () => save().then(() => wrong.value || close());
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
				{!wrong.value && <span class="dim" role="status">{says}</span>}</span>
			{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}
		</div>
	);
}

/** The run whose notes are edited. */
export const edited = signal<string | null>(null);

export function Notes({ r, done }: { r: Run; done: (r: Run) => void }) {
	const may = mayWrite(r.experiment);
	const editing = may && edited.value === r.id;
	useEffect(() => () => void (edited.value = null), []);
	const draft = !editing && may && readDraft(r) !== null;
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
