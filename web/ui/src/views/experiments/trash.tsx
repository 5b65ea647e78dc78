// SPDX-License-Identifier: Apache-2.0
// Deleted experiments and runs, which can be restored; administrators remove them for good.
import { useEffect } from 'preact/hooks';
import { count, when } from '../../base/format.ts';
import { changes } from '../../state/access.ts';
import * as s from '../../state/index.ts';
import { gone, loadTrash, restore, restoreAll, trash, type Gone } from '../../state/saved/experiments.ts';
import { followed } from '../base/bits.tsx';
import { List, useAct, type Column } from '../base/lists/list.tsx';
import { Header } from '../header/header.tsx';

const COLUMNS: readonly Column<Gone>[] = [
	{ head: 'Name', cell: (g) => g.kind === 'run' ? <a href={s.runAddress(g.id)}
		onClick={followed(() => s.openRun(g.id))}>{g.name}</a> : g.name },
	{ head: 'What', cell: (g) => g.kind === 'run' ? `run of ${g.experiment}` : 'experiment, with its runs' },
	{ head: 'Began', cell: (g) => when(g.began), num: true, wide: true },
	{ head: 'Deleted', cell: (g) => when(g.deleted), num: true },
];

function Deleted() {
	const { act, said } = useAct();
	const list = gone.value;
	const runs = list?.filter((g) => g.kind === 'run' && changes(g.may)) ?? [];
	return (
		<>
			<List label="Deleted things" rows={list} id={(g) => g.id} columns={COLUMNS}
				texts={(g) => [g.name, g.experiment]} none="The trash is empty."
				acts={(g) => changes(g.may) && <button type="button" class="quiet"
					aria-label={`Restore ${g.name}`} onClick={() => act(() => restore(g.kind,
						g.id))}>
					Restore</button>} />
			{runs.length > 1 && <p><button type="button" onClick={() => act(restoreAll)}>
				Restore all {count(runs.length, 'run')}</button></p>}
			{said}
			{trash.value?.more && <p class="dim">There are more; these are the newest.</p>}
		</>
	);
}

export function TrashPage() {
	useEffect(() => {
		document.title = 'Trash · dptrack';
		void loadTrash();
	}, []);
	return <><main class="page trash"><h1>Trash</h1>
		<p class="dim">Deleted experiments and runs. They can be restored until they are removed for good, here,
			by a retention rule or by <code>dptrack gc</code>.</p>
		<Deleted /></main><Header /></>;
}
