// SPDX-License-Identifier: Apache-2.0
// Editor of a report's text without frozen data: the text, a live preview next to it, and a form that adds a panel for
// the runs of a filter.
import { useSignal, useSignalEffect } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { bodyOf, panelBlock, withBody } from '../../base/report.ts';
import { isExpression } from '../../base/filter/filter.ts';
import { keepDraft, readDraft, storedBy } from '../../state/draft.ts';
import * as s from '../../state/index.ts';
import { getReport, type Report } from '../../state/saved/reports.ts';
import { Conflict } from '../base/conflict.tsx';

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

/** Form for a panel of metrics of the runs of a filter, or of those charted now. */
function AddPanel({ add }: { add: (block: string) => void }) {
	const metric = useSignal('');
	const which = useSignal<Which>('filter');
	const filter = useSignal(isExpression(s.view.value.filter) ? s.view.value.filter : '');
	const charted = s.shown.value.map((r) => r.id.slice(0, 8));
	const block = () => panelBlock({ metrics: metric.value.trim(),
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
				<span class="dim">
					Markdown. A panel takes metrics, runs or filter, x (step, elapsed, epoch,
					clock), range (of x), xscale and scale (log), limits (of y), full (yes: the full
					range of y), smooth (0 to 0.99), group (params or t:tag), band (minmax, std, se,
					t95), line (mean, median), title, experiment: a line each.</span>
				{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}</p>
		</div>
	);
}
