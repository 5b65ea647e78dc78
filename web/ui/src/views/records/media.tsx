// SPDX-License-Identifier: Apache-2.0
// Media of one or several runs over their steps: a card per key; runs side by side. All sliders have one step, which
// the address holds, and follow the charts' cursor.
import { computed, useComputed, useSignal, type Signal } from '@preact/signals';
import { byName, count } from '../../base/format.ts';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { CAPTION, getMedia, getMediaKeys, type Media as Item, type MediaKey } from '../../state/records.ts';
import { Breaking, evenly, GroupHead, Key, Name, useAsked, useLoaded } from '../base/bits.tsx';
import { Content, type Ranges } from './content.tsx';
import './styles.ts';

/** Initial number of keys, and largest number of steps next to each other. */
const FIRST = 12;
const COLUMNS_MAX = 24;
/** Cursor position that a slider has set. */
let own: { key: string; x: number } | null = null;

const isPicture = (k: MediaKey) => k.kind === 'image';

/** Keys of any run, with the largest number of items, without captions; pictures first. */
function merged(lists: readonly MediaKey[][]): MediaKey[] {
	const by = new Map<string, MediaKey>();
	for (const k of lists.flat()) {
		const own = by.get(k.key);
		by.set(k.key, own ? { ...own, count: Math.max(own.count, k.count) } : k);
	}
	const captionOf = (k: MediaKey) => (isPicture(k) || k.kind === 'audio' ? by.get(k.key + CAPTION) : undefined);
	const captions = new Set([...by.values()].map(captionOf));
	return [...by.values()].filter((k) => !captions.has(k))
		.map((k) => ({ ...k, captioned: captionOf(k) !== undefined }))
		.sort((a, b) => Number(isPicture(b)) - Number(isPicture(a)) || byName(a.key, b.key));
}

/** Step of the charts' cursor; null if it does not count steps or a slider has set it. */
const pointed = computed(() => {
	const c = s.cursor.value;
	return c && c !== own && s.unitOf(c.key) === 'step' ? c.x : null;
});

/** The step in the address; without one, or with another text, past the last. */
function stepOf(text: string | null): number {
	return text !== null && /^\d+$/.test(text) ? Number(text) : Infinity;
}

/** The last step up to one; the first if all are later. */
function lastUpTo(steps: readonly number[], step: number): number {
	let [lo, hi] = [0, steps.length - 1];
	while (lo < hi) {
		const mid = (lo + hi + 1) >> 1;
		if (steps[mid]! <= step) lo = mid;
		else hi = mid - 1;
	}
	return lo;
}

interface SliderOptions {
	name: string;
	steps: readonly number[];
	at: Signal<number>;
}

function Slider({ name, steps, at }: SliderOptions) {
	const move = (i: number) => {
		at.value = i;
		const key = s.curve.value ?? s.goal.value?.key ?? null;
		if (s.view.value.x !== 'step' || key === null || s.unitOf(key) !== 'step') return;
		own = { key, x: steps[i]! };
		s.cursor.value = own;
	};
	if (steps.length < 2) return <span class="dim">step {steps[0]}</span>;
	return (
		<>
			<input type="range" min="0" max={steps.length - 1} step="1" value={at.value}
				aria-label={`Step of ${name}`}
				aria-valuetext={`step ${steps[at.value]}`} onInput={(e) =>
					move(Number(e.currentTarget.value))} />
			<span class="dim">step <b>{steps[at.value]}</b>, {at.value + 1} of {steps.length}</span>
		</>
	);
}

/** What a key's items are, by the media type of one. */
function kindOf(m: Item | undefined, { kind }: MediaKey): string {
	return m?.type.startsWith('video/') ? 'video' : m?.type.startsWith('text/html') ? 'HTML' : kind;
}

/** Items of a run at a step, or the last before it, of every rank. */
function atStep(list: readonly Item[], step: number): { now: Item[]; before: Item | null } {
	const upTo = list.filter((m) => m.step <= step);
	const last = upTo.at(-1)?.step;
	return { now: upTo.filter((m) => m.step === last), before: upTo.filter((m) => m.step !== last).at(-1) ?? null };
}

function RunName({ run }: { run: Run }) {
	return <><Key look={s.looks.value.byRun.get(run.id)} on /><Name text={s.nameOf(run.id, run)} /></>;
}

interface RunItemsOptions {
	run: Run;
	many: boolean;
	list: readonly Item[];
	step: number;
	/** Shows another step. */
	go: (step: number) => void;
	ranges: Signal<Ranges>;
	kind: Signal<string>;
}

/** What a run recorded at a step, or last before it. */
function RunItems({ run, many, list, step, go, ranges, kind }: RunItemsOptions) {
	const { now, before } = atStep(list, step);
	const first = list[0]?.step;
	const ranks = now.length > 1;
	return (
		<div class="item" data-of={run.id}>
			{many && <p class="whose"><RunName run={run} /></p>}
			{!now.length && (first === undefined ? <p class="dim">Nothing</p>
				: <p class="dim">Nothing up to this step, first at <button type="button" class="quiet"
					onClick={() => go(first)}>step {first}</button></p>)}
			{now.map((m) => (
				<div key={m.content + m.rank}>
					{(m.rank >= 0 && ranks || m.step !== step) && <p class="dim">
						{m.rank >= 0 && ranks ? `rank ${m.rank}` : ''}
						{m.step !== step ? ` step ${m.step}` : ''}</p>}
					<Content m={m} before={before} all={list} alone={!many && !ranks}
						ranges={ranges} kind={kind} />
				</div>))}
		</div>
	);
}

interface GridOptions {
	name: string;
	runs: readonly Run[];
	items: readonly Item[][];
	steps: readonly number[];
	at: Signal<number>;
	ranges: Signal<Ranges>;
}

/** A row for each run and a column for each step, to scroll. A click on a step selects it. */
function StepGrid({ name, runs, items, steps, at, ranges }: GridOptions) {
	const columns = evenly(steps, COLUMNS_MAX);
	const cell = (list: readonly Item[], step: number) => {
		const now = list.filter((m) => m.step === step);
		return now.map((m) => <Content key={m.content + m.rank} m={m} before={null} all={[]}
			ranges={ranges} />);
	};
	return (
		<div class="stepgrid" tabIndex={0} role="region" aria-label={`${name}: runs and steps`}>
			<table>
				<thead><tr><th scope="col">Run</th>{columns.map((c) => (
					<th key={c} scope="col"><button type="button" class="quiet"
						aria-pressed={steps[at.value] === c}
						onClick={() => (at.value = steps.indexOf(c))}>step {c}</button>
					</th>))}</tr></thead>
				<tbody>{runs.map((r, i) => (
					<tr key={r.id}>
						<th scope="row"><span class="whose"><RunName run={r} /></span></th>
						{columns.map((c) => <td key={c}>{cell(items[i] ?? [], c)}</td>)}
					</tr>))}</tbody>
			</table>
			{columns.length < steps.length && <p class="dim">{columns.length} of {steps.length} steps</p>}
		</div>
	);
}

/** Arrow keys on the items move the step, as on the slider. */
function moved(e: KeyboardEvent, at: Signal<number>, last: number): void {
	const by = { ArrowLeft: -1, ArrowRight: 1, Home: -last, End: last }[e.key];
	if (!by || e.target !== e.currentTarget) return;
	e.preventDefault();
	at.value = Math.min(last, Math.max(0, at.value + by));
}

/** The items of a key with their captions. */
async function withCaptions(run: Run, { key, captioned }: MediaKey): Promise<Item[]> {
	const texts = captioned ? await getMedia(run.id, key + CAPTION) : [];
	const by = new Map(texts.map((m) => [`${m.step} ${m.rank}`, m]));
	return (await getMedia(run.id, key)).map((m) => ({ ...m, caption: by.get(`${m.step} ${m.rank}`) }));
}

function Card({ of, runs }: { of: MediaKey; runs: readonly Run[] }) {
	const { value: items, wrong } = useLoaded(() => Promise.all(runs.map((r) => withCaptions(r, of))),
		[runs.map((r) => r.id).join(), of.key, of.count, of.captioned]);
	const every = useSignal(false);
	const shown = useSignal(items);
	shown.value = items;
	// memoised: a slider move must not collect thousands of items again
	const stepList = useComputed(() =>
		[...new Set((shown.value ?? []).flat().map((m) => m.step))].sort((a, b) => a - b));
	const steps = stepList.value;
	const last = steps.length - 1;
	/** The step under the charts' cursor while there is one, else the sliders', or the last. */
	const chosen = useComputed(() => lastUpTo(stepList.value, pointed.value ?? stepOf(s.view.value.media)));
	const place = { get value() { return chosen.value; }, set value(i: number) {
		s.go({ media: String(steps[i]) }); } } as Signal<number>;
	/** Ranges of the histograms that are shown, which they have in common. */
	const ranges = useSignal<Ranges>(new Map());
	/** What the items are, once one of them is loaded. */
	const kind = useSignal('');
	return (
		<figure class={`card of-${of.kind}${runs.length > 1 || every.value ? ' wide' : ''}`}
			data-media={of.key}>
			<figcaption><b><Breaking text={of.key} /></b> <span class="dim">{kind.value
				|| kindOf(items?.flat()[0], of)}</span>
				<span class="grow" />
				{last > 0 && <button type="button" class="quiet" aria-pressed={every.value}
					onClick={() => (every.value = !every.value)}>All steps</button>}
			</figcaption>
			{wrong && <p class="problem" role="alert">{wrong}</p>}
			{last >= 0 && <p class="slide"><Slider name={of.key} steps={steps} at={place} /></p>}
			{last >= 0 && every.value && <StepGrid name={of.key} runs={runs} items={items!} steps={steps}
				at={place} ranges={ranges} />}
			{last >= 0 && !every.value && <div class="items" tabIndex={0} role="group"
				aria-label={`${of.key}: ← and → move the step`}
				onKeyDown={(e) => moved(e, place, last)}>{runs.map((r, i) => (
					<RunItems key={r.id} run={r} many={runs.length > 1} list={items![i] ?? []}
						step={steps[chosen.value]!} ranges={ranges} kind={kind}
						go={(to) => (place.value = steps.indexOf(to))} />))}</div>}
		</figure>
	);
}

/** Number of media by key, reloaded when a run changes; null while unknown. */
function useKeys(runs: readonly Run[]): MediaKey[] | null {
	const live = runs.some((r) => r.status === 'running') ? s.liveRev.value : 0;
	return useAsked(() => Promise.all(runs.map((r) => getMediaKeys(r.id).catch(() => []))).then(merged),
		[runs.map((r) => r.id).join(), live]);
}

/** Cards of keys; first: how many at once. */
function CardsOf({ keys, runs, first }: { keys: readonly MediaKey[]; runs: readonly Run[]; first: number }) {
	const most = useSignal(first);
	return (
		<>
			<div class="media">{keys.slice(0, most.value).map((k) => <Card key={k.key} of={k}
				runs={runs} />)}</div>
			{keys.length > most.value && <button type="button" onClick={() => (most.value += FIRST)}>
				{count(keys.length - most.value, 'more key')}</button>}
		</>
	);
}

/** Cards of the runs' keys. */
export function Cards({ runs }: { runs: readonly Run[] }) {
	const keys = useKeys(runs);
	if (!keys) return <p class="dim">…</p>;
	if (!keys.length) return <p class="dim">These runs have no images, histograms, texts, tables or audio.</p>;
	return <CardsOf keys={keys} runs={runs} first={FIRST} />;
}

/** Media of runs; nothing without any. Of several runs only pictures are shown at first. */
export function Media({ runs }: { runs: readonly Run[] }) {
	const keys = useKeys(runs);
	const open = useSignal<boolean | null>(null);
	if (!keys?.length) return null;
	const first = runs.length > 1 ? Math.min(FIRST, keys.filter(isPicture).length) : FIRST;
	const on = open.value ?? first > 0;
	return (
		<section class="group" aria-label="Media">
			<GroupHead open={on} toggle={() => (open.value = !on)} name="Media" count={keys.length} />
			{on && <CardsOf keys={keys} runs={runs} first={first || FIRST} />}
		</section>
	);
}
