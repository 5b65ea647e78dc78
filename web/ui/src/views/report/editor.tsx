// SPDX-License-Identifier: Apache-2.0
// Editor of a report's text without frozen data: the text, a live preview next to it, and a form that adds a panel for
// the runs of a filter.
import { useSignal, useSignalEffect, type Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { bodyOf, panelBlock, withBody } from '../../base/report.ts';
import { isExpression } from '../../base/filter/filter.ts';
import { keepDraft, readDraft, storedBy } from '../../state/draft.ts';
import * as s from '../../state/index.ts';
import { getReport, type Report } from '../../state/saved/reports.ts';
import { Conflict } from '../base/conflict.tsx';
import { useFocus } from '../base/focus.ts';

const ROWS = 30;
/** The preview follows the text after this pause. */
const PAUSE_MS = 300;

interface Options {
	r: Report;
	/** Saves the text, drops the draft. seen: ETag of the report that it replaces. Throws if the server refuses. */
	save: (text: string, seen: string) => Promise<void>;
	close: () => void;
	/** Shows what is stored. */
	reload: () => void;
	/** Renders a text. */
	preview: (text: string) => ComponentChildren;
}

type Which = 'filter' | 'shown';

type Words = Omit<Parameters<typeof panelBlock>[0], 'metrics'>;
const AXES = ['step', 'elapsed', 'epoch', 'clock'] as const;

/** Settings of a panel that most do without. */
function Settings({ of }: { of: Signal<Words> }) {
	const w = of.value;
	const set = (part: Words) => (of.value = { ...w, ...part });
	const check = (key: 'logX' | 'log' | 'full', word: string) => (
		<label><input type="checkbox" checked={w[key] ?? false}
			onChange={(e) => set({ [key]: e.currentTarget.checked })} />{word}</label>
	);
	const ends = (key: 'range' | 'limits', at: 0 | 1, word: string) => (
		<label>{word}<input type="number" step="any" placeholder="Auto" onInput={(e) => {
			const list = [...w[key] ?? [null, null]];
			list[at] = Number.isNaN(e.currentTarget.valueAsNumber) ? null : e.currentTarget.valueAsNumber;
			set({ [key]: list });
		}} /></label>
	);
	return (
		<details class="panelsettings"><summary>Settings of the panel</summary><div class="options">
			<label>Title<input value={w.title ?? ''}
				onInput={(e) => set({ title: e.currentTarget.value })} /></label>
			<label>X<select value={w.x ?? 'step'} onChange={(e) =>
				set({ x: e.currentTarget.value as typeof AXES[number] })}>
				{AXES.map((x) => <option key={x} value={x}>{x}</option>)}</select></label>
			{ends('range', 0, 'X from')}{ends('range', 1, 'X to')}{check('logX', 'Log x')}
			{ends('limits', 0, 'Y from')}{ends('limits', 1, 'Y to')}{check('log', 'Log y')}
			{check('full', 'Full range of y')}
			<label>Smooth<input type="number" min="0" max="0.99" step="0.01" value={w.smooth ?? 0}
				onInput={(e) => set({ smooth: e.currentTarget.valueAsNumber || 0 })} /></label>
			<label>Group by<input value={w.group?.join(', ') ?? ''} placeholder="Params: model, lr"
				onChange={(e) => set({ group: e.currentTarget.value.split(',').map((k) => k.trim())
					.filter(Boolean) })} /></label>
			<span class="dim">In the text also: band (minmax, std, se, t95), line (mean, median),
				experiment, a line each</span>
		</div></details>
	);
}

/** Words without a range of which one end is missing. */
const finished = ({ range, ...w }: Words): Words =>
	(range && range.every((v: number | null) => v !== null) ? { ...w, range } : w);

/** Form for a panel of metrics of the runs of a filter, or of those charted now. */
function AddPanel({ add }: { add: (block: string) => void }) {
	const metric = useSignal('');
	const which = useSignal<Which>('filter');
	const filter = useSignal(isExpression(s.view.value.filter) ? s.view.value.filter : '');
	const charted = s.shown.value.map((r) => r.id.slice(0, 8));
	const more = useSignal<Words>({});
	const block = () => panelBlock({ ...finished(more.value), metrics: metric.value.trim(),
		...which.value === 'shown' ? { runs: charted } : { filter: filter.value } });
	return (
		<form class="options" onSubmit={(e) => {
			e.preventDefault();
			if (metric.value.trim()) add(block());
		}}>
			<input aria-label="Metrics of the panel" placeholder="Metrics: train/loss, val/loss"
				list="reportkeys" value={metric.value}
				onInput={(e) => (metric.value = e.currentTarget.value)} />
			<datalist id="reportkeys">{s.metricKeys.value.map((k) =>
				<option key={k} value={k} />)}</datalist>
			<select aria-label="Runs of the panel" value={which.value}
				onChange={(e) => (which.value = e.currentTarget.value as Which)}>
				<option value="filter">Runs of a filter</option>
				<option value="shown">The {charted.length} charted runs</option></select>
			{which.value === 'filter' && <input aria-label="Filter of the panel" value={filter.value}
				placeholder="Filter: params.lr > 0.1 (empty: the newest runs)"
				onInput={(e) => (filter.value = e.currentTarget.value)} />}
			<button type="submit">Add panel</button>
			<Settings of={more} />
		</form>
	);
}

/** What is typed is a draft until it is saved. */
export function Editor({ r, save, close, reload, preview }: Options) {
	const { text } = r;
	const draft = readDraft('report-' + r.id);
	const body = useSignal(draft?.text ?? bodyOf(text));
	const seen = useSignal(body.value);
	const wrong = useSignal('');
	const theirs = useSignal<{ text: string; etag: string } | null>(null);
	const etag = draft?.etag ?? r.etag;
	const box = useRef<HTMLTextAreaElement>(null);
	useFocus(box, []);
	useSignalEffect(() => {
		const now = body.value;
		keepDraft('report-' + r.id, now === bodyOf(text) ? null : { text: now, etag });
		const later = setTimeout(() => (seen.value = now), PAUSE_MS);
		return () => clearTimeout(later);
	});
	const add = (block: string) => {
		const at = box.current?.selectionEnd ?? body.value.length;
		const before = body.value.slice(0, at).replace(/\n*$/, '\n\n');
		body.value = before.trimStart() + block + '\n' + body.value.slice(at).replace(/^\n*/, '\n');
	};
	const put = (words: string, over = etag) => save(withBody(theirs.value?.text ?? text, words), over).catch(
		async (e: Error) => {
			if (storedBy(e)) theirs.value = await getReport(r.id, null);
			wrong.value = storedBy(e) ? '' : e.message;
		});
	const begin = () => put(body.value);
	const leave = () => {
		keepDraft('report-' + r.id, null);
		close();
	};
	return (
		<div class="box reporteditor" onKeyDown={(e) => {
			if (e.key !== 's' || !(e.ctrlKey || e.metaKey)) return;
			e.preventDefault();
			void begin();
		}}>
			<AddPanel add={add} />
			<div class="both">
				<textarea ref={box} aria-label="Text of the report" rows={ROWS} value={body.value}
					onInput={(e) => (body.value = e.currentTarget.value)} />
				<section class="reporttext" aria-label="Preview" tabIndex={0}>
					{preview(withBody(text, seen.value))}</section>
			</div>
			{theirs.value && <Conflict what="This report" base={bodyOf(text)} mine={body.value}
				theirs={bodyOf(theirs.value.text)} save={(words) => void put(words, theirs.value!.etag)}
				drop={() => {
					leave();
					reload();
				}} />}
			<p class="options"><button type="button" class="primary" onClick={() => void
				begin()}>Save</button>
				<button type="button" onClick={leave}>Cancel</button>
				<span class="dim">Markdown</span>
				{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}</p>
		</div>
	);
}
