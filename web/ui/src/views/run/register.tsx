// SPDX-License-Identifier: Apache-2.0
// Registers a version of a model from a run, as MLflow's clients do.
import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { RunDetail } from '../../base/types.ts';
import { emptyView } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { loadModels, models, registerVersion } from '../../state/saved/registry.ts';
import { followed, Panel } from '../base/bits.tsx';

/** Number of versions registered on this page, for lists that show them. */
export const registrations = signal(0);

export function Register({ r, close }: { r: RunDetail; close: () => void }) {
	const folders = r.artifacts.filter((a) => a.folder).map((a) => a.path);
	const name = useSignal('');
	const path = useSignal(folders.includes('model') ? 'model' : folders[0] ?? '');
	const wrong = useSignal('');
	const done = useSignal<string | null>(null);
	useEffect(() => void loadModels(''), []);
	const save = async () => {
		try {
			const version = await registerVersion(name.value.trim(), r.id, path.value);
			done.value = `Version ${version} of ${name.value.trim()} is registered.`;
			registrations.value++;
		} catch (e) {
			wrong.value = (e as Error).message;
		}
	};
	const to = { ...emptyView, experiment: r.experiment, page: 'models' as const, model: name.value.trim() };
	return (
		<Panel label="Register model" close={close}>
			{done.value ? <><p role="status">{done.value}</p><p><a href={s.addressOf(to)}
				onClick={followed(() => s.go(to, true))}>Open the model</a></p></> : (
				<form class="bulktag" onSubmit={(e) => {
					e.preventDefault();
					void save();
				}}>
					<b>Register model</b>
					<input aria-label="Name of the model" placeholder="Name of the model"
						list="modelnames" value={name.value} onInput={(e) =>
							(name.value = e.currentTarget.value)} />
					<datalist id="modelnames">{models.value?.models.map((m) =>
						<option key={m.name} value={m.name} />)}</datalist>
					{folders.length > 0 && <label>Folder <select value={path.value}
						onChange={(e) => (path.value = e.currentTarget.value)}>
						{folders.map((f) => <option key={f} value={f}>{f}</option>)}</select>
							</label>}
					<p class="dim">{folders.length
						? 'The version points to this folder of the artifacts.' : 'The run has '
							+ 'no artifact folder: the version points to the run.'}</p>
					<span class="options"><button type="submit" class="primary"
						disabled={!name.value.trim()}>Register</button>
						<button type="button" onClick={close}>Cancel</button></span>
					{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}
				</form>)}
		</Panel>
	);
}
