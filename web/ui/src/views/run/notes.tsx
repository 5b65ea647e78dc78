// SPDX-License-Identifier: Apache-2.0
// Notes of a run, rendered, and editable for users with write access.
import { signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { artifactAddress, changeRun } from '../../state/run.ts';
import { Str } from '../../strings/en.ts';
import { useFocus } from '../base/focus.ts';
import { lazy } from '../base/lazy.tsx';

const Markdown = lazy(() => import('../base/markdown.tsx').then((m) => m.Markdown));
const ROWS_MIN = 5;
const ROWS_MAX = 20;

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

function Editor({ r, done, close }: { r: Run; done: (r: Run) => void; close: () => void }) {
	const box = useRef<HTMLDivElement>(null);
	const text = useSignal(readDraft(r) ?? r.notes);
	const wrong = useSignal('');
	useFocus(box, ['textarea']);
	useEffect(() => box.current!.scrollIntoView({ block: 'nearest' }), []);
	const save = async () => {
		try {
			const changed = await changeRun(r.id, { notes: text.value });
			keepDraft(r, null);
			done(changed);
		} catch (e) {
			wrong.value = (e as Error).message;
		}
	};
	const rows = Math.min(ROWS_MAX, Math.max(ROWS_MIN, text.value.split('\n').length + 1));
	return (
		<div ref={box} tabIndex={-1} onKeyDown={(e) => {
			if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) void save();
			if (e.key === 'Escape') close();
		}}>
			<textarea aria-label={Str.Notes} rows={rows} value={text.value} placeholder={Str.Markdown}
				onInput={(e) => keepDraft(r, (text.value = e.currentTarget.value))} />
			<span class="options"><button type="button" class="primary" onClick={() =>
				void save()}>{Str.Save}</button>
				<button type="button" onClick={() => {
					keepDraft(r, null);
					close();
				}}>{Str.Discard}</button>
				<span class="dim">{Str.DraftsAreKeptInThisBrowser}</span></span>
			{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}
		</div>
	);
}

/** The run whose notes are edited. */
export const edited = signal<string | null>(null);

export function Notes({ r, done }: { r: Run; done: (r: Run) => void }) {
	const mayWrite = s.session.value?.mayWrite === true;
	const editing = mayWrite && edited.value === r.id;
	useEffect(() => () => void (edited.value = null), []);
	const draft = !editing && mayWrite && readDraft(r) !== null;
	const saved = (changed: Run) => {
		done(changed);
		edited.value = null;
	};
	return (
		<section class="box notes">
			<h2>{Str.Notes} {mayWrite && !editing && <button type="button" class="quiet" title="e"
				aria-keyshortcuts="e" onClick={() => (edited.value = r.id)}>{draft ? Str.ContinueDraft
					: r.notes ? Str.Edit : Str.Add}</button>}</h2>
			{editing ? <Editor r={r} done={saved} close={() => (edited.value = null)} />
				: !r.notes ? <p class="dim">{draft ? Str.AnUnsavedDraftIsKept
					: Str.NoNotesYet}</p>
				: <Markdown text={r.notes} meanwhile={<pre>{r.notes}</pre>}
					imageOf={(src) => imageOf(r, src)} />}
		</section>
	);
}
