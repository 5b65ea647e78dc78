// SPDX-License-Identifier: Apache-2.0
// Deleted experiments and runs, which can be restored until gc removes them.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import * as s from '../../state/index.ts';
import { loadTrash, restore, restoreAll, trash } from '../../state/saved/experiments.ts';
import { when } from '../../base/format.ts';
import { followed } from '../base/bits.tsx';
import { Header } from '../header/header.tsx';
import '../base/later.ts';

interface LineOptions {
	kind: 'experiment' | 'run';
	id: string;
	name: string;
	children: ComponentChildren;
}

function Line({ kind, id, name, children }: LineOptions) {
	const wrong = useSignal('');
	const back = () => restore(kind, id).catch((e: Error) => (wrong.value = e.message));
	return (
		<tr>
			<td>{children} {wrong.value && <span class="problem" role="alert">{wrong.value}</span>}</td>
			<td>{s.session.value?.mayWrite === true && <button type="button" class="quiet"
				aria-label={`Restore ${name}`}
					onClick={() => void back()}>Restore</button>}</td>
		</tr>
	);
}

/** Restores all of them. */
function All({ n }: { n: number }) {
	const wrong = useSignal('');
	const back = () => restoreAll().catch((e: Error) => (wrong.value = e.message));
	return <p><button type="button" onClick={() => void back()}>Restore all {n} runs</button>
		{wrong.value && <span class="problem" role="alert"> {wrong.value}</span>}</p>;
}

function Deleted() {
	const t = trash.value;
	if (!t) return <p class="dim">…</p>;
	if (!t.experiments.length && !t.runs.length) return <p class="dim">The trash is empty.</p>;
	return (
		<div class="box"><table><tbody>
			{t.experiments.map((e) => (
				<Line key={e.id} kind="experiment" id={e.id} name={e.name}>
					{e.name} <span class="dim">experiment, with its runs</span></Line>
			))}
			{t.runs.map((r) => (
				<Line key={r.id} kind="run" id={r.id} name={r.name}>
					<a href={s.runAddress(r.id)}
						onClick={followed(() => s.openRun(r.id))}>{r.name}</a>
					{' '}<span class="dim">{r.experiment}, {when(r.start_time)};
						{' '}deleted {when(r.deleted_time)}</span></Line>
			))}
		</tbody></table>{t.runs.length > 1 && s.session.value?.mayWrite && <All n={t.runs.length} />}
		{t.more && <p class="dim">There are more; these are the newest.</p>}</div>
	);
}

export function TrashPage() {
	useEffect(() => {
		document.title = 'Trash · dptrack';
		void loadTrash();
	}, []);
	return <><main class="page trash"><h1>Trash</h1>
		<p class="dim">Deleted experiments and runs. They can be restored until <code>
			dptrack gc</code> removes them.</p>
		<Deleted /></main><Header /></>;
}
