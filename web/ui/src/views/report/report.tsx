// SPDX-License-Identifier: Apache-2.0
// Page of reports: the list of an experiment or of all, or one report.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { when } from '../../base/format.ts';
import * as s from '../../state/index.ts';
import { deleteReport, loadReports, makeReport, reports } from '../../state/saved/reports.ts';
import type { Report, ReportHead } from '../../state/saved/reports.ts';
import { filled, parts, Str } from '../../strings/en.ts';
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
			<input aria-label={Str.NameOfTheReport} placeholder={filled(Str.ANewReportOfX, experiment)}
				value={name.value} onInput={(e) => (name.value = e.currentTarget.value)} />
			<button type="submit" disabled={!name.value.trim()}>{Str.NewReport}</button>
		</form>
	);
}

function Line({ r, remove }: { r: ReportHead; remove: (() => void) | null }) {
	return (
		<tr><td><a href={s.addressOf(pageOf(r.id))} onClick={followed(() => open(r.id))}>{r.name}</a></td>
			<td>{r.experiment}</td><td class="num">{r.edition}</td><td class="num">{when(r.changed)}</td>
			<td>{remove && <button type="button" class="quiet" aria-label={filled(Str.DeleteX, r.name)}
				onClick={remove}>{Str.Delete}</button>}</td></tr>
	);
}

function List({ experiment }: { experiment: string | null }) {
	const wrong = useSignal('');
	const undo = useSignal<{ name: string; again: () => Promise<Report> } | null>(null);
	useEffect(() => {
		document.title = Str.ReportsDptrack;
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
	const mayWrite = s.session.value?.mayWrite === true;
	const list = reports.value;
	if (!list) return <div class="wait" aria-busy="true" />;
	return (
		<>
			<h1>{Str.Reports}{experiment !== null && <span class="dim"> {parts(Str.ofX,
				experiment)}</span>}</h1>
			{mayWrite && s.experiment.value !== null
				&& <NewReport experiment={experiment ?? s.experiment.value} fail={fail} />}
			{wrong.value && <p class="problem" role="alert">{wrong.value}</p>}
			{undo.value && <p class="dim" role="status">{parts(Str.xIsDeleted, undo.value.name)} <button
				type="button" onClick={() => void again()}>{Str.Undo}</button></p>}
			{list.length ? <div class="box scroll"><table>
				<thead><tr><th>{Str.Name}</th><th>{Str.Experiment}</th><th>{Str.Version}</th>
					<th>{Str.LastChange}</th>
					<th><span class="unseen">{Str.Changes}</span></th></tr></thead>
				<tbody>{list.map((r) => <Line key={r.id} r={r}
					remove={mayWrite ? () => void remove(r) : null} />)}</tbody></table></div>
				: <Empty title={Str.NoReportsYet}><p>{Str.AReportIsATextIn}</p></Empty>}
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
