// SPDX-License-Identifier: Apache-2.0
// Page of one run: metadata, metrics, charts, step time by rank, notes.
import { useSignal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { natural } from '../../base/format.ts';
import type { Run, RunDetail } from '../../base/types.ts';
import { matchesWords } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { getRun } from '../../state/run.ts';
import { Empty } from '../base/bits.tsx';
import { lazy } from '../base/lazy.tsx';
import { Bar, PhaseLegend, phasesOf, shares } from '../base/phases.tsx';
import { ChartGrid, Toolbar } from '../charts/grid.tsx';
import { Header } from '../header/header.tsx';
import { Artifacts } from './artifacts.tsx';
import { Facts } from './facts.tsx';
import { Family } from './family.tsx';
import { Files } from './files.tsx';
import { Head } from './head.tsx';
import { Metrics } from './metrics.tsx';
import { Notes, notesReady } from './notes.tsx';
import { RankBars } from './rankbars.tsx';
import { RankCharts } from './rankcharts.tsx';
import { Ranks } from './ranks.tsx';
import { Registered } from './registered.tsx';
import { Source } from './source.tsx';
import { Speed, Traced } from './speed.tsx';
import { Tags } from './tags.tsx';
import '../base/later.ts';

const Media = lazy(() => import('../records/media.tsx').then((m) => m.Media));
const Console = lazy(() => import('../records/console.tsx').then((m) => m.Console));
const Code = lazy(() => import('../records/code.tsx').then((m) => m.Code));
const Alerts = lazy(() => import('../records/code.tsx').then((m) => m.Alerts));

/** With more pairs, a search field is shown. */
const SEARCHED_FROM = 8;

function Pairs({ title, pairs, mark }: { title: string; pairs: [string, string][]; mark?: Set<string> }) {
	const words = useSignal('');
	if (!pairs.length) return null;
	const found = pairs.filter(([k, v]) => matchesWords(words.value, [k, v]));
	return (
		<section class="box">
			<h2>{title}</h2>
			{pairs.length > SEARCHED_FROM && <p><input type="search"
				placeholder={`find among ${pairs.length}`} value={words.value}
				aria-label={`Find in ${title.replace(/ \(.*/, '')}`}
				onInput={(e) => (words.value = e.currentTarget.value)} /></p>}
			{!found.length && <p class="dim">nothing holds “{words.value}”</p>}
			<dl class="pairs">
				{found.map(([k, v]) => (
					<div key={k} class={mark?.has(k) ? 'differs' : ''}><dt>{k}</dt>
						<dd title={v}>{v}</dd></div>
				))}
			</dl>
		</section>
	);
}

function Phases({ r }: { r: Run }) {
	const ranks = s.rankPhases(r.id);
	const own = phasesOf(r);
	if (!ranks?.length && !own) return null;
	return (
		<section class="box">
			<h2>Time of a step{ranks && ranks.length > 1 ? ' by rank, mean' : ''}</h2>
			{ranks?.length ? <RankBars ranks={ranks} /> : own && (
				<>
					<Bar segments={own} label={shares(own)} />
					<PhaseLegend names={own.map((p) => p.name)} />
				</>
			)}
		</section>
	);
}

/** Journal records that could not be applied. */
function Problems({ r }: { r: RunDetail }) {
	if (!r.problems.length) return null;
	return (
		<section class="box">
			<h2 class="bad">Journal records that could not be applied</h2>
			<ul class="files">{r.problems.map((p) => <li key={p}>{p}</li>)}</ul>
		</section>
	);
}

/** Loads the run with an id prefix, again as it changes; returns it, or the error. */
function useRun(id: string): { run: RunDetail | null; wrong: string } {
	const [wrong, setWrong] = useState('');
	const rev = s.liveRev.value;
	useEffect(() => {
		let here = true;
		getRun(id).then(async (r) => {
			if (r.notes) await notesReady();
			if (!here) return;
			s.opened.value = r;
			setWrong('');
			if (s.view.value.experiment !== r.experiment) s.go({ experiment: r.experiment });
			s.wantPhases([r]);
		}, (e) => here && setWrong((e as Error).message));
		return () => {
			here = false;
		};
	}, [id, rev]);
	return { run: s.opened.value?.id.startsWith(id) ? s.opened.value : null, wrong };
}

/** Params; those that differ between runs come first. */
function Params({ r }: { r: Run }) {
	const order = s.split.value.differ;
	const at = (k: string) => (order.includes(k) ? order.indexOf(k) : order.length);
	const pairs = Object.entries(r.params).sort((a, b) => at(a[0]) - at(b[0]) || natural(a[0], b[0]));
	return <Pairs title={order.length ? 'Params (those that differ between runs first)' : 'Params'} pairs={pairs}
		mark={new Set(order)} />;
}

function Boxes({ run }: { run: RunDetail }) {
	return (
		<div class="boxes">
			<Notes r={run} done={(r) => (s.opened.value = { ...run, ...r })} />
			<Speed r={run} key={'speed ' + run.id} />
			<Phases r={run} />
			<Family r={run} key={run.id} />
			<Registered id={run.id} key={'registered ' + run.id} />
			<Alerts r={run} />
			<Problems r={run} />
			<Source r={run} />
			<Params r={run} />
			<Metrics r={run} />
			<Code r={run} />
			<Artifacts r={run} key={`${run.id} ${run.artifacts.length}`} />
			<Files r={run} key={'files ' + run.id} />
			<Pairs title="Environment" pairs={Object.entries(run.environment)} />
			<Tags r={run} key={run.id} />
		</div>
	);
}

export function RunPage({ id }: { id: string }) {
	const { run, wrong } = useRun(id);
	useEffect(() => {
		if (run) document.title = `${run.name} · ${run.experiment} · dptrack`;
	}, [run]);
	useEffect(() => {
		// after the frame in which charts detect their visibility
		if (run) requestAnimationFrame(() => setTimeout(s.chartsPlaced));
	}, [run?.id]);
	if (wrong) return <><main><Empty title="This run cannot be shown"><p>{wrong}</p></Empty></main><Header /></>;
	if (!run) return <><main class="wait" aria-busy="true" /><Header /></>;
	return (
		<>
			<main class="runpage">
				<Head r={run} key={run.id} />
				<Facts r={run} />
				<Boxes run={run} />
			</main>
			<Header />
			<section class="chartpane" aria-label="Charts">
				<Toolbar />
				<ChartGrid keys={Object.keys(run.metrics).sort()}
					after={<><Traced r={run} key={'t' + run.id} /><Media r={run}
						key={'m' + run.id} /><Ranks r={run} />
						<RankCharts r={run} key={run.id} /><Console r={run}
							key={'c' + run.id} /></>} />
			</section>
		</>
	);
}
