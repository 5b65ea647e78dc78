// SPDX-License-Identifier: Apache-2.0
// Two to twelve runs side by side: params, metrics, code, packages, environment, data, files; by default only
// differences. The first run is the baseline.
import { signal, useSignal, useSignalEffect } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { count } from '../../base/format.ts';
import { fileRows, packagesOf, sideRows, type SideRow } from '../../base/side.ts';
import type { Run } from '../../base/types.ts';
import { matchesWords } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { SIDE_MAX, sides, wantSides, type Side } from '../../state/side.ts';
import { Breaking, Empty, followed, Key, Name } from '../base/bits.tsx';
import '../base/later.ts';
import { Share } from '../base/share.tsx';
import { addStyles } from '../base/styles.ts';
import { lazy } from '../base/lazy.tsx';
import { FrontCharts } from '../charts/front.tsx';
import { Header } from '../header/header.tsx';
import { CodeDiff } from './codediff.tsx';
import { metricRows, type MetricRow } from './metrics.ts';
import text from './side.part.css';

addStyles(text);

const Media = lazy(() => import('../records/media.tsx').then((m) => m.Media));
const Waterfall = lazy(() => import('../insight/waterfall.tsx').then((m) => m.Waterfall));

/** Initial number of rows of a part. */
const FIRST = 100;
/** Code entries with their own part. */
const OWN_PARTS = ['diff', 'packages'];

/** Show equal values too. */
const whole = signal(false);
const words = signal('');

function Heads({ runs }: { runs: readonly Run[] }) {
	const without = (id: string) => s.setShown(new Set(runs.map((r) => r.id).filter((o) => o !== id)));
	return (
		<tr><th scope="col"><span class="unseen">Name</span></th>{runs.map((r, i) => (
			<th key={r.id} scope="col"><Key look={s.looks.value.byRun.get(r.id)} on />
				<a href={s.runAddress(r.id)} onClick={followed(() => s.openRun(r.id))}><Name
					text={s.nameOf(r.id, r)} /></a>
				{i === 0 && <span class="dim"> first</span>}
				{runs.length > 2 && <button type="button" class="quiet"
					aria-label={`Without ${s.nameOf(r.id, r)}`}
					onClick={() => without(r.id)}>✕</button>}
			</th>
		))}</tr>
	);
}

interface PartOptions {
	title: string;
	rows: readonly (SideRow & Partial<MetricRow>)[];
	runs: readonly Run[];
	/** Text of an empty part. */
	more?: string;
}

function Part({ title, rows, runs, more }: PartOptions) {
	const most = useSignal(FIRST);
	const found = rows.filter((r) => (whole.value || r.differs) && matchesWords(words.value, [r.name]));
	const same = rows.length - rows.filter((r) => r.differs).length;
	if (!rows.length) return null;
	return (
		<tbody aria-label={title}>
			<tr class="part"><th scope="rowgroup" colSpan={runs.length + 1}>{title} <span class="dim">
				{found.length === 0 && !words.value ? `The same in all: ${count(rows.length, 'name')}`
					: same && !whole.value ? `${same} the same` : ''} {more}</span></th></tr>
			{found.slice(0, most.value).map((r) => (
				<tr key={r.name} class={r.differs ? 'differs' : ''}>
					<th scope="row" title={r.name}><Breaking text={r.name} /></th>
					{r.cells.map((c, i) => <td key={i} title={c} class={r.best?.has(i) ? 'best'
						: ''}>
						{c === undefined ? <span class="none">–</span> : r.texts?.[i] ?? c}
						{r.deltas?.[i] && <small> {r.deltas[i]}</small>}</td>)}
				</tr>
			))}
			{found.length > most.value && <tr><td colSpan={runs.length + 1}><button type="button"
				onClick={() => (most.value += 5 * FIRST)}>{count(found.length - most.value,
					'more row')}</button></td></tr>}
		</tbody>
	);
}

function inputsOf(x: Side): Record<string, string> {
	return Object.fromEntries(x.run.inputs.map((i) => [i.name + (i.context && `, ${i.context}`), i.digest]));
}

function codeOf(x: Side): Record<string, string> {
	return Object.fromEntries(Object.entries(x.code).filter(([k]) => !OWN_PARTS.includes(k)));
}

function Parts({ list, runs }: { list: readonly Side[]; runs: readonly Run[] }) {
	const of = (f: (x: Side) => Record<string, string>) => sideRows(list.map(f));
	const own = (tags: Record<string, string>) => Object.fromEntries(Object.entries(tags).filter(([k]) =>
		!s.isReserved(k)));
	return (
		<>
			<Part title="Params" rows={of((x) => x.run.params)} runs={runs} />
			<Part title="Metrics" rows={metricRows(list.map((x) => x.run), s.goal.value)} runs={runs} />
			<Part title="Tags" rows={of((x) => own(x.run.tags))} runs={runs} />
			<Part title="Code" rows={of(codeOf)} runs={runs} />
			<Part title="Packages" rows={of((x) => packagesOf(x.code.packages ?? ''))} runs={runs} />
			<Part title="Environment" rows={of((x) => x.run.environment)} runs={runs} />
			<Part title="Data sets" rows={of(inputsOf)} runs={runs} />
			<Part title="Files" rows={fileRows(list.map((x) => x.files))} runs={runs}
				more={list.some((x) => x.more) ? 'Not all folders were read' : undefined} />
		</>
	);
}

function Controls({ runs }: { runs: readonly Run[] }) {
	return (
		<p class="options">
			<label><input type="checkbox" checked={!whole.value}
				onChange={() => (whole.value = !whole.value)} /> Differences only</label>
			<input type="search" placeholder="Find a name" aria-label="Find a name" value={words.value}
				onInput={(e) => (words.value = e.currentTarget.value)} />
			<span class="dim">{count(runs.length, 'run')} side by side; metrics: best and last, relative to
				the first run</span>
			<a class="button" href={s.addressOf({ page: 'compare' })}
				onClick={followed(() => s.go({ page: 'compare' }, true))}>Table and charts</a>
			<Share kind="comparison" target={runs.map((r) => r.id)} />
		</p>
	);
}

export function SideBySide() {
	const runs = s.shown.value.slice(0, SIDE_MAX);
	useSignalEffect(() => void wantSides(s.shown.value.slice(0, SIDE_MAX).map((r) => r.id), s.liveRev.value > 0));
	useEffect(() => {
		document.title = `${count(runs.length, 'run')} side by side · dptrack`;
	});
	const list = runs.map((r) => sides.value.get(r.id)).filter((x): x is Side => x !== undefined);
	if (s.loading.value || (list.length < runs.length && runs.length > 1))
		return <><main key="wait" class="wait" aria-busy="true" /><Header /></>;
	if (runs.length < 2) return <><main><Empty title="Choose two runs or more">
		<p>The charted runs are compared: choose them in the table.</p>
		<p><a class="button" href={s.addressOf({ page: 'compare' })}
			onClick={followed(() => s.go({ page: 'compare' }, true))}>Table and charts</a></p>
	</Empty></main><Header /></>;
	return (
		<><main class="side">
			<h1 class="unseen">Runs side by side</h1>
			<Controls runs={runs} />
			<Media runs={runs} />
			<FrontCharts runs={runs} />
			<div class="box scroll" tabIndex={0} role="region" aria-label="Runs side by side">
				<table class={runs.length > 4 ? 'many' : ''}><thead><Heads
					runs={runs} /></thead><Parts list={list} runs={runs} /></table>
			</div>
			<Waterfall runs={list.map((x) => x.run)} />
			<CodeDiff list={list} />
		</main><Header /></>
	);
}
