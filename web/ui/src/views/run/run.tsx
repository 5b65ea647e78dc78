// One run: what it was, how it went, every metric, its curves, where its time goes by rank, notes.
import { useSignal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import * as api from '../../state/api.ts';
import type { Artifact, Run, RunDetail } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { bytes, count, duration, natural, short, valueText, when } from '../../base/format.ts';
import { bestOf, bestStep, directionOf } from '../../base/goal.ts';
import { runTime } from '../../base/rank.ts';
import { Empty, lastStep } from '../base/bits.tsx';
import { Header } from '../header/header.tsx';
import { ChartGrid, Toolbar } from '../charts/grid.tsx';
import { best } from '../table/columns.tsx';
import { lazy } from '../base/lazy.tsx';
import { RankCharts } from './rankcharts.tsx';
import { Ranks } from './ranks.tsx';
import { PhaseLegend, phasesOf, Bar, rankPhases, shares, wantPhases } from '../base/phases.tsx';
import { RankBars } from './rankbars.tsx';
import { Tags } from './tags.tsx';
import { Family } from './family.tsx';
import { Head } from './head.tsx';

const Markdown = lazy(() => import('./markdown.tsx').then((m) => m.Markdown));

function Pairs({ title, pairs, mark }: { title: string; pairs: [string, string][]; mark?: Set<string> }) {
	if (!pairs.length) return null;
	return (
		<section class="box">
			<h2>{title}</h2>
			<dl class="pairs">
				{pairs.map(([k, v]) => (
					<div key={k} class={mark?.has(k) ? 'differs' : ''}><dt>{k}</dt><dd title={v}>{v}</dd></div>
				))}
			</dl>
		</section>
	);
}

const METRICS_FIRST = 40;

function metricText(key: string, v: number | null): string {
	return v === null ? '–' : valueText(key)(v);
}

function Metrics({ r }: { r: Run }) {
	const keys = Object.keys(r.metrics).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
	const all = useSignal(keys.length <= METRICS_FIRST);
	const words = useSignal('');
	if (!keys.length) return null;
	const found = keys.filter((k) => k.toLowerCase().includes(words.value.toLowerCase()));
	const list = all.value ? found : found.slice(0, METRICS_FIRST);
	return (
		<section class="box metrics">
			<h2>Metrics {keys.length > METRICS_FIRST && <input type="search" aria-label="Find a metric" placeholder={`find among ${keys.length}`}
				value={words.value} onInput={(e) => (words.value = e.currentTarget.value)} />}</h2>
			<div class="long" tabIndex={keys.length > 12 ? 0 : undefined} role="group" aria-label="Metrics"><table>
				<thead><tr><th>metric</th><th>best</th><th>at</th><th>last</th><th>at</th><th>points</th></tr></thead>
				<tbody>
					{list.map((k) => {
						const m = r.metrics[k]!;
						const dir = directionOf(k);
						return (
							<tr key={k}>
								<td>{k}</td><td class="num">{metricText(k, bestOf(m, dir))}</td><td class="num dim">{bestStep(m, dir) ?? ''}</td>
								<td class={'num' + (Number.isNaN(m.last) ? ' bad' : '')}>{metricText(k, m.last)}</td>
								<td class="num dim">{m.last_step}</td><td class="num dim">{m.count}</td>
							</tr>
						);
					})}
				</tbody>
			</table></div>
			{list.length < found.length && <button type="button" onClick={() => (all.value = true)}>all {found.length}</button>}
		</section>
	);
}

function Notes({ r, done }: { r: Run; done: (r: Run) => void }) {
	const editing = useSignal(false);
	const text = useSignal(r.notes);
	const wrong = useSignal('');
	const save = async () => {
		try {
			done(await api.changeRun(r.id, { notes: text.value }));
			editing.value = false;
			wrong.value = '';
		} catch (e) {
			wrong.value = (e as Error).message;
		}
	};
	return (
		<section class="box notes">
			<h2>Notes {s.session.value?.mayWrite === true && <button type="button" class="quiet" onClick={() => {
				text.value = r.notes;
				editing.value = !editing.value;
			}}>{editing.value ? 'cancel' : r.notes ? 'edit' : 'add'}</button>}</h2>
			{editing.value ? (
				<>
					<textarea aria-label="Notes" rows={Math.min(20, Math.max(5, text.value.split('\n').length + 1))} value={text.value} onInput={(e) => (text.value = e.currentTarget.value)} />
					<button type="button" onClick={() => void save()}>save</button>
					{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}
					<span class="dim"> Markdown</span>
				</>
			) : r.notes ? <Markdown text={r.notes} meanwhile={<pre>{r.notes}</pre>} imageOf={(src) => (/^[a-z]+:|^[/#]/i.test(src) ? null : api.artifactAddress(r.id, src))} /> : <p class="dim">none</p>}
		</section>
	);
}

function Phases({ r }: { r: Run }) {
	const ranks = rankPhases(r.id);
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

/** Where the run stands among the others of its experiment. */
function standing(r: Run): string {
	const g = s.goal.value;
	const top = best.value;
	if (!g || !r.metrics[g.key]) return '';
	const v = bestOf(r.metrics[g.key], g.dir);
	const rank = s.rows.value.findIndex((x) => x.id === r.id);
	const of = s.rows.value.length;
	const ahead = top && top.id === r.id ? 'the best' : rank >= 0 && s.view.value.sort === null ? `number ${rank + 1}` : '';
	return `${g.key} ${v === null ? '–' : short(v)}${ahead && of > 1 ? `, ${ahead} of ${of} runs` : ''}`;
}

/** A run's files, folder by folder. */
function Artifacts({ r }: { r: RunDetail }) {
	const folder = useSignal('');
	const files = useSignal<Artifact[]>(r.artifacts);
	const wrong = useSignal('');
	const open = async (path: string) => {
		try {
			files.value = path ? await api.getArtifacts(r.id, path) : r.artifacts;
			folder.value = path;
			wrong.value = '';
		} catch (e) {
			wrong.value = (e as Error).message;
		}
	};
	if (!r.artifacts.length) return null;
	return (
		<section class="box artifacts">
			<h2>Artifacts {folder.value && <span class="dim">{folder.value}</span>}</h2>
			<ul class="files">
				{folder.value && <li><button type="button" class="quiet" onClick={() => void open(folder.value.split('/').slice(0, -1).join('/'))}>…</button></li>}
				{files.value.map((f) => {
					const name = f.path.split('/').pop()!;
					return <li key={f.path}>{f.folder ? <button type="button" class="quiet" onClick={() => void open(f.path)}>{name}/</button>
						: <><a href={api.artifactAddress(r.id, f.path)}>{name}</a> <span class="dim">{bytes(f.bytes ?? 0)}</span></>}</li>;
				})}
			</ul>
			{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}
		</section>
	);
}

/** Records of the run's journals that could not be applied. */
function Problems({ r }: { r: RunDetail }) {
	if (!r.problems.length) return null;
	return (
		<section class="box">
			<h2 class="bad">Not taken from the journal</h2>
			<ul class="files">{r.problems.map((p) => <li key={p}>{p}</li>)}</ul>
		</section>
	);
}

/** A switch for what restarts took back; the curves alone are what counts. */
function TakenBack({ r }: { r: RunDetail }) {
	const shown = s.takenBack.value?.run === r.id;
	if (r.segments.length < 2) return null;
	return <button type="button" class="quiet" aria-pressed={shown} onClick={() => void s.showTakenBack(shown ? null : r)}>
		{shown ? 'hide' : 'show'} what restarts took back</button>;
}

function Facts({ r }: { r: RunDetail }) {
	const t = runTime(r);
	const facts = [
		standing(r), when(r.start_time), t === undefined ? '' : duration(t),
		lastStep(r) === null ? '' : `step ${lastStep(r)}`,
		new Set(r.ranks).size > 1 ? `${new Set(r.ranks).size} ranks` : '',
		r.segments.length > 1 ? `restarted ${r.segments.length === 2 ? 'once' : count(r.segments.length - 1, 'time')}` : '', r.id.slice(0, 8),
	].filter(Boolean);
	return <p class="dim">{facts.join(' · ')} <TakenBack r={r} /></p>;
}

export function RunPage({ id }: { id: string }) {
	const run = s.opened.value?.id.startsWith(id) ? s.opened.value : null;
	const [wrong, setWrong] = useState('');
	const rev = s.liveRev.value;
	useEffect(() => {
		let here = true;
		api.getRun(id).then(async (r) => {
			if (r.notes) await Markdown.ahead();
			if (!here) return;
			s.opened.value = r;
			setWrong('');
			if (s.view.value.experiment !== r.experiment) s.go({ experiment: r.experiment });
			wantPhases([r]);
		}, (e) => here && setWrong((e as Error).message));
		return () => {
			here = false;
		};
	}, [id, rev]);
	useEffect(() => {
		if (run) document.title = `${run.name} · ${run.experiment} · dptrack`;
	}, [run]);
	if (wrong) return <><main><Empty title="This run cannot be shown"><p>{wrong}</p></Empty></main><Header /></>;
	if (!run) return <><main class="wait" aria-busy="true" /><Header /></>;
	const differs = new Set(s.split.value.differ);
	const order = s.split.value.differ;
	const place = (k: string) => (differs.has(k) ? order.indexOf(k) : order.length);
	const params = Object.entries(run.params).sort((a, b) => place(a[0]) - place(b[0]) || natural(a[0], b[0]));
	return (
		<>
			<main class="runpage">
				<Head r={run} key={run.id} />
				<Facts r={run} />
				<div class="boxes">
					<Notes r={run} done={(r) => (s.opened.value = { ...run, ...r })} />
					<Phases r={run} />
					<Family r={run} key={run.id} />
					<Problems r={run} />
					<Pairs title={differs.size ? 'Params (those that differ between runs first)' : 'Params'} pairs={params} mark={differs} />
					<Metrics r={run} />
					<Artifacts r={run} key={`${run.id} ${run.artifacts.length}`} />
					<Pairs title="Environment" pairs={Object.entries(run.environment)} />
					<Tags r={run} key={run.id} />
				</div>
			</main>
			<Header />
			<section class="chartpane" aria-label="Charts">
				<Toolbar />
				<ChartGrid keys={Object.keys(run.metrics).sort()} after={<><Ranks r={run} /><RankCharts r={run} key={run.id} /></>} />
			</section>
		</>
	);
}
