// SPDX-License-Identifier: Apache-2.0
// Tags of a run: added, changed and removed in place by users with write access.
import { useSignal, type Signal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { Run } from '../../base/types.ts';
import { natural } from '../../base/format.ts';
import { mayWrite } from '../../state/access.ts';
import * as s from '../../state/index.ts';
import { changeTag, keyProblem } from '../../state/tagging.ts';
import { useFocus } from '../base/focus.ts';

/** A tag being edited; was: its key, null for a new tag. */
interface Draft {
	was: string | null;
	key: string;
	value: string;
	wrong: string;
}

interface FormOptions {
	draft: Draft;
	set: (d: Draft) => void;
	save: () => void;
	cancel: () => void;
}

function TagForm({ draft, set, save, cancel }: FormOptions) {
	const box = useRef<HTMLFormElement>(null);
	useFocus(box, [draft.was === null ? 'input' : 'input[name=value]']);
	return (
		<form class="tagform" ref={box} onSubmit={(e) => {
			e.preventDefault();
			save();
		}} onKeyDown={(e) => e.key === 'Escape' && cancel()}>
			{draft.was !== null ? <span class="dim">{draft.key}</span>
				: <input name="key" aria-label="Tag" placeholder="Tag" list="tagkeys"
					value={draft.key}
					onInput={(e) => set({ ...draft, key: e.currentTarget.value, wrong: '' })} />}
			<input name="value" aria-label="Value" placeholder="Value" value={draft.value}
				onInput={(e) => set({ ...draft, value: e.currentTarget.value, wrong: '' })} />
			<button type="submit">Save</button>
			<button type="button" class="quiet" onClick={cancel}>Cancel</button>
			{draft.wrong && <span class="problem" role="alert">{draft.wrong}</span>}
			<datalist id="tagkeys">{s.tagKeys.value.map((k) => <option key={k} value={k} />)}</datalist>
		</form>
	);
}

/** A tag; change and remove are undefined if read-only. */
function Tag({ k, v, change, remove }: { k: string; v: string; change?: () => void; remove?: () => void }) {
	return (
		<>
			<dt>{k}</dt>
			<dd><span>{v}</span>{change && <span class="acts">
				<button type="button" class="quiet" aria-label={`Change ${k}`}
					onClick={change}>Edit</button>
				<button type="button" class="quiet" aria-label={`Remove ${k}`}
					onClick={remove}>Remove</button>
			</span>}</dd>
		</>
	);
}

/** The last refusal, with a retry. */
interface Refusal {
	text: string;
	again: () => void;
}

async function change(r: Run, key: string, value: string | null, refused: Signal<Refusal | null>): Promise<void> {
	refused.value = null;
	const [no] = await changeTag([r.id], key, value);
	if (no) refused.value = {
		text: `“${key}” was not ${value === null ? 'removed' : 'saved'}: ${no.why}`,
		again: () => void change(r, key, value, refused),
	};
}

export function Tags({ r }: { r: Run }) {
	const draft = useSignal<Draft | null>(null);
	const refused = useSignal<Refusal | null>(null);
	const may = mayWrite(r.experiment);
	const tags = Object.entries(s.tagsOf(r)).filter(([k]) => !s.isReserved(k)).sort((a, b) => natural(a[0], b[0]));
	if (!tags.length && !may) return null;
	const begin = (was: string | null, value = '') => () =>
		(draft.value = { was, key: was ?? '', value, wrong: '' });
	const save = () => {
		const d = draft.value!;
		const wrong = d.was === null ? keyProblem(d.key) : '';
		if (wrong) draft.value = { ...d, wrong };
		else {
			draft.value = null;
			void change(r, d.key.trim(), d.value, refused);
		}
	};
	const form = () => <TagForm draft={draft.value!} set={(d) => (draft.value = d)} save={save}
		cancel={() => (draft.value = null)} />;
	const acts = (k: string, v: string) =>
		(may ? { change: begin(k, v), remove: () => void change(r, k, null, refused) } : {});
	return (
		<section class="box tags">
			<h2>Tags {may && draft.value?.was !== null && (
				<button type="button" class="quiet" aria-label="Add a tag"
					onClick={begin(null)}>Add</button>
			)}</h2>
			{draft.value?.was === null && form()}
			<dl class="pairs">{tags.map(([k, v]) => (
				<div key={k}>{draft.value?.was === k ? <dd class="whole">{form()}</dd>
					: <Tag k={k} v={v} {...acts(k, v)} />}</div>
			))}</dl>
			{!tags.length && draft.value === null && <p class="dim">No tags yet</p>}
			{refused.value && <p class="problem" role="alert">{refused.value.text} <button type="button"
				onClick={refused.value.again}>Try again</button></p>}
		</section>
	);
}
