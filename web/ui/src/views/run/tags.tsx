// A run's tags on its page: added, changed and removed in place by those who may write; readers see the words alone.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Run } from '../../base/types.ts';
import { natural } from '../../base/format.ts';
import * as s from '../../state/index.ts';

/** A tag as it is being written; was is the key of the one that is changed, null for a new one. */
interface Draft {
	was: string | null;
	key: string;
	value: string;
	wrong: string;
}

/** Why a key cannot be; '' when it can. */
export function keyProblem(key: string): string {
	if (key.trim() === '') return 'A tag needs a name.';
	return s.isReserved(key) ? 'Names that begin with “mlflow.” belong to MLflow\'s clients.' : '';
}

export function TagForm({ draft, set, save, cancel }: { draft: Draft; set: (d: Draft) => void; save: () => void; cancel: () => void }) {
	const box = useRef<HTMLFormElement>(null);
	useEffect(() => box.current?.querySelector<HTMLElement>(draft.was === null ? 'input' : 'input[name=value]')?.focus(), []);
	return (
		<form class="tagform" ref={box} onSubmit={(e) => {
			e.preventDefault();
			save();
		}} onKeyDown={(e) => e.key === 'Escape' && cancel()}>
			{draft.was === null ? <input name="key" aria-label="Tag" placeholder="tag" list="tagkeys" value={draft.key}
				onInput={(e) => set({ ...draft, key: e.currentTarget.value, wrong: '' })} /> : <span class="dim">{draft.key}</span>}
			<input name="value" aria-label="Value" placeholder="value" value={draft.value}
				onInput={(e) => set({ ...draft, value: e.currentTarget.value, wrong: '' })} />
			<button type="submit">save</button>
			<button type="button" class="quiet" onClick={cancel}>cancel</button>
			{draft.wrong && <span class="problem" role="alert">{draft.wrong}</span>}
			<datalist id="tagkeys">{s.tagKeys.value.map((k) => <option key={k} value={k} />)}</datalist>
		</form>
	);
}

export function Tags({ r }: { r: Run }) {
	const draft = useSignal<Draft | null>(null);
	/** What the server refused last, with what to try again. */
	const refused = useSignal<{ text: string; again: () => void } | null>(null);
	const mayWrite = s.session.value?.mayWrite === true;
	const tags = Object.entries(s.tagsOf(r)).filter(([k]) => !s.isReserved(k)).sort((a, b) => natural(a[0], b[0]));
	if (!tags.length && !mayWrite) return null;
	const change = async (key: string, value: string | null) => {
		refused.value = null;
		const [no] = await s.changeTag([r.id], key, value);
		if (no) refused.value = { text: `“${key}” was not ${value === null ? 'removed' : 'saved'}: ${no.why}`, again: () => void change(key, value) };
	};
	const save = () => {
		const d = draft.value!;
		const wrong = d.was === null ? keyProblem(d.key) : '';
		if (wrong) draft.value = { ...d, wrong };
		else {
			draft.value = null;
			void change(d.key.trim(), d.value);
		}
	};
	const form = () => <TagForm draft={draft.value!} set={(d) => (draft.value = d)} save={save} cancel={() => (draft.value = null)} />;
	return (
		<section class="box tags">
			<h2>Tags {mayWrite && draft.value?.was !== null && <button type="button" class="quiet" aria-label="add a tag"
				onClick={() => (draft.value = { was: null, key: '', value: '', wrong: '' })}>add</button>}</h2>
			{draft.value?.was === null && form()}
			<dl class="pairs">{tags.map(([k, v]) => (
				<div key={k}>{draft.value?.was === k ? <dd class="whole">{form()}</dd> : <>
					<dt>{k}</dt>
					<dd><span>{v}</span>{mayWrite && <span class="acts">
						<button type="button" class="quiet" aria-label={`change ${k}`} onClick={() => (draft.value = { was: k, key: k, value: v, wrong: '' })}>change</button>
						<button type="button" class="quiet" aria-label={`remove ${k}`} onClick={() => void change(k, null)}>remove</button>
					</span>}</dd>
				</>}</div>
			))}</dl>
			{!tags.length && draft.value === null && <p class="dim">none</p>}
			{refused.value && <p class="problem" role="alert">{refused.value.text} <button type="button" onClick={refused.value.again}>try again</button></p>}
		</section>
	);
}
