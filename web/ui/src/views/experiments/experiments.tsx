// SPDX-License-Identifier: Apache-2.0
// List of experiments, most recently written first; users with write access rename and delete them.
import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { mayWrite } from '../../state/access.ts';
import * as s from '../../state/index.ts';
import { archiveExperiment, deleteExperiment, renameExperiment } from '../../state/saved/experiments.ts';
import { count, when } from '../../base/format.ts';
import { treeOf, type Branch } from '../../base/tree.ts';
import type { Experiment } from '../../base/types.ts';
import { emptyView, matchesWords } from '../../base/url.ts';
import { followed, GroupHead } from '../base/bits.tsx';
import { Header } from '../header/header.tsx';
import { NameForm } from '../base/nameform.tsx';
import { firstWords } from '../base/says.ts';
import { Menu } from '../base/menu.tsx';
import { FirstRun } from '../compare/noruns.tsx';
import { BestCell } from './best.tsx';
import { Find, List, useAct, type Column } from '../base/lists/list.tsx';

/** Pixels of indent per level. */
const INDENT = 18;
/** The default experiment, which cannot be deleted. */
const FIRST = '0';

/** Renames, archives or deletes an experiment. */
function Acts({ e, rename, act }: { e: Experiment; rename: () => void; act: (what: () => Promise<void>) => void }) {
	return <Menu label={`More for ${e.name}`} items={[
		{ word: 'Rename', icon: 'edit', act: rename },
		{ word: e.archived ? 'Unarchive' : 'Archive', icon: 'archive',
			act: () => act(() => archiveExperiment(e, !e.archived)) },
		{ word: 'Delete', icon: 'trash', act: () => act(() => deleteExperiment(e)), danger: true },
	]} />;
}

/** Folded folders. */
const folded = signal<ReadonlySet<string>>(new Set());
const words = signal('');
/** Archived experiments are listed. */
const archive = signal(false);

function toggle(path: string): void {
	const set = new Set(folded.value);
	if (!set.delete(path)) set.add(path);
	folded.value = set;
}

/** Row of a folder, with totals. */
function Fold({ b }: { b: Branch }) {
	const open = !folded.value.has(b.path);
	return <button type="button" class="quiet" aria-expanded={open}
		aria-label={`${b.path}: ${count(b.below, 'experiment')}`}
		onClick={() => toggle(b.path)}>{open ? '▾' : '▸'}</button>;
}

/** The name, which can be changed, and the description. */
function NameCell({ e, b, naming, close }: { e: Experiment; b: Branch; naming: boolean; close: () => void }) {
	return (
		<>
			{b.below > 0 && <><Fold b={b} />{' '}</>}
			{naming ? <NameForm was={e.name} close={close} save={(name) => renameExperiment(e, name)} />
				: <a href={s.addressOf({ ...emptyView, experiment: e.name })}
					onClick={followed(() => s.openExperiment(e.name))} title={e.name}>{b.name}</a>}
			{e.description && <div class="dim about"
				title={e.description}>{firstWords(e.description)}</div>}
		</>
	);
}

function ExperimentList({ list }: { list: readonly Experiment[] }) {
	const naming = useSignal('');
	const { act, said } = useAct();
	const found = list.filter((e) => matchesWords(words.value, [e.name]));
	const columns: Column<Branch>[] = [
		{ head: 'Name', cell: (b) => <div style={{ paddingLeft: b.depth * INDENT + 'px' }}>{b.experiment
			? <NameCell e={b.experiment} b={b} naming={naming.value === b.path}
				close={() => (naming.value = '')} />
			: <><Fold b={b} /> {b.name}/ <span class="dim">{count(b.below,
				'experiment')}</span></>}</div> },
		{ head: 'Runs', cell: (b) => b.experiment?.run_count ?? b.runs, num: true },
		{ head: 'Running', cell: (b) => <Count n={b.experiment?.running_count ?? b.running} kind="good" />,
			num: true },
		{ head: 'Failed', cell: (b) => <Count n={b.experiment?.failed_count ?? b.failed} kind="bad" />, num:
			true },
		{ head: 'Best', cell: (b) => b.experiment && <BestCell e={b.experiment} />, num: true },
		{ head: 'Last change', cell: (b) => when(b.experiment ? b.experiment.last_time : b.last), num: true,
			wide: true },
	];
	return (
		<>
			{said}
			<List label="Experiments" rows={treeOf(found, words.value ? new Set() : folded.value)}
				id={(b) => b.experiment?.id ?? b.path} columns={columns}
				none={`No experiment contains “${words.value}”.`}
				acts={({ experiment: e, path }) => e && e.id !== FIRST && mayWrite(e.name) && <Acts
					e={e}
					rename={() => (naming.value = path)} act={act} />} />
		</>
	);
}

const Count = ({ n, kind }: { n: number; kind: string }) => (n ? <span class={kind}>{n}</span> : null);

export function Experiments() {
	useEffect(() => {
		document.title = 'Experiments · dptrack';
	}, []);
	const list = s.experiments.value;
	const rev = s.liveRev.value;
	const empty = list?.every((e) => e.run_count === 0 && e.id === FIRST) ?? false;
	useEffect(() => {
		if (empty && rev > 0) void s.loadExperiments(); // the first run has begun
	}, [empty, rev]);
	if (!list) return <><main key="wait" class="wait" aria-busy="true" /><Header /></>;
	const used = list.filter((e) => e.run_count > 0 || e.id !== FIRST)
		.sort((a, b) => (b.last_time ?? 0) - (a.last_time ?? 0));
	const away = used.filter((e) => e.archived);
	const here = used.filter((e) => !e.archived);
	return (
		<><main class="page experiments">
			<h1>Experiments</h1>
			<Find label="Experiments" n={used.length} words={words} />
			{used.length ? here.length > 0 && <ExperimentList list={here} />
				: <FirstRun title="No experiments yet" />}
			{away.length > 0 && <section class="group" aria-label="Archive">
				<GroupHead open={archive.value} name="Archive"
					toggle={() => (archive.value = !archive.value)}
					count={count(away.length, 'experiment')} />
				{archive.value && <ExperimentList list={away} />}</section>}
		</main><Header /></>
	);
}
