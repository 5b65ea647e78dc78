// The first screen: the runs of an experiment as a table (cards when narrow) and their charts, moving together.
import { signal, useSignalEffect } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import * as s from '../../state/index.ts';
import { count } from '../../base/format.ts';
import { fellOut } from '../../base/goal.ts';
import { Empty } from '../base/bits.tsx';
import { lazy } from '../base/lazy.tsx';
import { Cards } from '../table/cards.tsx';
import { Header } from '../header/header.tsx';
import { ChartGrid, Toolbar } from '../charts/grid.tsx';
import { visibleRows } from '../table/columns.tsx';
import { wantPhases } from '../base/phases.tsx';
import { StepTime } from './steptime.tsx';
import { ROW, Table, tableHeight } from '../table/table.tsx';

const narrowQuery = matchMedia('(max-width: 720px)');
export const narrow = signal(narrowQuery.matches);
narrowQuery.addEventListener('change', (e) => (narrow.value = e.matches));

const Parallel = lazy(() => import('./parallel.tsx').then((m) => m.Parallel));

/** Share of the height that the table may take before it scrolls in itself; moved with the handle. */
const tableShare = signal(0.56);
const SAME_SHOWN = 14;

/** One line: how many runs, how many need a look, what is the same in all. */
function Facts() {
	const list = s.rows.value;
	const all = s.runs.value.length;
	const by = (f: (r: (typeof list)[number]) => boolean) => list.filter(f).length;
	const failed = by((r) => r.status === 'failed');
	const lost = by((r) => r.status !== 'failed' && fellOut(r));
	const running = by((r) => r.status === 'running');
	const { differ, same } = s.split.value;
	const on = s.shown.value.length;
	const text = same.map(([k, v]) => `${k} ${v}`).join(' · ');
	return (
		<p class="facts">
			<b>{list.length === all ? count(all, 'run') : `${list.length} of ${count(all, 'run')}`}</b>
			{s.loadingMore.value && <span>more are coming</span>}
			{s.notHeld.value && <span>the newest ones; a filter such as <code>params.lr = 0.1</code> reaches the others</span>}
			{running > 0 && <span class="running">{running} running</span>}
			{failed > 0 && <span class="failed">{failed} failed</span>}
			{lost > 0 && <span class="nan">{lost} diverged</span>}
			{on < list.length && <span>{on} in the charts <button type="button" class="quiet"
				onClick={() => s.setShown(new Set(list.slice(0, 100).map((r) => r.id)))}>{list.length <= 100 ? 'show all' : 'show 100'}</button></span>}
			{s.haveParents.value && <button type="button" class="quiet" aria-pressed={s.view.value.nest}
				onClick={() => s.go({ nest: !s.view.value.nest })}>{s.view.value.nest ? 'in one list' : 'below their parents'}</button>}
			{s.view.value.shown !== null && <button type="button" class="quiet" onClick={() => s.setShown(null)}>default choice</button>}
			<span class="same" title={text}>
				{all < 2 ? '' : same.length ? <>same in all: {same.slice(0, SAME_SHOWN).map(([k, v]) => (
					<span key={k}>{k.replace(/_/g, ' ')} <b>{v.length > 24 ? v.slice(0, 23) + '…' : v}</b> </span>
				))}{same.length > SAME_SHOWN && `+ ${same.length - SAME_SHOWN} more`}</> : differ.length ? differ.length === 1 ? 'the one param differs' : `all ${differ.length} params differ` : ''}
			</span>
		</p>
	);
}

function NoRuns() {
	const name = s.experiment.value ?? 'first';
	return (
		<Empty title={s.view.value.filter ? 'No run matches the filter' : 'No runs yet'}>
			{s.view.value.filter ? <button type="button" onClick={() => s.go({ filter: '' })}>clear the filter</button> : (
				<>
					<p>Start one beside the served folder; it appears here by itself:</p>
					<pre>dptrain --experiment {name} --model resnet20 --data-path DATA</pre>
					<p>Event files that TensorBoard reads can be put below the served folder too.</p>
				</>
			)}
		</Empty>
	);
}

function Handle() {
	const drag = (e: PointerEvent) => {
		const el = e.currentTarget as HTMLElement;
		el.setPointerCapture(e.pointerId);
		const move = (m: PointerEvent) => (tableShare.value = Math.min(0.9, Math.max(0.15, (m.clientY - 70) / (innerHeight - 44))));
		el.addEventListener('pointermove', move);
		el.addEventListener('pointerup', () => el.removeEventListener('pointermove', move), { once: true });
	};
	return (
		<div class="handle" role="separator" aria-label="Height of the table" aria-orientation="horizontal" tabIndex={0}
			aria-valuenow={Math.round(tableShare.value * 100)} aria-valuemin={15} aria-valuemax={90} onPointerDown={drag}
			onKeyDown={(e) => {
				if (e.key !== 'ArrowUp' && e.key !== 'ArrowDown') return;
				e.preventDefault();
				tableShare.value = Math.min(0.9, Math.max(0.15, tableShare.value + (e.key === 'ArrowUp' ? -0.05 : 0.05)));
			}} />
	);
}

/** Opens the parallel coordinates; there must be something to compare. */
function ParamsAndGoal() {
	const open = s.view.value.parallel;
	if (s.rows.value.length < 2 || !s.split.value.differ.length) return null;
	return (
		<section class="group" aria-label="Params and goal">
			<h2><button type="button" class="quiet" aria-expanded={open} onClick={() => s.go({ parallel: !open })}>
				<span aria-hidden="true">{open ? '▾' : '▸'}</span> params and goal <span class="dim">{s.rows.value.length}</span></button></h2>
			{open && <Parallel meanwhile={<div class="card chart parallel" />} />}
		</section>
	);
}

export function Compare() {
	useSignalEffect(() => wantPhases(visibleRows.value.slice(0, 40)));
	useSignalEffect(() => {
		const h = Math.min(tableHeight(), Math.max(4 * ROW, Math.round(innerHeight * tableShare.value)));
		document.documentElement.style.setProperty('--table', h + 'px');
	});
	useEffect(() => {
		document.title = (s.experiment.value ?? 'runs') + ' · dptrack';
	});
	if (!s.runs.value.length) return <>{s.loading.value ? <main class="wait" aria-busy="true" /> : <main><NoRuns /></main>}<Header /></>;
	return (
		<>
			<main class="tablepane">
				<Facts />
				{!s.rows.value.length ? <NoRuns /> : narrow.value ? <Cards /> : <Table />}
				{!narrow.value && <Handle />}
			</main>
			<Header />
			<section class="chartpane" aria-label="Charts">
				<Toolbar />
				<ChartGrid keys={s.metricKeys.value} after={<><ParamsAndGoal /><StepTime /></>} />
			</section>
		</>
	);
}
