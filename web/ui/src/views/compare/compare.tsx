// SPDX-License-Identifier: Apache-2.0
// First screen: runs of an experiment as a table (cards if narrow) with linked charts.
import { signal, useSignalEffect } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import * as s from '../../state/index.ts';
import { lazy } from '../base/lazy.tsx';
import { ChartGrid, Toolbar } from '../charts/grid.tsx';
import { Header } from '../header/header.tsx';
import { setShare, SHARE_MAX, SHARE_MIN, tableHeight, tableShare } from '../table/height.ts';
import { visibleRows } from '../table/rows.ts';
import { Table } from '../table/table.tsx';
import { Facts } from './facts.tsx';

const narrowQuery = matchMedia('(max-width: 720px)');
const narrow = signal(narrowQuery.matches);
narrowQuery.addEventListener('change', (e) => (narrow.value = e.matches));

const Grouped = lazy(() => import('../table/grouped.tsx').then((m) => m.Grouped));
const Cards = lazy(() => import('../table/cards.tsx').then((m) => m.Cards));
const StepTime = lazy(() => import('./steptime.tsx').then((m) => m.StepTime));
const NoRuns = lazy(() => import('./noruns.tsx').then((m) => m.NoRuns));
const HeadMenu = lazy(() => import('../table/headmenu.tsx').then((m) => m.HeadMenu));
const Bulk = lazy(() => import('../header/bulk.tsx').then((m) => m.Bulk));
const Why = lazy(() => import('../analysis/why.tsx').then((m) => m.Why));

/** Number of runs at the top of the table whose phases are requested. */
const PHASES_OF = 40;
const SCROLL_PX = 300;

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

function scrollColumns(): void {
	document.querySelector('.grid')!.scrollBy({ left: SCROLL_PX });
}

export function Compare() {
	const name = s.shownExperiments.value.join(' + ');
	useSignalEffect(() => s.wantPhases(visibleRows.value.slice(0, PHASES_OF)));
	useSignalEffect(() => {
		document.documentElement.style.setProperty('--table', tableHeight() + 'px');
	});
	useEffect(() => {
		document.title = `${name || 'runs'} · dptrack`;
	});
	const heading = <h1 class="unseen">{name || 'Runs'}</h1>;
	const any = s.rows.value.length > 0;
	if (!s.runs.value.length && (s.loading.value || s.view.value.filter === ''))
		return <>{s.loading.value ? <main key="wait" class="wait" aria-busy="true" />
			: <main>{heading}<NoRuns /></main>}<Header /></>;
	return (
		<>
			<main class="tablepane">
				{heading}
				<Facts />
				{!any ? <NoRuns /> : s.isGrouped.value ? <Grouped
					narrow={narrow.value} />
					: narrow.value ? <Cards /> : <Table />}
				<button type="button" class="more" tabIndex={-1} aria-label="More columns"
					onClick={scrollColumns}>›</button>
				{s.chosenRuns.value.length > 0 && <Bulk />}
				{any && !narrow.value && <Handle />}
				{s.menuOf.value && <HeadMenu />}
			</main>
			<Header />
			{any && <section class="chartpane" aria-label="Charts">
				<Toolbar />
				<ChartGrid keys={s.metricKeys.value} after={<><Why /><StepTime /></>} />
			</section>}
		</>
	);
}
