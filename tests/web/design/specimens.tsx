// SPDX-License-Identifier: Apache-2.0
// The design system as a page, ?design=CHAPTER: every component of the page in every state. design_test.mjs bundles it
// with the page's own sources (web/ui/build.mjs --extra) and compares it with recorded.txt; it is not part of the page.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { lookAt } from '#ui/base/colour.ts';
import { stack } from '#ui/charts/stack.ts';
import { sparkPath } from '#ui/charts/spark.ts';
import { drawHeat } from '#ui/charts/heat.ts';
import { LineChart, type ChartLine, type LineData } from '#ui/charts/line/index.ts';
import { ParallelChart } from '#ui/charts/parallel.ts';
import { ScatterChart } from '#ui/charts/scatter.ts';
import { Empty, GroupHead, Key, Name, Opener, Panel, Shape } from '#ui/views/base/bits.tsx';
import { Chooser } from '#ui/views/base/chooser.tsx';
import { CopyText } from '#ui/views/base/copytext.tsx';
import { DataTable } from '#ui/views/base/datatable.tsx';
import { Icon, type IconName } from '#ui/views/base/icon.tsx';
import { Says } from '#ui/views/base/jump.tsx';
import { lazy } from '#ui/views/base/lazy.tsx';
import { Markdown } from '#ui/views/base/markdown.tsx';
import { Menu } from '#ui/views/base/menu.tsx';
import { NameForm } from '#ui/views/base/nameform.tsx';
import { Bar, PhaseLegend } from '#ui/views/base/phases.tsx';
import { statements } from '#ui/views/base/says.ts';
import { colourOf } from '#ui/views/base/theme.ts';
import { FigureOf } from '#ui/views/records/figure.tsx';
import { figureOf } from '#ui/base/figure.ts';
import type { Run } from '#ui/base/types.ts';
import '#ui/views/base/later.ts';
import '#ui/views/records/styles.ts';

/** Specimens of a chapter by name; 'wide' in the name: over the whole width, 'open': with room for a panel. */
export type Chapter = Record<string, () => ComponentChildren>;

const nothing = () => {};
/** A state that the test forces on the first button, field or link of the specimen. */
const Forced = ({ state, children }: { state: string; children: ComponentChildren }) =>
	<span data-force={state}>{children}</span>;

const COLOURS = ['back', 'panel', 'raise', 'line', 'grid', 'text', 'dim', 'faint', 'accent', 'on', 'lit', 'good', 'bad',
	'warn', 'bad-lit', 'warn-lit', 'good-lit', 'data_wait', 'h2d', 'forward', 'backward', 'comm_exposed', 'optimizer',
	'eval', 'other'];
const ICONS: IconName[] = ['experiments', 'runs', 'reports', 'models', 'alerts', 'trash', 'settings', 'columns', 'views',
	'more', 'compare', 'less', 'tag', 'move', 'archive', 'download', 'eye', 'pin', 'close', 'menu', 'down', 'filter',
	'ascend', 'descend', 'back', 'edit', 'copy'];
const SHAPES = ['finished', 'running', 'failed', 'killed', 'deleted', 'preempted', 'scheduled', 'nan', 'diverged',
	'spike'];

const tokens: Chapter = {
	'colours wide': () => <div style={{ display: 'flex', flexWrap: 'wrap', gap: '4px' }}>{COLOURS.map((c) => (
		<span class={'swatch ' + c} style={{ background: `var(--${c})`, width: '48px', height: '48px' }} />))}</div>,
	'type wide': () => <>{[1, 2, 3, 4, 5].map((n) => (
		<p class={'type' + n} style={{ fontSize: `var(--t${n})` }}>Step 300 of train/loss: 0.4182</p>))}</>,
	spacing: () => <>{[1, 2, 3, 4, 5].map((n) => <span class={'space' + n} style={{ display: 'block', height: '8px',
		margin: '2px', width: `var(--s${n})`, background: 'var(--accent)' }} />)}</>,
	corners: () => <>{[1, 2].map((n) => <span class={'corner' + n} style={{ display: 'inline-block', width: '60px',
		height: '40px', margin: '4px', border: '1px solid var(--line)', borderRadius: `var(--r${n})` }} />)}</>,
	'headings wide': () => <><h1>First heading</h1><h2>Second heading</h2><p>A text with <b>weight</b>, a
		<a href="#"> link</a>, <code>code</code>, <kbd>Esc</kbd> and <small>a small part</small>.</p>
		<p class="dim">A text that explains</p><pre>a block of code</pre></>,
	'icons wide': () => <>{ICONS.map((n) => <Icon name={n} />)}</>,
	'shapes wide': () => <>{SHAPES.map((k) => <span class={'say ' + k}><Shape kind={k} />{k}</span>)}</>,
	'looks wide': () => <>{Array.from({ length: 24 }, (_, i) => <Key look={lookAt(i)} on />)}
		<Key look={lookAt(0)} on={false} /></>,
};

const KINDS: [string, string][] = [['plain', ''], ['primary', 'primary'], ['quiet', 'quiet'], ['danger', 'danger'],
	['bare', 'bare'], ['item', 'item']];
const STATES = ['', 'hover', 'focus-visible', 'active'];

const buttons: Chapter = {
	...Object.fromEntries(KINDS.flatMap(([name, kind]) => STATES.map((state) => [`${name} ${state}`.trim(), () =>
		<Forced state={state}><button type="button" class={kind}><Icon name="tag" />{kind === 'bare' ? '' : 'Tag'}
			</button></Forced>]))),
	...Object.fromEntries(KINDS.map(([name, kind]) => [`${name} disabled`, () =>
		<button type="button" class={kind} disabled>Compare</button>])),
	pressed: () => <button type="button" aria-pressed>Log y</button>,
	'not pressed': () => <button type="button" aria-pressed={false}>Log y</button>,
	segmented: () => <span class="segmented"><button type="button" aria-pressed>step</button>
		<button type="button" aria-pressed={false}>epoch</button>
		<button type="button" aria-pressed={false} disabled>time</button></span>,
	'link as a button': () => <a class="button" href="#">Export</a>,
	'in a question': () => <span class="options"><button type="button" class="danger">Delete 3 runs</button>
		<button type="button">Cancel</button></span>,
};

const fields: Chapter = {
	...Object.fromEntries(STATES.slice(0, 3).map((state) => [`text ${state}`.trim(), () =>
		<Forced state={state}><input aria-label="Name" value="resnet-ddp2" /></Forced>])),
	placeholder: () => <input aria-label="Tag" placeholder="Tag" />,
	search: () => <input type="search" aria-label="Find" placeholder="Find an experiment" />,
	disabled: () => <input aria-label="Off" value="off" disabled />,
	invalid: () => <span class="filter"><input aria-label="Filter" value="lr >" aria-invalid /></span>,
	choice: () => <select aria-label="Goal"><option>epoch/top1</option></select>,
	area: () => <textarea aria-label="Notes" rows={2} value="Two lines" />,
	check: () => <><input type="checkbox" aria-label="off" /> <input type="checkbox" aria-label="on" checked />
		<input type="radio" aria-label="one" checked name="r" /></>,
	partly: () => <input type="checkbox" aria-label="some" ref={(e) => {
		if (e) e.indeterminate = true;
	}} />,
	slider: () => <input type="range" aria-label="smooth" min="0" max="1" step="0.1" value={0.3} />,
	'rename': () => <NameForm was="fashion" save={async () => {}} close={nothing} />,
	'completion open wide': () => <span class="filter"><input aria-label="Filter" value="lr" />
		<span class="completion"><ul>{['params.lr', 'lr >', 'train/lr'].map((t, i) => <li aria-selected={i === 1}>
			<span>{t}</span><small>{i ? 'metric' : 'param'}</small></li>)}</ul>
		<small class="dim">↓ ↑ choose, Enter inserts</small></span></span>,
};

const shut = () => signal(false);
const opened = () => signal(true);
const choices = ['epoch/top1', 'epoch/val_loss', 'train/loss'].map((id) => ({ id, label: id }));

/** Presses the button of what it holds. */
function Pressed({ children }: { children: ComponentChildren }) {
	const box = useRef<HTMLSpanElement>(null);
	useEffect(() => box.current!.querySelector('button')!.click(), []);
	return <span ref={box}>{children}</span>;
}

/** Holds what opens a panel at its right edge. */
const Right = ({ children }: { children: ComponentChildren }) =>
	<span style={{ display: 'flex', justifyContent: 'flex-end', position: 'relative' }}>{children}</span>;

const panels: Chapter = {
	opener: () => <Opener word="Columns" icon="columns" open={shut()} panel={() => null} />,
	'opener open': () => <Right><Opener word="Columns" icon="columns" open={opened()} panel={(close) =>
		<Panel label="Columns" close={close}><p>A panel</p><button type="button">Do it</button></Panel>} /></Right>,
	'bare opener': () => <Opener word="More" icon="more" bare open={shut()} panel={() => null} />,
	'menu open': () => <Right><Pressed><Menu label="More" items={[{ word: 'Archive', icon: 'archive', act: nothing },
		{ word: 'Delete', icon: 'trash', act: nothing, danger: true }]} /></Pressed></Right>,
	chooser: () => <Chooser name="Colour" now="epoch/top1" list={choices} choose={nothing} />,
	'chooser open': () => <Pressed><Chooser name="Colour" now="epoch/top1" list={choices} choose={nothing} /></Pressed>,
	'chooser of several open': () => <Pressed><Chooser name="x" now="two" list={choices} choose={nothing}
		on={['train/loss']} /></Pressed>,
	'copy open': () => <Right><CopyText label="Copy" table={() => ({ head: ['a'], numbers: [true],
		rows: [[{ text: '1', best: true }]] })}
		close={nothing} /></Right>,
	'values open wide': () => <Right><span class="numbers" style={{ transform: 'translateX(0)', height: '420px',
		width: '600px' }}><DataTable name="train/loss" caption="Last values" head={['Run', 'Step', 'Value']}
		rows={[['resnet', '300', '0.4182'], ['a-name-that-is-long-enough-to-be-cut-somewhere', '1,200', '12.5']]}
		row={(r) => ({ id: r[0]!, name: r[0]!, href: '#', cells: r.slice(1) })} close={nothing} /></span></Right>,
};

const run = (o: Partial<Run>): Run => ({ id: 'a'.repeat(32), name: 'resnet', experiment: 'fashion', status: 'finished',
	start_time: 0, end_time: 1, params: {}, tags: {}, metrics: {}, notes: '', alerts: [], last_step: 317,
	deleted: false, deleted_time: null, reason: '', ...o });
const alert = (kind: 'spike' | 'nan' | 'failed' | 'diverged', text: string) =>
	({ kind, key: 'train/loss', step: 318, value: kind === 'spike' ? 4.85 : null, text });
const Lost = lazy<object>(() => Promise.reject(new Error('no network')));
const says = (o: Partial<Run>) => () => <Says r={run(o)} list={statements(run(o))} />;

const texts: Chapter = {
	'says finished': says({}), 'says running': says({ status: 'running' }), 'says killed': says({ status: 'killed' }),
	'says failed': says({ status: 'failed', alerts: [alert('failed', 'failed')] }),
	'says NaN': says({ alerts: [alert('nan', 'NaN from step 318')] }),
	'says diverged': says({ alerts: [alert('diverged', 'diverged')] }),
	'says spike': says({ alerts: [alert('spike', 'spike')] }),
	'says deleted': says({ deleted: true }), 'says preempted': says({ status: 'preempted' }),
	'says scheduled': says({ status: 'scheduled' }),
	'short name': () => <Name text="resnet" />,
	'long name': () => <span style={{ display: 'flex', width: '200px' }}>
		<Name text="resnet-with-a-name-that-nobody-can-read-lr0.1-seed3" /></span>,
	'empty wide': () => <Empty title="No run matches the filter"><p>The filter is <code>lr &gt; 9</code></p>
		<p><button type="button">Clear the filter</button></p></Empty>,
	'group open': () => <GroupHead open toggle={nothing} name="epoch" count={7} />,
	'group closed': () => <GroupHead open={false} toggle={nothing} name="grad_norm" count={64} />,
	'problem': () => <span class="problem">The name is taken.</span>,
	'lost part wide': () => <Lost />,
	'facts wide': () => <p class="facts"><b>12 runs</b><button type="button" class="running">1 running</button>
		<button type="button" class="failed">1 failed</button>
		<button type="button" class="nan">2 diverged</button></p>,
	'tags': () => <><span class="tagged">baseline</span> <span class="tagged">team vision</span></>,
	'tabs wide': () => <nav class="tabs" style={{ position: 'static' }}><a href="#" aria-current="page">Overview</a>
		<a href="#">Charts</a><a href="#">Console</a></nav>,
	'box wide': () => <section class="box"><h2>Params that differ</h2><dl class="pairs"><div class="differs"><dt>lr</dt>
		<dd>0.1</dd></div><div><dt>batch_size</dt><dd>256</dd></div></dl></section>,
	'failure wide': () => <section class="box failure"><h2><Shape kind="failed" /> failed after step 317</h2>
		<pre>torch.cuda.OutOfMemoryError: CUDA out of memory</pre></section>,
	'table wide': () => <table><thead><tr><th>Metric</th><th>Last</th></tr></thead><tbody><tr><td>train/loss</td>
		<td class="num">0.4182</td></tr><tr><td>epoch/top1</td><td class="num good">93.20</td></tr></tbody></table>,
	'markdown wide': () => <Markdown imageOf={() => null} text={'# Heading\nText with **weight**, `code` and '
		+ '[a link](https://example.org).\n\n- one\n- two\n\n> quoted\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n    code\n'} />,
	'banner alarm': () => <p class="banner" style={{ position: 'static', transform: 'none' }}>The server does not answer.</p>,
	'banner done': () => <p class="banner undo" style={{ position: 'static', transform: 'none' }}>3 runs deleted
		<button type="button">undo</button><button type="button" class="quiet">✕</button></p>,
};

const WAVE = Array.from({ length: 60 }, (_, i) => i * 10);
const curve = (i: number, o: Partial<ChartLine> = {}): ChartLine => ({ id: 'r' + i, name: 'run ' + i,
	colour: colourOf(lookAt(i)), dash: lookAt(i).dash, xs: WAVE, ys: WAVE.map((x) => 2 * Math.exp(-x / (90 + 40 * i)) + 0.1),
	smooth: null, fit: true, badX: null, badToEnd: false, end: 'none', flags: [], ...o });
const broken = WAVE.map((x) => (x > 300 ? NaN : 1 + Math.sin(x / 40) / 4));

/** A line chart; read: the cursor is moved by key until the tooltip is shown. */
function Lines({ lines, read, ...o }: { lines: ChartLine[]; read?: number } & Partial<LineData>) {
	const box = useRef<HTMLDivElement>(null);
	useEffect(() => {
		const c = new LineChart(box.current!, { formatX: String, formatY: (y) => y.toPrecision(3),
			onCursor: (x) => c.cursor(x), onHover: (id) => c.highlight(id), onZoom: nothing, onReset: nothing,
			onOpen: nothing });
		c.set({ lines, from: 0, to: 590, log: false, full: false, xLabel: 'step', ticksX: 'even', whole: true, gutter: 60,
			...o } as LineData);
		const press = () => {
			if (!c.drawn()) return void requestAnimationFrame(press);
			for (let i = 0; i < read!; i++) box.current!.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
			box.current!.dataset.read = 'done';
		};
		if (read) press();
	}, []);
	return <figure class="card chart"><figcaption><b>train/loss</b></figcaption>
		<div class="plot" ref={box} tabIndex={0} role="group" aria-label="chart" data-read={read && 'wanted'} /></figure>;
}

const ticks = [0, 0.5, 1].map((at) => ({ at, text: String(at) }));

function Drawn({ draw }: { draw: (el: HTMLDivElement) => void }) {
	const box = useRef<HTMLDivElement>(null);
	useEffect(() => draw(box.current!), []);
	return <div ref={box} class="plot" style={{ height: '220px', position: 'relative' }} />;
}

const FIGURES = {
	lines: [{ type: 'scatter', mode: 'lines+markers', x: [1, 2, 3, 4], y: [3, 1, 4, 2], name: 'a' }],
	bars: [{ type: 'bar', x: ['cat', 'dog', 'owl'], y: [12, 7, 9] }],
	cells: [{ type: 'heatmap', z: [[1, 2, 3], [4, 5, 6]] }],
	unknown: [{ type: 'sankey', node: {} }],
};

const charts: Chapter = {
	'three lines wide': () => <Lines lines={[curve(0), curve(1), curve(2)]} />,
	'cursor wide': () => <Lines lines={[curve(0), curve(3)]} read={20} />,
	'NaN and failure wide': () => <Lines lines={[curve(0, { ys: broken, badX: 310, badToEnd: true,
		flags: [{ x: 310, y: null, kind: 'nan', text: 'NaN from 310' }] }), curve(1, { end: 'failed' })]} />,
	'running and spike wide': () => <Lines lines={[curve(0, { end: 'running' }), curve(1, { flags: [{ x: 200, y: 0.4,
		kind: 'spike', text: 'spike 0.4' }] })]} />,
	'log wide': () => <Lines lines={[curve(0), curve(1)]} log />,
	'smoothed wide': () => <Lines lines={[curve(0, { smooth: { xs: WAVE, ys: WAVE.map((x) => 1.5 * Math.exp(-x / 120)) } } as
		never), curve(2)]} />,
	'few points wide': () => <Lines lines={[curve(0, { xs: [0, 200, 590], ys: [1, 0.5, 0.4] })]} />,
	'no lines wide': () => <Lines lines={[]} />,
	'band wide': () => <Lines lines={[curve(1, { band: { n: WAVE.map(() => 3), low: WAVE.map((x) => Math.exp(-x / 130)),
		high: WAVE.map((x) => 2.6 * Math.exp(-x / 130) + 0.3) } })]} />,
	'scatter wide': () => <Drawn draw={(el) => new ScatterChart(el, { onHover: nothing, onOpen: nothing, onPick: nothing })
		.set({ x: { title: 'lr', ticks }, y: { title: 'top1', ticks }, front: [[0.2, 0.4], [0.7, 0.9]],
			points: [0.2, 0.5, 0.7, 0.9].map((x, i) => ({ id: 'r' + i, name: 'run ' + i, colour: colourOf(lookAt(i)), x,
				y: 1 - x / 2, back: i === 3 })) })} />,
	'parallel wide': () => <Drawn draw={(el) => new ParallelChart(el, { onHover: nothing, onOpen: nothing, onAxis: nothing,
		onBrush: nothing }).set({ axes: ['lr', 'batch_size', 'top1'].map((title, i) => ({ title, ticks, spread: 0,
			brush: i === 1 ? [0.3, 0.8] : null })), lines: [0.1, 0.4, 0.9].map((v, i) => ({ id: 'r' + i, name: 'run ' + i,
			colour: colourOf(lookAt(i)), dash: [], at: [v, 1 - v, v * v], back: i === 0 })) })} />,
	'heat wide': () => <Drawn draw={(el) => drawHeat(el.appendChild(document.createElement('canvas')), { cells:
		Array.from({ length: 8 }, (_, r) => Array.from({ length: 40 }, (__, c) => Math.sin(r + c / 6))),
		shade: (v) => v, warm: '#c4462f', cold: '#2f7ec2' }, 560, 120)} />,
	phases: () => <span style={{ width: '220px', display: 'block' }}><Bar label="phases" segments={stack([
		{ name: 'data_wait', value: 1 }, { name: 'forward', value: 4 }, { name: 'backward', value: 6 },
		{ name: 'optimizer', value: 1 }])} /></span>,
	'legend of phases wide': () => <PhaseLegend names={['data_wait', 'forward', 'backward', 'comm_exposed']} />,
	spark: () => <svg width="120" height="30"><path fill="none" stroke={colourOf(lookAt(1))} d={sparkPath(WAVE, broken,
		{ from: 0, to: 590, lo: 0, hi: 2 }, 120, 30)} /></svg>,
	...Object.fromEntries(Object.entries(FIGURES).map(([name, data]) => [`figure of ${name}`, () => {
		const f = figureOf(JSON.stringify({ data, layout: { title: { text: name } } }));
		return f ? <FigureOf f={f} json="#" /> : <p class="dim">no figure</p>;
	}])),
};

export const CHAPTERS: Record<string, Chapter> = { tokens, buttons, fields, panels, texts, charts };
