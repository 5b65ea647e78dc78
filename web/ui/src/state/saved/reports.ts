// Reports that readers keep: their texts, what a panel of one shows now, and what it showed when it was frozen. Loaded
// with the page of reports.
import { signal } from '@preact/signals';
import { readReport, withFrozen, type ReportPanel } from '../../base/report.ts';
import type { Run } from '../../base/types.ts';
import { getRuns, request, seriesIn, type Json, type SeriesReply } from '../server/api.ts';
import { askWhole, report as complain } from '../index.ts';

/** Runs and metrics of a panel at most: more lines than can be told apart. */
const RUNS_MAX = 12;
const METRICS_MAX = 8;
/** Points that a panel's chart has room for. */
const BUCKETS = 200;

export interface ReportHead {
	id: string;
	name: string;
	experiment: string;
	edition: number;
	changed: number;
}

export interface Report extends ReportHead {
	text: string;
	/** The texts that it had and that are still there, the oldest first. */
	editions: { edition: number; time: number }[];
}

/** What a panel shows: runs and their series as REST said them. */
export interface PanelData {
	/** When it was asked for, in milliseconds since 1970. */
	time: number;
	runs: Pick<Run, 'id' | 'name'>[];
	/** As the server sent them. */
	sent: Json[];
	series: SeriesReply[];
	/** There are more runs or metrics than a panel shows. */
	more: boolean;
}

/** Those of the experiment or of all, null until they are here. */
export const reports = signal<ReportHead[] | null>(null);

function headOf(r: Json): ReportHead {
	return { id: String(r.id), name: String(r.name), experiment: String(r.experiment), edition: Number(r.edition),
		changed: Number(r.changed_time) };
}

function reportOf(r: Json): Report {
	const editions = r.editions as { edition: number; time: number }[];
	return { ...headOf(r), text: String(r.text), editions };
}

export async function loadReports(experiment: string | null): Promise<void> {
	try {
		const of = experiment === null ? '' : '?experiment=' + encodeURIComponent(experiment);
		reports.value = ((await request('reports' + of)).reports as Json[]).map(headOf);
	} catch (e) {
		complain(e);
	}
}

/** One of them; edition null: as it is now. Throws what the server refuses, as all of these do. */
export async function getReport(id: string, edition: number | null): Promise<Report> {
	const which = edition === null ? '' : `?edition=${edition}`;
	return reportOf(await request('reports/' + encodeURIComponent(id) + which));
}

export async function makeReport(experiment: string, name: string, text: string): Promise<Report> {
	return reportOf(await request('reports', { experiment, name, text }));
}

export async function changeReport(id: string, change: { name?: string; text?: string }): Promise<Report> {
	return reportOf(await request('reports/' + id, change, 'PATCH'));
}

/** Deletes it; what brings its newest text back comes back. */
export async function deleteReport(id: string): Promise<() => Promise<Report>> {
	const was = reportOf(await request('reports/' + id, undefined, 'DELETE'));
	return () => makeReport(was.experiment, was.name, was.text);
}

async function runsOf(p: ReportPanel, experiment: string): Promise<{ runs: Run[]; more: boolean }> {
	const asked = { experiment: p.experiment || experiment, fields: ['tags'] };
	if (!p.runs.length) {
		const got = await getRuns({ ...asked, filter: p.filter, limit: RUNS_MAX });
		return { runs: got.runs, more: got.next !== null };
	}
	const ids = p.runs.slice(0, RUNS_MAX);
	const more = p.runs.length > RUNS_MAX;
	const whole = ids.filter((id) => id.length === 32);
	if (whole.length === ids.length)
		return { runs: (await getRuns({ ids, limit: RUNS_MAX, fields: ['tags'] })).runs, more };
	const all = await getRuns({ ...asked, limit: 1000 });
	const found = ids.flatMap((id) => all.runs.filter((r) => r.id.startsWith(id)));
	return { runs: found, more };
}

/** What a panel shows now. */
export async function panelNow(p: ReportPanel, experiment: string): Promise<PanelData> {
	const { runs, more } = await runsOf(p, experiment);
	const keys = p.metrics.slice(0, METRICS_MAX);
	const sent = runs.length && keys.length ? await askWhole(runs.map((r) => r.id), keys, BUCKETS, p.x) : [];
	return { time: Date.now(), runs: runs.map(({ id, name }) => ({ id, name })), sent, series: seriesIn(sent),
		more: more || p.metrics.length > METRICS_MAX };
}

/** What a frozen panel holds; null where its block is lost or cannot be read. */
export function frozenData(text: string, number: number): PanelData | null {
	try {
		const { time, runs, series } = JSON.parse(readReport(text).data.get(number)!) as Json;
		const sent = series as Json[];
		return { time: time as number, runs: runs as PanelData['runs'], sent, series: seriesIn(sent),
			more: false };
	} catch {
		return null;
	}
}

/** The text with its panels at these parts frozen to what they show now. */
export async function freeze(r: Report, parts: readonly number[]): Promise<string> {
	let text = r.text;
	for (const at of parts) {
		const part = readReport(text).parts[at];
		if (!part || !('panel' in part) || part.panel.frozen !== null) continue;
		const { time, runs, sent } = await panelNow(part.panel, r.experiment);
		text = withFrozen(text, at, JSON.stringify({ time, runs, series: sent }));
	}
	return text;
}
