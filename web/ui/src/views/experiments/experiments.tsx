// SPDX-License-Identifier: Apache-2.0
// List of experiments, most recently written first; users with write access rename and delete them.
import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
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
import '../base/later.ts';

/** Pixels of indent per level. */
const INDENT = 18;
/** Initial number of rows, and number of experiments from which they can be searched. */
const FIRST_ROWS = 100;
const SEARCHED_FROM = 5;
/** The default experiment, which cannot be deleted. */
const FIRST = '0';

/** Renames or deletes an experiment; shows the server's refusal. */
function Acts({ e, rename, wrong }: { e: Experiment; rename: () => void; wrong: (why: string) => void }) {
	const remove = () => deleteExperiment(e).catch((x: Error) => wrong(`It was not deleted: ${x.message}`));
	const away = () => archiveExperiment(e, !e.archived).catch((x: Error) => wrong(x.message));
	return <Menu label={`More for ${e.name}`} items={[
		{ word: 'Rename', icon: 'edit', act: rename },
		{ word: e.archived ? 'Unarchive' : 'Archive', icon: 'archive', act: () => void away() },
		{ word: 'Delete', icon: 'trash', act: () => void remove(), danger: true },
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

/** A plain folder. */
function FolderLine({ b }: { b: Branch }) {
	return (
		<tr class="folder">
			<td style={{ paddingLeft: b.depth * INDENT + 'px' }}><Fold b={b} /> {b.name}/{' '}
				<span class="dim">{count(b.below, 'experiment')}</span></td>
			<td class="num">{b.runs}</td><td class="num good">{b.running || ''}</td>
			<td class="num bad">{b.failed || ''}</td><td class="num" />
			<td class="num">{when(b.last)}</td><td />
		</tr>
	);
}

function Line({ e, b }: { e: Experiment; b: Branch }) {
	const naming = useSignal(false);
	const wrong = useSignal('');
	const mayChange = s.session.value?.mayWrite === true && e.id !== FIRST;
	return (
		<tr>
			<td style={{ paddingLeft: b.depth * INDENT + 'px' }}>{b.below > 0 && <><Fold b={b} />{' '}</>}
				{naming.value ? <NameForm was={e.name} close={() => (naming.value = false)}
				save={(name) => renameExperiment(e, name)} />
				: <a href={s.addressOf({ ...emptyView, experiment: e.name })}
					onClick={followed(() => s.openExperiment(e.name))} title={e.name}>{b.name}</a>}
				{wrong.value && <span class="problem" role="alert"> {wrong.value}</span>}
				{e.description && <div class="dim about"
					title={e.description}>{firstWords(e.description)}</div>}</td>
			<td class="num">{e.run_count}</td><td class="num good">{e.running_count || ''}</td>
			<td class="num bad">{e.failed_count || ''}</td><td class="num"><BestCell e={e} /></td>
			<td class="num">{when(e.last_time)}</td>
			<td>{mayChange && <Acts e={e} rename={() => (naming.value = true)}
				wrong={(why) => (wrong.value = why)} />}</td>
		</tr>
	);
}

function List({ list }: { list: readonly Experiment[] }) {
	const most = useSignal(FIRST_ROWS);
	const found = list.filter((e) => matchesWords(words.value, [e.name]));
	const rows = treeOf(found, words.value ? new Set() : folded.value);
	return (
		<div class="box"><table>
			<thead><tr><th>Name</th><th>Runs</th><th>Running</th><th>Failed</th>
				<th>Best</th><th>Last change</th>
				<th><span class="unseen">More</span></th></tr></thead>
			<tbody>{rows.slice(0, most.value).map((b) => (b.experiment
				? <Line key={b.experiment.id} e={b.experiment} b={b} /> : <FolderLine key={b.path}
					b={b} />))}</tbody>
		</table>
		{rows.length > most.value && <button type="button" onClick={() => (most.value += FIRST_ROWS)}>
			{count(rows.length - most.value, 'more line')}</button>}
		{!rows.length && <p class="dim">No experiment contains “{words.value}”.</p>}</div>
	);
}

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
		<><main class="experiments">
			<h1>Experiments</h1>
			{used.length > SEARCHED_FROM && <p><input type="search"
				placeholder={`Find among ${used.length} experiments`}
				aria-label="Find an experiment" value={words.value}
				onInput={(e) => (words.value = e.currentTarget.value)} /></p>}
			{used.length ? here.length > 0 && <List list={here} />
				: <FirstRun title="No experiments yet" />}
			{away.length > 0 && <section class="group" aria-label="Archive">
				<GroupHead open={archive.value} name="Archive"
					toggle={() => (archive.value = !archive.value)}
					count={count(away.length, 'experiment')} />
				{archive.value && <List list={away} />}</section>}
		</main><Header /></>
	);
}
