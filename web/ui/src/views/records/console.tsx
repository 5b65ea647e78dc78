// SPDX-License-Identifier: Apache-2.0
// Console of a run by rank: loaded in pieces around the visible lines, searched, followed live. Lines link to their
// time in the charts and back.
import { signal, useSignal, useSignalEffect, type Signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { piecesOf } from '../../base/text/ansi.ts';
import { clockText, count } from '../../base/format.ts';
import type { RunDetail } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { getConsole, stepAt, timeOf, type Console as ConsoleText, type ConsoleLine,
	type ConsolePart } from '../../state/records.ts';
import { GroupHead } from '../base/bits.tsx';
import './styles.ts';

/** Lines per request, and maximum of lines held. */
const PIECE = 1000;
const HELD = 5000;
const FOUND_MAX = 2000;
const SEARCH_MS = 250;
/** Pixels from an end at which more lines are requested. */
const NEAR_PX = 200;
/** Pixels from the end within which new lines are followed. */
const END_PX = 30;

/** Last position of the charts' cursor: the pointer leaves the chart on its way to the lines. */
const place = signal<{ key: string; x: number } | null>(null);

/** The metric that maps steps to times: the one with most points. */
function clockKey(r: RunDetail): string | null {
	const [most] = Object.entries(r.metrics).filter(([k]) => !k.startsWith('epoch/'))
		.sort((a, b) => b[1].count - a[1].count);
	return most ? most[0] : null;
}

/** Moves the charts' cursor to a time. */
async function showTime(r: RunDetail, ms: number): Promise<void> {
	const key = clockKey(r);
	const x = s.view.value.x;
	if (key === null) return;
	if (x === 'clock') return s.setCursor(key, ms / 1000);
	if (x === 'time') return s.setCursor(key, ms / 1000 - (r.start_time ?? 0) / 1000);
	const step = await stepAt(r.id, key, ms / 1000);
	if (step === null) return;
	const per = s.stepsPerEpoch(r);
	if (x === 'step' || per !== null) s.setCursor(key, x === 'step' ? step : step / per!);
}

/** Time of the charts' cursor in ms; null if unknown. */
async function timeAt(r: RunDetail, at: { key: string; x: number }): Promise<number | null> {
	const unit = s.unitOf(at.key);
	if (unit === 'clock') return at.x * 1000;
	if (unit === 'time') return at.x * 1000 + (r.start_time ?? 0);
	const per = s.stepsPerEpoch(r);
	const step = unit === 'step' ? at.x : at.key.startsWith('epoch/') ? at.x : per && at.x * per;
	const seconds = step ? await timeOf(r.id, unit === 'step' || per ? clockKey(r) ?? at.key : at.key,
		Math.round(step)) : null;
	return seconds === null ? null : seconds * 1000;
}

function Words({ text }: { text: string }) {
	return <>{piecesOf(text).map((p, i) => (p.colour === null && !p.bold ? p.text
		: <span key={i} class={(p.bold ? 'bold' : '') + (p.colour === null ? ''
			: ` c${p.colour % 8}`)}>{p.text}</span>))}</>;
}

/** Lines without overwritten ones; each with the number it replaces. */
function folded(lines: readonly ConsoleLine[], all: boolean): { line: ConsoleLine; over: number }[] {
	const out: { line: ConsoleLine; over: number }[] = [];
	const over = { true: 0, false: 0 };
	for (const line of lines) {
		const stream = String(line.error) as 'true' | 'false';
		if (line.again && !all) {
			over[stream]++;
			continue;
		}
		out.push({ line, over: over[stream] });
		over[stream] = 0;
	}
	return out;
}

interface LinesOptions {
	r: RunDetail;
	lines: readonly ConsoleLine[];
	all: boolean;
	/** The lines are search results. */
	found: boolean;
	marked: number | null;
	onLine: (l: ConsoleLine) => void;
}

/** Up and Down move between lines. */
function onArrow(e: KeyboardEvent): void {
	const line = (e.target as HTMLElement).closest('.line button')?.parentElement;
	const to = e.key === 'ArrowDown' ? line?.nextElementSibling
		: e.key === 'ArrowUp' ? line?.previousElementSibling : null;
	if (!to) return;
	e.preventDefault();
	to.querySelector('button')!.focus();
}

/** One line is in the tab order: the marked one, else the first result, else the last. */
function Lines({ r, lines, all, found, marked, onLine }: LinesOptions) {
	const list = folded(lines, all);
	const stop = list.find(({ line }) => line.n === marked) ?? list.at(found ? 0 : -1);
	return (
		<>{list.map(({ line, over }) => (
			<div key={line.n} class={'line' + (line.error ? ' err' : '') + (line.n === marked ? ' marked'
				: '')}
				data-line={line.n}>
				<button type="button" class="quiet" tabIndex={line === stop?.line ? 0 : -1}
					title="This time in the charts" onClick={() => {
						onLine(line);
						void showTime(r, line.time);
					}}>{clockText(line.time / 1000)}</button>
				<span><Words text={line.text} />{over > 0 && <span class="dim"
					title="Printed over, as progress bars do"> ⟲ {over}</span>}</span>
			</div>
		))}</>
	);
}

/** State of the console: one part, a piece around a line. */
class Reader {
	readonly loaded = signal<ConsoleText | null>(null);
	readonly lines = signal<ConsoleLine[]>([]);
	readonly found = signal<ConsoleLine[] | null>(null);
	readonly wrong = signal('');
	part: Pick<ConsolePart, 'rank' | 'segment'> | null = null;
	private busy = false;
	private seq = 0;

	constructor(readonly run: string) {}

	/** One request at a time; others are dropped. */
	private async once(f: () => Promise<void>): Promise<void> {
		if (this.busy) return;
		this.busy = true;
		try {
			await f();
			this.wrong.value = '';
		} catch (e) {
			this.wrong.value = (e as Error).message;
		} finally {
			this.busy = false;
		}
	}

	private async get(q: { from?: number; at?: number; limit?: number; search?: string }): Promise<ConsoleText> {
		const got = await getConsole(this.run, { limit: PIECE, ...this.part ?? {}, ...q });
		this.loaded.value = got;
		return got;
	}

	/** Loads the list of parts. */
	async peek(): Promise<void> {
		await this.once(async () => void await this.get({ from: -1, limit: 1 }));
	}

	/** Loads the end, the start of a part, or lines around one. */
	async show(from: number, at?: number): Promise<void> {
		await this.once(async () => {
			this.lines.value = (await this.get(at === undefined ? { from } : { from, at })).lines;
		});
	}

	async earlier(): Promise<void> {
		const first = this.lines.value[0]?.n ?? 0;
		if (first > 0) await this.once(async () => {
			const from = Math.max(0, first - PIECE);
			const { lines } = await this.get({ from, limit: first - from });
			this.lines.value = [...lines, ...this.lines.value].slice(0, HELD);
		});
	}

	async later(): Promise<void> {
		const last = this.lines.value.at(-1)?.n ?? -1;
		await this.once(async () => {
			const { lines } = await this.get({ from: last + 1 });
			if (lines.length) this.lines.value = [...this.lines.value, ...lines].slice(-HELD);
		});
	}

	get atEnd(): boolean {
		return (this.lines.value.at(-1)?.n ?? -1) + 1 >= (this.loaded.value?.total ?? 0);
	}

	async search(words: string): Promise<void> {
		const seq = ++this.seq;
		if (!words) return void (this.found.value = null);
		try {
			const got = await getConsole(this.run, { limit: FOUND_MAX, ...this.part ?? {}, from: 0,
				search: words });
			if (seq === this.seq) this.found.value = got.lines;
		} catch (e) {
			this.wrong.value = (e as Error).message;
		}
	}
}

function PartSelect({ of, choose }: { of: ConsoleText; choose: (p: ConsolePart) => void }) {
	if (of.parts.length < 2) return null;
	const idOf = (p: { rank: number; segment: number }) => `${p.rank} ${p.segment}`;
	const segments = new Set(of.parts.map((p) => p.segment)).size > 1;
	return (
		<select aria-label="Rank" value={idOf(of)}
			onChange={(e) => choose(of.parts.find((p) => idOf(p) === e.currentTarget.value)!)}>
			{of.parts.map((p) => <option key={idOf(p)} value={idOf(p)}>
				{p.rank < 0 ? 'whole run' : `rank ${p.rank}`}{segments ? `, segment ${p.segment}` : ''}
				{' '}({count(p.lines, 'line')})</option>)}
		</select>
	);
}

interface BarOptions {
	r: RunDetail;
	reader: Reader;
	words: Signal<string>;
	all: Signal<boolean>;
	jump: (n: number, at?: number) => void;
}

function Bar({ r, reader, words, all, jump }: BarOptions) {
	const timer = useRef(0);
	const loaded = reader.loaded.value!;
	const toPlace = async () => {
		const at = place.value && await timeAt(r, place.value);
		if (at !== null) jump(-PIECE / 2, at);
	};
	return (
		<p class="options">
			<PartSelect of={loaded} choose={(p) => {
				reader.part = { rank: p.rank, segment: p.segment };
				words.value = '';
				reader.found.value = null;
				jump(-PIECE);
			}} />
			<input type="search" placeholder={`Search ${count(loaded.total, 'line')}`}
				aria-label="Search the console" value={words.value} onInput={(e) => {
					words.value = e.currentTarget.value;
					clearTimeout(timer.current);
					timer.current = window.setTimeout(() => void reader.search(words.value),
						SEARCH_MS);
				}} />
			<button type="button" onClick={() => jump(0)}>First line</button>
			<button type="button" onClick={() => jump(-PIECE)}>Last line</button>
			<button type="button" disabled={!place.value} onClick={() => void toPlace()}
				title="The lines of the time at which the pointer stood in a chart">At cursor</button>
			<label><input type="checkbox" checked={all.value}
				onChange={() => (all.value = !all.value)} /> Overwritten lines</label>
			<span class="problem" role="status">{reader.wrong.value}</span>
		</p>
	);
}

/** Loads more lines near an end, and follows the end while the run prints. */
function useScroll(box: RefObject<HTMLDivElement | null>, reader: Reader, end: Signal<boolean>): () => void {
	useSignalEffect(() => {
		void reader.lines.value;
		if (end.peek()) requestAnimationFrame(() => box.current?.scrollTo(0, box.current.scrollHeight));
	});
	useSignalEffect(() => {
		if (s.liveRev.value && end.peek()) void reader.later();
	});
	return () => {
		const el = box.current!;
		const left = el.scrollHeight - el.scrollTop - el.clientHeight;
		end.value = left < END_PX && reader.atEnd;
		if (left < NEAR_PX && !reader.atEnd) void reader.later();
		if (el.scrollTop < NEAR_PX && reader.lines.value[0]?.n) {
			const height = el.scrollHeight;
			void reader.earlier().then(() => requestAnimationFrame(() =>
				el.scrollTo(0, el.scrollTop + el.scrollHeight - height)));
		}
	};
}

function Body({ r, reader }: { r: RunDetail; reader: Reader }) {
	const box = useRef<HTMLDivElement>(null);
	const words = useSignal('');
	const all = useSignal(false);
	const end = useSignal(true);
	const marked = useSignal<number | null>(null);
	const onScroll = useScroll(box, reader, end);
	const jump = (from: number, at?: number, line?: number) => {
		end.value = from === -PIECE;
		void reader.show(from, at).then(() => requestAnimationFrame(() => {
			const last = at === undefined ? undefined
				: reader.lines.value.filter((l) => l.time <= at).at(-1);
			const mark = last?.n ?? line ?? null;
			marked.value = mark;
			if (mark === null) box.current?.scrollTo(0, end.value ? box.current.scrollHeight : 0);
			else {
				const el = box.current?.querySelector(`[data-line="${mark}"]`);
				el?.scrollIntoView({ block: 'center' });
				// the pressed result is loaded
				if (line !== undefined) el?.querySelector('button')?.focus({ preventScroll: true });
			}
		}));
	};
	useEffect(() => jump(-PIECE), []);
	const found = reader.found.value;
	const options = { r, all: all.value, found: found !== null, marked: marked.value, onLine: (l: ConsoleLine) => {
		marked.value = l.n;
		if (!found) return;
		box.current?.focus({ preventScroll: true }); // the focused line disappears
		words.value = '';
		reader.found.value = null;
		jump(Math.max(0, l.n - PIECE / 2), undefined, l.n);
	} };
	return (
		<div class="card console">
			<Bar r={r} reader={reader} words={words} all={all} jump={jump} />
			{found && <p class="dim" role="status">{found.length >= FOUND_MAX
				? `The first ${FOUND_MAX} lines` : count(found.length,
				'line')} with “{words.value}”; a click on the time leads there</p>}
			<div class="screen" ref={box} tabIndex={0} role="log" aria-label={`Console of ${r.name}`}
				onScroll={found ? undefined : onScroll} onKeyDown={onArrow}>
				<Lines {...options} lines={found ?? reader.lines.value} />
			</div>
		</div>
	);
}

export function Console({ r }: { r: RunDetail }) {
	const open = useSignal(true);
	const reader = useRef(new Reader(r.id)).current;
	useEffect(() => void reader.peek(), []);
	useSignalEffect(() => {
		if (s.cursor.value) place.value = s.cursor.value;
	});
	const loaded = reader.loaded.value;
	if (!loaded?.parts.length) return null;
	return (
		<section class="group" aria-label="Console">
			<GroupHead open={open.value} toggle={() => (open.value = !open.value)} name="Console"
				count={count(loaded.parts.reduce((n, p) => n + p.lines, 0), 'line')} />
			{open.value && <Body r={r} reader={reader} />}
		</section>
	);
}
