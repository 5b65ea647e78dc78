// SPDX-License-Identifier: Apache-2.0
// Page of reports: the list of an experiment or of all, or one report.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { when } from '../../base/format.ts';
import { mayWrite } from '../../state/access.ts';
import * as s from '../../state/index.ts';
import { deleteReport, loadReports, makeReport, reports } from '../../state/saved/reports.ts';
import type { Report, ReportHead } from '../../state/saved/reports.ts';
import { Empty, followed } from '../base/bits.tsx';
import '../base/later.ts';
import { addStyles } from '../base/styles.ts';
import { Header } from '../header/header.tsx';
import { Document } from './document.tsx';
import text from './report.part.css';

addStyles(text);

const pageOf = (id: string) => ({ page: 'report' as const, report: id, edition: null });
const open = (id: string) => s.go(pageOf(id), true);

function NewReport({ experiment, fail }: { experiment: string; fail: (e: Error) => void }) {
	const name = useSignal('');
	const make = () => makeReport(experiment, name.value.trim(), '').then((r) => open(r.id), fail);
	return (
		<form class="tagform" onSubmit={(e) => {
			e.preventDefault();
			if (name.value.trim()) void make();
		}}>
			<input aria-label="Name of the report" placeholder={`A new report of ${experiment}`}
				value={name.value} onInput={(e) => (name.value = e.currentTarget.value)} />
			<button type="submit" disabled={!name.value.trim()}>New report</button>
		</form>
	);
}

function Line({ r, remove }: { r: ReportHead; remove: (() => void) | null }) {
	return (
		<tr><td><a href={s.addressOf(pageOf(r.id))} onClick={followed(() => open(r.id))}>{r.name}</a></td>
			<td>{r.experiment}</td><td class="num">{r.edition}</td><td class="num">{when(r.changed)}</td>
			<td>{r.by}</td>
			<td>{remove && <button type="button" class="quiet" aria-label={`Delete ${r.name}`}
				onClick={remove}>Delete</button>}</td></tr>
	);
}

function List({ experiment }: { experiment: string | null }) {
	const wrong = useSignal('');
	const undo = useSignal<{ name: string; again: () => Promise<Report> } | null>(null);
	useEffect(() => {
		document.title = 'Reports · dptrack';
		void loadReports(experiment);
	}, [experiment]);
	const fail = (e: Error) => (wrong.value = e.message);
	const remove = (r: ReportHead) => deleteReport(r.id).then((again) => {
		undo.value = { name: r.name, again };
		return loadReports(experiment);
	}, fail);
	const again = () => undo.value!.again().then(() => {
		undo.value = null;
		return loadReports(experiment);
	}, fail);
	const list = reports.value;
	if (!list) return <div class="wait" aria-busy="true" />;
	return (
		<>
			<h1>Reports{experiment !== null && <span class="dim"> of {experiment}</span>}</h1>
			{s.experiment.value !== null && mayWrite(s.experiment.value)
				&& <NewReport experiment={experiment ?? s.experiment.value} fail={fail} />}
			{wrong.value && <p class="problem" role="alert">{wrong.value}</p>}
			{undo.value && <p class="dim" role="status">{undo.value.name} is deleted. <button
				type="button" onClick={() => void again()}>Undo</button></p>}
			{list.length ? <div class="box scroll"><table>
				<thead><tr><th>Name</th><th>Experiment</th><th>Version</th>
					<th>Last change</th><th>By</th>
					<th><span class="unseen">Changes</span></th></tr></thead>
				<tbody>{list.map((r) => <Line key={r.id} r={r}
					remove={mayWrite(r.experiment) ? () => void remove(r) :
						null} />)}</tbody></table></div>
				: <Empty title="No reports yet"><p>A report is a text in Markdown with charts of runs
					between: live ones, or frozen as they were.</p></Empty>}
		</>
	);
}

export function Reports() {
	const { report, edition, experiment } = s.view.value;
	return (
		<><main class="reports">
			{report ? <Document key={report} id={report} edition={edition} />
				: <List experiment={experiment} />}
		</main><Header /></>
	);
}
