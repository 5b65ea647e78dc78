// SPDX-License-Identifier: Apache-2.0
// Notes of a run, rendered, and editable for users with write access.
import { useSignal } from '@preact/signals';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { artifactAddress, changeRun } from '../../state/run.ts';
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

function Editor({ r, done }: { r: Run; done: (r: Run) => void }) {
	const text = useSignal(r.notes);
	const wrong = useSignal('');
	const save = async () => {
		try {
			done(await changeRun(r.id, { notes: text.value }));
		} catch (e) {
			wrong.value = (e as Error).message;
		}
	};
	const rows = Math.min(ROWS_MAX, Math.max(ROWS_MIN, text.value.split('\n').length + 1));
	return (
		<>
			<textarea aria-label="Notes" rows={rows} value={text.value}
				onInput={(e) => (text.value = e.currentTarget.value)} />
			<button type="button" onClick={() => void save()}>save</button>
			{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}
			<span class="dim"> Markdown</span>
		</>
	);
}

export function Notes({ r, done }: { r: Run; done: (r: Run) => void }) {
	const editing = useSignal(false);
	const word = editing.value ? 'cancel' : r.notes ? 'edit' : 'add';
	const saved = (changed: Run) => {
		done(changed);
		editing.value = false;
	};
	return (
		<section class="box notes">
			<h2>Notes {s.session.value?.mayWrite === true && <button type="button" class="quiet"
				onClick={() => (editing.value = !editing.value)}>{word}</button>}</h2>
			{editing.value ? <Editor r={r} done={saved} />
				: !r.notes ? <p class="dim">none</p>
				: <Markdown text={r.notes} meanwhile={<pre>{r.notes}</pre>}
					imageOf={(src) => imageOf(r, src)} />}
		</section>
	);
}
