// SPDX-License-Identifier: Apache-2.0
// Editor of a report's text without frozen data: the text, a live preview next to it, and a form that adds a panel for
// the runs of a filter.
import { useSignal, useSignalEffect } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { bodyOf, panelBlock, withBody } from '../../base/report.ts';
import { isExpression } from '../../base/filter/filter.ts';
import * as s from '../../state/index.ts';
import { parts, Str } from '../../strings/en.ts';

const ROWS = 30;
/** The preview follows the text after this pause. */
const PAUSE_MS = 300;

interface Options {
	text: string;
	/** Throws if the server refuses. */
	save: (text: string) => Promise<void>;
	close: () => void;
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
			<input aria-label={Str.MetricsOfThePanel} placeholder={Str.MetricsTrainLossValLoss}
				list="reportkeys" value={metric.value}
				onInput={(e) => (metric.value = e.currentTarget.value)} />
			<datalist id="reportkeys">{s.metricKeys.value.map((k) =>
				<option key={k} value={k} />)}</datalist>
			<select aria-label={Str.RunsOfThePanel} value={which.value}
				onChange={(e) => (which.value = e.currentTarget.value as Which)}>
				<option value="filter">{Str.RunsOfAFilter}</option>
				<option value="shown">{parts(Str.TheXChartedRuns, charted.length)}</option></select>
			{which.value === 'filter' && <input aria-label={Str.FilterOfThePanel} value={filter.value}
				placeholder={Str.FilterParamsLr01Empty}
				onInput={(e) => (filter.value = e.currentTarget.value)} />}
			<button type="submit">{Str.AddPanel}</button>
		</form>
	);
}

export function Editor({ text, save, close, preview }: Options) {
	const body = useSignal(bodyOf(text));
	const seen = useSignal(body.value);
	const wrong = useSignal('');
	const box = useRef<HTMLTextAreaElement>(null);
	useSignalEffect(() => {
		const now = body.value;
		const later = setTimeout(() => (seen.value = now), PAUSE_MS);
		return () => clearTimeout(later);
	});
	const add = (block: string) => {
		const at = box.current?.selectionEnd ?? body.value.length;
		const before = body.value.slice(0, at).replace(/\n*$/, '\n\n');
		body.value = before.trimStart() + block + '\n' + body.value.slice(at).replace(/^\n*/, '\n');
	};
	const begin = () => save(withBody(text, body.value)).catch((e: Error) => (wrong.value = e.message));
	return (
		<div class="box reporteditor" onKeyDown={(e) => {
			if (e.key !== 's' || !(e.ctrlKey || e.metaKey)) return;
			e.preventDefault();
			void begin();
		}}>
			<AddPanel add={add} />
			<div class="both">
				<textarea ref={box} aria-label={Str.TextOfTheReport} rows={ROWS} value={body.value}
					onInput={(e) => (body.value = e.currentTarget.value)} />
				<section class="reporttext" aria-label={Str.Preview} tabIndex={0}>
					{preview(withBody(text, seen.value))}</section>
			</div>
			<p class="options"><button type="button" onClick={() => void begin()}>{Str.Save}</button>
				<button type="button" onClick={close}>{Str.Cancel}</button>
				<span class="dim">{Str.MarkdownAPanelTakesMetrics}</span>
				{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}</p>
		</div>
	);
}
