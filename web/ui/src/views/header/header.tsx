// The line above everything: where one is, the filter, the goal, columns, export, theme.
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import * as api from '../../state/api.ts';
import * as s from '../../state/index.ts';
import { directionOf } from '../../base/goal.ts';
import { theme, toggleTheme } from '../base/bits.tsx';
import { lazy } from '../base/lazy.tsx';
import { Picker } from '../table/picker.tsx';

const picking = signal(false);
const tagging = signal(false);
const BulkTag = lazy(() => import('./bulktag.tsx').then((m) => m.BulkTag));
const FILTER_MS = 250;

function link(patch: Parameters<typeof s.go>[0], e: MouseEvent): void {
	if (e.ctrlKey || e.metaKey || e.shiftKey) return;
	e.preventDefault();
	s.go(patch, true);
}

function Places() {
	const list = s.experiments.value;
	const here = s.experiment.value;
	const names = list ? list.map((e) => e.name) : [];
	if (here !== null && !names.includes(here)) names.unshift(here);
	return (
		<>
			<a class="brand" href="?all" onClick={(e) => link({ page: 'experiments' }, e)} title="All experiments">
				<svg width="18" height="18" viewBox="0 0 16 16" aria-hidden="true">
					<path d="M1 3c4 9 7 9 14 10" class="b1" /><path d="M1 13C6 5 9 4 15 3" class="b2" />
				</svg>
				dptrack
			</a>
			{s.view.value.page !== 'experiments' && here !== null && (
				<select aria-label="Experiment" value={here} onChange={(e) => s.openExperiment(e.currentTarget.value)}>
					{names.map((n) => <option key={n} value={n}>{n}</option>)}
				</select>
			)}
		</>
	);
}

function Filter() {
	const box = useRef<HTMLInputElement>(null);
	const timer = useRef(0);
	useEffect(() => {
		const key = (e: KeyboardEvent) => {
			const t = e.target as HTMLElement;
			if (e.key !== '/' || e.ctrlKey || e.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(t.tagName)) return;
			e.preventDefault();
			box.current?.focus();
			box.current?.select();
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	}, []);
	const wrong = s.filterProblem.value;
	return (
		<span class="filter">
			<input ref={box} type="search" aria-label="Filter runs" placeholder={'filter: words, or metrics."epoch/top1".max > 0.9'}
				title={'Words are looked for in names, params, tags and notes. Or an expression: params.lr = \'0.1\' AND metrics."epoch/top1".max > 0.9   ( / comes here )'}
				value={s.view.value.filter} aria-invalid={wrong !== null} onInput={(e) => {
					const text = e.currentTarget.value;
					clearTimeout(timer.current);
					timer.current = window.setTimeout(() => s.go({ filter: text }), FILTER_MS);
				}} onKeyDown={(e) => {
					if (e.key === 'Escape') {
						e.currentTarget.value = '';
						s.go({ filter: '' });
						document.querySelector<HTMLElement>('.grid [tabindex="0"]')?.focus();
					}
				}} />
			{wrong !== null && <span class="problem" role="alert">{wrong}</span>}
		</span>
	);
}

function GoalPick() {
	const g = s.goal.value;
	const keys = s.metricKeys.value.filter((k) => !k.startsWith('phase/'));
	if (!keys.length) return null;
	return (
		<label class="goal">goal
			<select value={g?.key ?? ''} onChange={(e) => {
				const key = e.currentTarget.value;
				s.go({ goal: key, dir: directionOf(key), sort: null, desc: false });
			}}>
				{g && !keys.includes(g.key) && <option value={g.key}>{g.key}</option>}
				{keys.map((k) => <option key={k} value={k}>{k}</option>)}
			</select>
			{g && <button type="button" title="better is higher or lower" onClick={() => s.go({ goal: g.key,
				dir: g.dir === 'max' ? 'min' : 'max' })}>{g.dir === 'max' ? 'max ↑' : 'min ↓'}</button>}
		</label>
	);
}

export function Header() {
	const compare = s.view.value.page === 'compare';
	const here = s.experiment.value;
	return (
		<header class="head">
			<Places />
			{compare && <Filter />}
			{compare && <GoalPick />}
			{compare && (
				<span class="pop">
					<button type="button" aria-expanded={picking.value} onClick={() => (picking.value = !picking.value)}>columns</button>
					{picking.value && <Picker close={() => (picking.value = false)} />}
				</span>
			)}
			{compare && s.session.value?.mayWrite === true && s.runs.value.length > 0 && (
				<span class="pop">
					<button type="button" aria-expanded={tagging.value} onClick={() => (tagging.value = !tagging.value)}>tag</button>
					{tagging.value && <BulkTag close={() => (tagging.value = false)} />}
				</span>
			)}
			<span class="grow" />
			{compare && here !== null && <a class="button" href={api.exportAddress(here)} download>CSV</a>}
			{s.session.value?.signedIn && <button type="button" onClick={() => void api.endSession().then(() => location.reload(), s.report)}>sign out</button>}
			<button type="button" title="light or dark" aria-label={`Theme: ${theme()}`} onClick={toggleTheme}>
				{theme() === 'dark' ? '☀' : '☾'}
			</button>
		</header>
	);
}
