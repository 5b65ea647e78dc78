// SPDX-License-Identifier: Apache-2.0
// Adds a chart to a report of the experiment, or to a new one: the metric with the axes, groups and runs of the view.
// Loaded when its panel opens.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { panelBlock, withPanel } from '../../base/report.ts';
import { isExpression } from '../../base/filter/filter.ts';
import { storedBy } from '../../state/draft.ts';
import * as s from '../../state/index.ts';
import { changeReport, getReport, loadReports, makeReport, reports, type Report } from '../../state/saved/reports.ts';
import { CopyLink } from '../base/copytext.tsx';
import { followed, Panel } from '../base/bits.tsx';

const AXES = { step: 'step', epoch: 'epoch', time: 'elapsed', clock: 'clock' } as const;

/** The chart in the words of a report; of: the key of its limits. Runs are named unless
 * the filter finds all that are drawn, and no others. */
function wordsOf(metric: string, of: string) {
	const { x, log, logX, full, smooth, shown, filter, group, band, middle, limits } = s.view.value;
	const found = shown === null && (filter.trim() === '' || isExpression(filter))
		&& s.drawn.value.length === s.rows.value.length && !s.runs.value.some(s.isArchived);
	const chosen = found ? [] : s.drawn.value.map((r) => r.id.slice(0, 8));
	return { metrics: metric, x: AXES[x], log, logX, range: s.zoomOf(metric), limits: limits[of] ?? [null, null],
		full, smooth, group: s.isGrouped.value ? group : [], band, line: middle, runs: chosen,
		filter: chosen.length || !isExpression(filter) ? '' : filter };
}

const pageOf = (id: string) => ({ page: 'report' as const, report: id, edition: null });

export function AddToReport({ metric, of, close }: { metric: string; of: string; close: () => void }) {
	const experiment = s.experiment.value ?? '';
	const name = useSignal('');
	const wrong = useSignal('');
	const done = useSignal<{ id: string; name: string } | null>(null);
	useEffect(() => void loadReports(experiment), [experiment]);
	const take = (work: Promise<{ id: string; name: string }>) =>
		work.then((r) => (done.value = r), (e: Error) => (wrong.value = e.message));
	// again if another author saved the report meanwhile
	const put = (id: string): Promise<Report> => getReport(id, null).then((r) =>
		changeReport(id, { text: withPanel(r.text, wordsOf(metric, of)) }, r.etag)
			.catch((e: Error) => storedBy(e) ? put(id) : Promise.reject(e)));
	const add = (id: string) => take(put(id));
	const make = () => take(makeReport(experiment, name.value.trim(), panelBlock(wordsOf(metric, of)) + '\n'));
	if (done.value) {
		const { id, name: title } = done.value;
		return <Panel key="done" label="Add to report" close={close}>
			<span role="status">Added to <a href={s.addressOf(pageOf(id))}
				onClick={followed(() => s.go(pageOf(id), true))}>{title}</a>.</span>
			<span class="options"><CopyLink to={{ experiment, ...pageOf(id) }} /></span></Panel>;
	}
	return (
		<Panel label="Add to report" close={close}>
			<form class="tagform" onSubmit={(e) => {
				e.preventDefault();
				if (name.value.trim()) void make();
			}}>
				<input aria-label="Name of a new report" placeholder="Name of a new report"
					value={name.value} onInput={(e) => (name.value = e.currentTarget.value)} />
				<button type="submit" disabled={!name.value.trim()}>New report</button>
			</form>
			{!!reports.value?.length && <ul class="files">{reports.value.map((r) => (
				<li key={r.id}><button type="button" class="quiet"
					onClick={() => void add(r.id)}>{r.name}</button></li>))}</ul>}
			{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}
		</Panel>
	);
}
