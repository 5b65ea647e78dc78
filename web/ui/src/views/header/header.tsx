// SPDX-License-Identifier: Apache-2.0
// Page header: location, filter, goal, columns, export, theme.
import { signal } from '@preact/signals';
import * as s from '../../state/index.ts';
import { Opener } from '../base/bits.tsx';
import { lazy } from '../base/lazy.tsx';
import { asking, useKey } from '../base/asking.ts';
import { picking } from '../table/focus.ts';
import { Brand } from './brand.tsx';
import { Filter } from './filter.tsx';

const Picker = lazy(() => import('../table/picker.tsx').then((m) => m.Picker));
const Tools = lazy(() => import('./tools.tsx').then((m) => m.Tools));
const Also = lazy(() => import('./tools.tsx').then((m) => m.Also));
const aiming = signal(false);
const Keys = lazy(() => import('./keys.tsx').then((m) => m.Keys));
const Choices = lazy(() => import('../base/chooser.tsx').then((m) => m.Choices));
/** With more goals, a search replaces the list. */
const GOALS_LISTED = 60;
/** Pages of one experiment. */
const OF_ONE: readonly string[] = ['compare', 'run', 'side', 'alerts'];

/** The experiment, as a choice of all. */
function Where() {
	const list = s.experiments.value;
	const here = s.experiment.value;
	const names = list ? list.map((e) => e.name) : [];
	if (here !== null && !names.includes(here)) names.unshift(here);
	return (
		<>
			<Brand />
			{OF_ONE.includes(s.view.value.page) && here !== null && (
				<select class="where" aria-label="Experiment" value={here}
					onChange={(e) => s.openExperiment(e.currentTarget.value)}>
					{names.map((n) => <option key={n} value={n}>{n}</option>)}
				</select>
			)}
			{s.view.value.page === 'compare' && <Also />}
		</>
	);
}

function setGoal(key: string): void {
	s.go({ goal: key, dir: null, sort: null, desc: false });
}

function GoalSelect() {
	const g = s.goal.value;
	const all = s.runs.value.length ? s.metricKeys.value : [...s.knownMetrics.value];
	const keys = all.filter((k) => !k.startsWith('phase/'));
	if (!keys.length) return null;
	return (
		<span class="goal"><span class="label" aria-hidden="true">Goal</span>
			{keys.length > GOALS_LISTED ? <Opener word={g?.key ?? 'Choose'} open={aiming}
				panel={(close) => <Choices name="Goal" list={keys.map((k) => ({ id: k, label: k }))}
					choose={setGoal} close={close} />} />
				: <select aria-label="Goal" value={g?.key ?? ''}
					onChange={(e) => setGoal(e.currentTarget.value)}>
					{g && !keys.includes(g.key) && <option value={g.key}>{g.key}</option>}
					{keys.map((k) => <option key={k} value={k}>{k}</option>)}
				</select>}
			{g && <button type="button" title="Whether higher or lower is better" onClick={() =>
				s.go({ goal: g.key, dir: g.dir === 'max' ? 'min' : 'max' })}>
				{g.dir === 'max' ? 'Max ↑' : g.dir ? 'Min ↓' : 'Max or min?'}</button>}
			{s.betterGoal.value && <button type="button" class="quiet new"
				title={`${s.betterGoal.value.key} has appeared since the page was opened`}
				onClick={() => setGoal(s.betterGoal.value!.key)}>{s.betterGoal.value.key}?</button>}
		</span>
	);
}

/** Puts the selected runs, or else the charted ones, side by side. */
function CompareRuns() {
	const chosen = s.chosenRuns.value.length ? s.chosenRuns.value : s.shown.value;
	const off = chosen.length < 2 || chosen.length > s.COMPARED_MAX;
	return (
		<button type="button" class="primary" disabled={off} title={off
			? `Select 2 to ${s.COMPARED_MAX} runs` : `${chosen.length} runs side by side`}
			onClick={() => s.compareRuns(chosen)}>Compare</button>
	);
}

export function Header() {
	const compare = s.view.value.page === 'compare';
	const any = compare && (s.runs.value.length > 0 || s.view.value.filter !== '');
	useKey('?', () => (asking.value = !asking.value));
	useKey('z', () => s.done.value && void s.undoLast(s.done.value));
	return (
		<header class="head">
			<Where />
			{any && <Filter />}
			{compare && <GoalSelect />}
			<span class="grow" />
			{any && <Opener word="Columns" icon="columns" open={picking}
				panel={(close) => <Picker close={close} />} />}
			{any && <Tools />}
			{any && <CompareRuns />}
			{asking.value && <Keys close={() => (asking.value = false)} />}
		</header>
	);
}
