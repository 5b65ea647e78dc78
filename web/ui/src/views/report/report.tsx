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
import { List, type Column } from '../base/lists/list.tsx';
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

const COLUMNS: readonly Column<ReportHead>[] = [
	{ head: 'Name', cell: (r) => <a href={s.addressOf(pageOf(r.id))}
		onClick={followed(() => open(r.id))}>{r.name}</a> },
	{ head: 'Experiment', cell: (r) => r.experiment },
	{ head: 'Version', cell: (r) => r.edition, num: true },
	{ head: 'Last change', cell: (r) => when(r.changed), num: true },
	{ head: 'By', cell: (r) => r.by, wide: true },
];

function AllReports({ experiment }: { experiment: string | null }) {
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
			<h1>Reports {experiment !== null && <small class="dim">{experiment}</small>}</h1>
			{s.experiment.value !== null && mayWrite(s.experiment.value)
				&& <NewReport experiment={experiment ?? s.experiment.value} fail={fail} />}
			{wrong.value && <p class="problem" role="alert">{wrong.value}</p>}
			{undo.value && <p class="dim" role="status">{undo.value.name} is deleted. <button
				type="button" onClick={() => void again()}>Undo</button></p>}
			<List label="Reports" rows={list} id={(r) => r.id} columns={COLUMNS}
				acts={(r) => mayWrite(r.experiment) && <button type="button" class="quiet"
					aria-label={`Delete ${r.name}`}
					onClick={() => void remove(r)}>Delete</button>}
				none={<Empty title="No reports yet"><p>A report is a text in Markdown with
					charts of runs between: live ones, or frozen as they were.</p></Empty>} />
		</>
	);
}

export function Reports() {
	const { report, edition, experiment } = s.view.value;
	return (
		<><main class="reports">
			{report ? <Document key={report} id={report} edition={edition} />
				: <AllReports experiment={experiment} />}
		</main><Header /></>
	);
}
