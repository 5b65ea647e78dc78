// SPDX-License-Identifier: Apache-2.0
// Page of one run in tabs: overview, charts, system, media, console, files, comparison, timeline.
import { useSignal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { byName, natural, pairText } from '../../base/format.ts';
import type { Run, RunDetail } from '../../base/types.ts';
import { matchesWords } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { getRun } from '../../state/run.ts';
import { shared } from '../../state/shares.ts';
import { Breaking, Empty } from '../base/bits.tsx';
import { lazy } from '../base/lazy.tsx';
import { Bar, PhaseLegend, phasesOf, shares } from '../base/phases.tsx';
import { Tabs } from '../base/lists/tabs.tsx';
import { Versions } from '../base/lists/versions.tsx';
import { FrontCharts } from '../charts/front.tsx';
import { ChartGrid, Toolbar } from '../charts/grid.tsx';
import { Header } from '../header/header.tsx';
import { Artifacts } from './artifacts.tsx';
import { CompareWith } from './comparewith.tsx';
import { Failure } from './failure.tsx';
import { Family } from './family.tsx';
import { Files } from './files.tsx';
import { Head } from './head.tsx';
import { Metrics } from './metrics.tsx';
import { Notes, notesReady } from './notes.tsx';
import { RankBars } from './rankbars.tsx';
import { RankCharts } from './rankcharts.tsx';
import { Ranks } from './ranks.tsx';
import { Registered } from './registered.tsx';
import { registrations } from './register.tsx';
import { Source } from './source.tsx';
import { Speed, Traced } from './speed.tsx';
import { TABS, isSystem } from './tabs.ts';
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
				placeholder={`Find among ${pairs.length}`} value={words.value}
				aria-label={`Find in ${title.replace(/ \(.*/, '')}`}
				onInput={(e) => (words.value = e.currentTarget.value)} /></p>}
			{!found.length && <p class="dim">Nothing contains “{words.value}”.</p>}
			<dl class="pairs">
				{found.map(([k, v]) => (
					<div key={k} class={mark?.has(k) ? 'differs' : ''}>
						<dt><Breaking text={k} /></dt><dd title={v}>{pairText(k, v)}</dd></div>
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
			const { experiment, also } = s.view.value;
			if (![experiment, ...also].includes(r.experiment)) s.go({ experiment: r.experiment, also: [] });
			s.wantPhases([r]);
		}, (e) => here && !s.signedOut.value && setWrong((e as Error).message));
		return () => void (here = false);
	}, [id, rev]);
	return { run: s.opened.value?.id.startsWith(id) ? s.opened.value : null, wrong };
}

/** Params; those that differ between runs come first. */
function Params({ r }: { r: Run }) {
	const order = s.split.value.differ;
	const at = (k: string) => (order.includes(k) ? order.indexOf(k) : order.length);
	const pairs = Object.entries(r.params).sort((a, b) => at(a[0]) - at(b[0]) || natural(a[0], b[0]));
	const some = order.length > 0 && order.length < pairs.length;
	return <Pairs title={some ? 'Params (those that differ between runs first)' : 'Params'} pairs={pairs}
		mark={new Set(some ? order : [])} />;
}

function Overview({ r }: { r: RunDetail }) {
	return (
		<div class="overview">
			<div class="wide">
				<Failure r={r} />
				<Problems r={r} />
				<FrontCharts runs={[r]} />
				<Metrics r={r} />
				<Speed r={r} key={'speed ' + r.id} />
				<Alerts r={r} />
			</div>
			<div>
				<Notes r={r} key={'notes ' + r.id} done={(o) => (s.opened.value = { ...r, ...o })} />
				<Params r={r} />
				{!shared.value && <><Family r={r} key={r.id} />
					<Registered id={r.id} key={`registered ${r.id} ${registrations.value}`} /></>}
				<Tags r={r} key={'tags ' + r.id} />
				<Source r={r} />
				<Pairs title="Environment" pairs={Object.entries(r.environment)} />
			</div>
		</div>
	);
}

/** Charts of some of the series, with the controls. */
function ChartTab({ keys, none }: { keys: readonly string[]; none: string }) {
	if (!keys.length) return <p class="nothing">{none}</p>;
	return (
		<section class="chartpart" aria-label="Charts">
			<Toolbar />
			<ChartGrid keys={keys} />
		</section>
	);
}

/** Shown if the parts after it have nothing to show. */
const Nothing = ({ text }: { text: string }) => <p class="nothing instead">{text}</p>;

function SystemTab({ r, keys }: { r: RunDetail; keys: readonly string[] }) {
	return <>{keys.length > 0 && <ChartTab keys={keys} none="" />}
		<div class="parts">{!keys.length && <Nothing text="No system metrics were logged." />}
			<RankCharts r={r} alone={!keys.length} key={r.id} /></div></>;
}

function TabBody({ r, tab }: { r: RunDetail; tab: string }) {
	const keys = Object.keys(r.metrics).sort(byName);
	switch (tab) {
	case 'charts': return <ChartTab keys={keys.filter((k) => !isSystem(k))} none="No metrics were logged." />;
	case 'system': return <SystemTab r={r} keys={keys.filter(isSystem)} />;
	case 'media': return <><div class="parts"><Nothing text="No media were logged." />
		<Media runs={[r]} key={'m' + r.id} /></div><FrontCharts runs={[r]} /></>;
	case 'console': return <><div class="parts"><Nothing text="No console was recorded." />
		<Console r={r} key={'c' + r.id} /></div><FrontCharts runs={[r]} /></>;
	case 'files': return <div class="parts"><Nothing text="No files were logged." />
		{!shared.value && <Versions of="run" name={r.id} />}
		<Artifacts r={r} key={`${r.id} ${r.artifacts.length}`} /><Files r={r} key={'files ' + r.id} />
		<Code r={r} /></div>;
	case 'compare': return <CompareWith r={r} key={r.id} />;
	case 'timeline': return <div class="parts"><Nothing text="No timeline was recorded." />
		<Phases r={r} /><Traced r={r} key={'t' + r.id} /><Ranks r={r} /></div>;
	default: return <Overview r={r} />;
	}
}

export function RunPage({ id }: { id: string }) {
	const { run, wrong } = useRun(id);
	const wanted = s.view.value.tab;
	const tab = TABS.some(([t]) => t === wanted) ? wanted : '';
	useEffect(() => {
		if (run) document.title = `${run.name} · ${run.experiment} · dptrack`;
	}, [run]);
	useEffect(() => {
		// after the frame in which charts detect their visibility
		if (run) requestAnimationFrame(() => setTimeout(s.chartsPlaced));
	}, [run?.id, tab]);
	if (wrong) return <><main><Empty title="This run cannot be shown"><p>{wrong}</p></Empty></main><Header /></>;
	if (!run) return <><main key="wait" class="wait" aria-busy="true" /><Header /></>;
	return (
		<>
			<main class="runpage">
				<Head r={run} key={run.id} />
				<Tabs label="Parts of the run" tab={tab}
					tabs={TABS.filter(([id]) => id !== 'compare' || !shared.value)} />
				<div class="tabbody" key={tab}><TabBody r={run} tab={tab} /></div>
			</main>
			<Header />
		</>
	);
}
