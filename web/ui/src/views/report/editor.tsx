// SPDX-License-Identifier: Apache-2.0
// Editor of a report's text without frozen data, with a form that adds a panel.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { bodyOf, withBody } from '../../base/report.ts';
import * as s from '../../state/index.ts';

const ROWS = 24;

interface Options {
	text: string;
	/** Throws if the server refuses. */
	save: (text: string) => Promise<void>;
	close: () => void;
}

/** Form for a panel of metrics of the newest or the charted runs. */
function blockOf(metrics: string, only: boolean): string {
	const runs = only ? [`runs: ${s.shown.value.map((r) => r.id.slice(0, 8)).join(' ')}`] : [];
	return ['', '```panel', `metrics: ${metrics}`, ...runs, '```', ''].join('\n');
}

function AddPanel({ add }: { add: (block: string) => void }) {
	const metric = useSignal('');
	const which = useSignal<'all' | 'shown'>('all');
	return (
		<form class="options" onSubmit={(e) => {
			e.preventDefault();
			if (metric.value.trim()) add(blockOf(metric.value.trim(), which.value === 'shown'));
		}}>
			<input aria-label="Metrics of the panel" placeholder="metrics: train/loss, val/loss"
				list="reportkeys" value={metric.value}
				onInput={(e) => (metric.value = e.currentTarget.value)} />
			<datalist id="reportkeys">{s.metricKeys.value.map((k) =>
				<option key={k} value={k} />)}</datalist>
			<select aria-label="Runs of the panel" value={which.value}
				onChange={(e) => (which.value = e.currentTarget.value as 'all' | 'shown')}>
				<option value="all">the newest runs</option>
				<option value="shown">these {s.shown.value.length} of the charts</option></select>
			<button type="submit">add a panel</button>
		</form>
	);
}

export function Editor({ text, save, close }: Options) {
	const body = useSignal(bodyOf(text));
	const wrong = useSignal('');
	const box = useRef<HTMLTextAreaElement>(null);
	const add = (block: string) => {
		const at = box.current?.selectionEnd ?? body.value.length;
		const before = body.value.slice(0, at).replace(/\n*$/, '\n');
		body.value = before + block + body.value.slice(at).replace(/^\n*/, '\n');
	};
	const begin = () => save(withBody(text, body.value)).catch((e: Error) => (wrong.value = e.message));
	return (
		<div class="box reporteditor">
			<AddPanel add={add} />
			<textarea ref={box} aria-label="Text of the report" rows={ROWS} value={body.value}
				onInput={(e) => (body.value = e.currentTarget.value)} />
			<p class="options"><button type="button" onClick={() => void begin()}>save</button>
				<button type="button" onClick={close}>cancel</button>
				<span class="dim">Markdown. A panel takes metrics, runs or filter, x (step, elapsed,
					epoch), scale (log), title, experiment: a line each.</span>
				{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}</p>
		</div>
	);
}
