// SPDX-License-Identifier: Apache-2.0
// Deleted experiments and runs, which can be restored; administrators remove them for good.
import { useEffect } from 'preact/hooks';
import { bytes, count, when } from '../../base/format.ts';
import { changes } from '../../state/access.ts';
import * as s from '../../state/index.ts';
import { gone, loadTrash, purge, restore, restoreAll, trash, type Gone } from '../../state/saved/experiments.ts';
import { followed, useLoaded } from '../base/bits.tsx';
import { AskButton, List, useAct, type Column } from '../base/lists/list.tsx';
import { Header } from '../header/header.tsx';

const COLUMNS: readonly Column<Gone>[] = [
	{ head: 'Name', cell: (g) => g.kind === 'run' ? <a href={s.runAddress(g.id)}
		onClick={followed(() => s.openRun(g.id))}>{g.name}</a> : g.name },
	{ head: 'What', cell: (g) => g.kind === 'run' ? `run of ${g.experiment}` : 'experiment, with its runs' },
	{ head: 'Began', cell: (g) => when(g.began), num: true, wide: true },
	{ head: 'Deleted', cell: (g) => when(g.deleted), num: true },
];

/** The bytes of their files, by a dry run. */
function Frees({ list }: { list: readonly Gone[] }) {
	const { value, wrong } = useLoaded(() => purge(list, true), []);
	return <p role="status">{wrong || (value === null ? '…' :
		`Points, params and ${bytes(value)} of files go. It cannot be undone.`)}</p>;
}

function Deleted() {
	const { act, said } = useAct();
	const list = gone.value;
	const own = list?.filter((g) => g.may === 'admin') ?? [];
	const runs = list?.filter((g) => g.kind === 'run' && changes(g.may)) ?? [];
	return (
		<>
			<List label="Deleted things" rows={list} id={(g) => g.id} columns={COLUMNS}
				texts={(g) => [g.name, g.experiment]} none="The trash is empty."
				acts={(g) => changes(g.may) && <><button type="button" class="quiet"
					aria-label={`Restore ${g.name}`} onClick={() => act(() => restore(g.kind,
						g.id))}>
					Restore</button>
					{g.may === 'admin' && <AskButton label="Delete for ever" word="Delete for ever"
						title={`Delete ${g.name} for ever?`} act={() => act(() => purge([g],
							false))}>
						<Frees list={[g]} /></AskButton>}</>} />
			<p class="options">{runs.length > 1 && <button type="button" onClick={() => act(restoreAll)}>
				Restore all {count(runs.length, 'run')}</button>}
				{own.length > 1 && <AskButton label="Empty the trash" word="Delete for ever"
					title={`Delete all ${own.length} for ever?`} act={() => act(() => purge(own,
						false))}>
					<Frees list={own} /></AskButton>}</p>
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
