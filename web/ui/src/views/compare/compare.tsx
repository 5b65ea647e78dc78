// The first screen: the runs of an experiment as a table (cards when narrow) and their charts, moving together.
import { computed, signal, useSignalEffect } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import * as s from '../../state/index.ts';
import { lazy } from '../base/lazy.tsx';
import { ChartGrid, Toolbar } from '../charts/grid.tsx';
import { Header } from '../header/header.tsx';
import { ROW } from '../table/row.tsx';
import { visibleRows } from '../table/rows.ts';
import { Table, tableHeight } from '../table/table.tsx';
import { Facts } from './facts.tsx';

const narrowQuery = matchMedia('(max-width: 720px)');
const narrow = signal(narrowQuery.matches);
narrowQuery.addEventListener('change', (e) => (narrow.value = e.matches));

const Grouped = lazy(() => import('../table/grouped.tsx').then((m) => m.Grouped));
const Cards = lazy(() => import('../table/cards.tsx').then((m) => m.Cards));
const StepTime = lazy(() => import('./steptime.tsx').then((m) => m.StepTime));
const NoRuns = lazy(() => import('./noruns.tsx').then((m) => m.NoRuns));
const Why = lazy(() => import('../why/why.tsx').then((m) => m.Why));

/** Share of the height that the table takes when all of its rows fit into it. */
const SHARE_WHOLE = 0.56;
/** Share that it takes, and scrolls in itself, when they do not. */
const SHARE_LONG = 0.4;
const SHARE_KEPT = 'dptrack-table';
/** What the reader has made of it with the handle, kept by the browser; null: nothing yet. */
const chosenShare = signal<number | null>(keptShare());
const tableShare = computed(() =>
	chosenShare.value ?? (tableHeight() <= SHARE_WHOLE * innerHeight ? SHARE_WHOLE : SHARE_LONG));
const SHARE_MIN = 0.15;
const SHARE_MAX = 0.9;
/** Runs at the top of the table whose phases are asked for. */
const PHASES_OF = 40;

function keptShare(): number | null {
	try {
		const kept = Number(localStorage.getItem(SHARE_KEPT));
		return kept > 0 && kept < 1 ? kept : null;
	} catch {
		return null;
	}
}

function setShare(to: number): void {
	chosenShare.value = Math.min(SHARE_MAX, Math.max(SHARE_MIN, to));
	try {
		localStorage.setItem(SHARE_KEPT, chosenShare.value.toFixed(3));
	} catch {
		// without storage it lasts as long as the page
	}
}

function Handle() {
	const drag = (e: PointerEvent) => {
		const el = e.currentTarget as HTMLElement;
		el.setPointerCapture(e.pointerId);
		const move = (m: PointerEvent) => setShare((m.clientY - 70) / (innerHeight - 44));
		el.addEventListener('pointermove', move);
		el.addEventListener('pointerup', () => el.removeEventListener('pointermove', move), { once: true });
	};
	return (
		<div class="handle" role="separator" aria-label="Height of the table" aria-orientation="horizontal"
			tabIndex={0}
			aria-valuenow={Math.round(tableShare.value * 100)} aria-valuemin={SHARE_MIN * 100}
			aria-valuemax={SHARE_MAX * 100} onPointerDown={drag}
			onKeyDown={(e) => {
				if (e.key !== 'ArrowUp' && e.key !== 'ArrowDown') return;
				e.preventDefault();
				setShare(tableShare.value + (e.key === 'ArrowUp' ? -0.05 : 0.05));
			}} />
	);
}

export function Compare() {
	useSignalEffect(() => s.wantPhases(visibleRows.value.slice(0, PHASES_OF)));
	useSignalEffect(() => {
		const h = Math.min(tableHeight(), Math.max(4 * ROW, Math.round(innerHeight * tableShare.value)));
		document.documentElement.style.setProperty('--table', h + 'px');
	});
	useEffect(() => {
		document.title = (s.experiment.value ?? 'runs') + ' · dptrack';
	});
	if (!s.runs.value.length)
		return (
			<>{s.loading.value ? <main class="wait" aria-busy="true" /> : <main><NoRuns /></main>}
				<Header /></>
		);
	return (
		<>
			<main class="tablepane">
				<Facts />
				{!s.rows.value.length ? <NoRuns /> : s.isGrouped.value ? <Grouped
					narrow={narrow.value} />
					: narrow.value ? <Cards /> : <Table />}
				{!narrow.value && <Handle />}
			</main>
			<Header />
			<section class="chartpane" aria-label="Charts">
				<Toolbar />
				<ChartGrid keys={s.metricKeys.value} after={<><Why /><StepTime /></>} />
			</section>
		</>
	);
}
