// SPDX-License-Identifier: Apache-2.0
// Page header: location, filter, goal, columns, export, theme.
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import * as s from '../../state/index.ts';
import { directionOf } from '../../base/goal.ts';
import { Opener } from '../base/bits.tsx';
import { selectIn } from '../base/focus.ts';
import { lazy } from '../base/lazy.tsx';
import { asking } from './asking.ts';
import { Brand } from './brand.tsx';

const picking = signal(false);
const Picker = lazy(() => import('../table/picker.tsx').then((m) => m.Picker));
const Tools = lazy(() => import('./tools.tsx').then((m) => m.Tools));
const aiming = signal(false);
const Keys = lazy(() => import('./keys.tsx').then((m) => m.Keys));
const GoalPicker = lazy(() => import('./goalpicker.tsx').then((m) => m.GoalPicker));
/** With more goals, a search replaces the list. */
const GOALS_LISTED = 60;
const FILTER_MS = 250;
const FILTER_HINT = 'Searches words in names, params, tags and notes. Or an expression: '
	+ 'params.lr > 0.1 AND metrics."epoch/top1".max > 0.9   ( / focuses this field )';
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
		</>
	);
}

/** Binds a key, unless a text field has the focus. */
function useKey(which: string, act: () => void): void {
	useEffect(() => {
		const key = (e: KeyboardEvent) => {
			const t = e.target as HTMLElement;
			if (e.key !== which || e.ctrlKey || e.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(t.tagName))
				return;
			e.preventDefault();
			act();
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	}, []);
}

function Filter() {
	const box = useRef<HTMLInputElement>(null);
	const timer = useRef(0);
	const before = useRef<Element | null>(null);
	useKey('/', () => {
		before.current = document.activeElement;
		selectIn(box.current);
	});
	const leave = () => {
		clearTimeout(timer.current); // discard the pending input
		s.go({ filter: '' });
		const grid = document.querySelector<HTMLElement>('.grid [tabindex="0"]');
		const back = before.current instanceof HTMLElement && before.current.isConnected
			&& before.current !== document.body ? before.current : grid;
		back?.focus();
	};
	const wrong = s.filterProblem.value;
	return (
		<span class="filter">
			<input ref={box} type="search" aria-label="Filter runs"
				placeholder="Words, or params.lr > 0.1"
				title={FILTER_HINT} value={s.view.value.filter} aria-invalid={wrong !== null}
				onInput={(e) => {
					const text = e.currentTarget.value;
					clearTimeout(timer.current);
					timer.current = window.setTimeout(() => s.go({ filter: text }), FILTER_MS);
				}} onKeyDown={(e) => {
					if (e.key !== 'Escape') return;
					e.currentTarget.value = '';
					leave();
				}} />
			{wrong !== null && <span class="problem" role="alert">{wrong}</span>}
		</span>
	);
}

function setGoal(key: string): void {
	s.go({ goal: key, dir: directionOf(key), sort: null, desc: false });
}

function GoalSelect() {
	const g = s.goal.value;
	const keys = s.metricKeys.value.filter((k) => !k.startsWith('phase/'));
	if (!keys.length) return null;
	return (
		<span class="goal"><span class="label" aria-hidden="true">Goal</span>
			{keys.length > GOALS_LISTED ? <Opener word={g?.key ?? 'Choose'} open={aiming}
				panel={(close) => <GoalPicker keys={keys} choose={setGoal} close={close} />} />
				: <select aria-label="Goal" value={g?.key ?? ''}
					onChange={(e) => setGoal(e.currentTarget.value)}>
					{g && !keys.includes(g.key)
						&& <option value={g.key}>{g.key}</option>}
					{keys.map((k) => <option key={k} value={k}>{k}</option>)}
				</select>}
			{g && <button type="button" title="Whether higher or lower is better" onClick={() =>
				s.go({ goal: g.key,
				dir: g.dir === 'max' ? 'min' : 'max' })}>{g.dir === 'max' ? 'Max ↑' : 'Min ↓'}</button>}
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
		<button type="button" class={'primary' + (s.chosenRuns.value.length ? ' unshown' : '')} disabled={off
			|| s.isGrouped.value}
			title={off ? `Select 2 to ${s.COMPARED_MAX} runs` : `${chosen.length} runs side by side`}
			onClick={() => s.compareRuns(chosen)}>Compare</button>
	);
}

export function Header() {
	const compare = s.view.value.page === 'compare';
	const any = compare && s.runs.value.length > 0;
	useKey('?', () => (asking.value = !asking.value));
	return (
		<header class="head">
			<Where />
			{compare && <Filter />}
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
