// SPDX-License-Identifier: Apache-2.0
// Page header: location, filter, goal, columns, export, theme.
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import * as s from '../../state/index.ts';
import { directionOf } from '../../base/goal.ts';
import { followed, Opener } from '../base/bits.tsx';
import { selectIn } from '../base/focus.ts';
import { lazy } from '../base/lazy.tsx';
import { theme, toggleTheme } from '../base/theme.ts';

const picking = signal(false);
const Picker = lazy(() => import('../table/picker.tsx').then((m) => m.Picker));
const Tools = lazy(() => import('./tools.tsx').then((m) => m.Tools));
const aiming = signal(false);
/** The help on keys is open. */
const asking = signal(false);
const Keys = lazy(() => import('./keys.tsx').then((m) => m.Keys));
const GoalPicker = lazy(() => import('./goalpicker.tsx').then((m) => m.GoalPicker));
/** With more goals, a search replaces the list. */
const GOALS_LISTED = 60;
const FILTER_MS = 250;
const FILTER_HINT = 'Searches words in names, params, tags and notes. Or an expression: '
	+ 'params.lr = \'0.1\' AND metrics."epoch/top1".max > 0.9   ( / focuses this field )';

/** Link to all experiments, and choice of one. */
function Where() {
	const list = s.experiments.value;
	const here = s.experiment.value;
	const names = list ? list.map((e) => e.name) : [];
	if (here !== null && !names.includes(here)) names.unshift(here);
	return (
		<>
			<a class="brand" href="?all" onClick={followed(() => s.go({ page: 'experiments' }, true))}
				title="All experiments">
				<svg width="18" height="18" viewBox="0 0 16 16" aria-hidden="true">
					<path d="M1 3c4 9 7 9 14 10" class="b1" />
					<path d="M1 13C6 5 9 4 15 3" class="b2" />
				</svg>
				dptrack
			</a>
			{s.view.value.page !== 'experiments' && here !== null && (
				<select aria-label="Experiment" value={here}
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
				placeholder={'filter: words, or metrics."epoch/top1".max > 0.9'}
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
		<span class="goal"><label for="goal">goal</label>
			{keys.length > GOALS_LISTED ? <Opener word={g?.key ?? 'choose'} open={aiming}
				panel={(close) => <GoalPicker keys={keys} choose={setGoal} close={close} />} />
				: <select id="goal" value={g?.key ?? ''}
					onChange={(e) => setGoal(e.currentTarget.value)}>
					{g && !keys.includes(g.key)
						&& <option value={g.key}>{g.key}</option>}
					{keys.map((k) => <option key={k} value={k}>{k}</option>)}
				</select>}
			{g && <button type="button" title="better is higher or lower" onClick={() => s.go({ goal: g.key,
				dir: g.dir === 'max' ? 'min' : 'max' })}>{g.dir === 'max' ? 'max ↑' : 'min ↓'}</button>}
			{s.betterGoal.value && <button type="button" class="quiet new"
				title={`${s.betterGoal.value.key} has appeared since the page was opened`}
				onClick={() => setGoal(s.betterGoal.value!.key)}>{s.betterGoal.value.key}?</button>}
		</span>
	);
}

function signOut(): void {
	void s.endSession().then(() => location.reload(), s.report);
}

export function Header() {
	const compare = s.view.value.page === 'compare';
	useKey('?', () => (asking.value = !asking.value));
	return (
		<header class="head">
			<Where />
			{compare && <Filter />}
			{compare && <GoalSelect />}
			{compare
				&& <Opener word="columns" open={picking} panel={(close) => <Picker close={close} />} />}
			{compare && s.runs.value.length > 0 && <Tools />}
			<span class="grow" />
			{s.session.value?.signedIn && <button type="button" onClick={signOut}>sign out</button>}
			<button type="button" title="light or dark" aria-label={`Theme: ${theme()}`}
				onClick={toggleTheme}>
				{theme() === 'dark' ? '☀' : '☾'}
			</button>
			{asking.value && <Keys close={() => (asking.value = false)} />}
		</header>
	);
}
