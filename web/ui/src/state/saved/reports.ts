// SPDX-License-Identifier: Apache-2.0
// Saved reports: their texts, current data of a panel, and frozen data. Loaded with the page of reports.
import { signal } from '@preact/signals';
import { assignLooks, type Look } from '../../base/colour.ts';
import { fallenText, fieldAddress, groupRuns, groupTitles, isFallen } from '../../base/group.ts';
import { FIRST } from '../../base/params.ts';
import { readReport, withFrozen, type ReportPanel } from '../../base/report.ts';
import type { Run } from '../../base/types.ts';
import { getRuns, request, seriesIn, type GroupReply, type Json, type SeriesReply } from '../server/api.ts';
import { oldest } from '../grouped.ts';
import { askPanel, askPanelGroups } from '../exact.ts';
import { autoLooks, FIRST_PAGE, HELD_MAX, NEXT_PAGE, PARAMS_MAX, report as complain, tagsOf } from '../index.ts';

/** Maximum of runs and metrics in a panel, as in the charts; of runs in groups, which are drawn as few lines. */
const RUNS_MAX = 100;
const MEMBERS_MAX = 500;
const METRICS_MAX = 8;
/** Maximum of runs that are named because they are not drawn. */
const NAMED_MAX = 1000;
/** Buckets of a line: fewer of many lines, at most this many together. */
const BUCKETS = 200;
const BUCKETS_MIN = 40;
const BUCKETS_ALL = 6400;
const GROUP_BUCKETS = 150;

export interface ReportHead {
	id: string;
	name: string;
	experiment: string;
	edition: number;
	changed: number;
	/** Who changed it last, or ''. */
	by: string;
}

export interface Report extends ReportHead {
	text: string;
	etag: string;
	/** Stored versions of the text, oldest first. */
	editions: { edition: number; time: number }[];
}

/** A group of runs in a panel: its curve of each metric. */
interface PanelGroup {
	name: string;
	/** Its name with rounded numbers, which of its runs no mean counts, and the run whose look it has; absent in
	 * panels frozen by an older page. */
	title?: string;
	fallen?: string;
	oldest?: string;
	curves: GroupReply[];
}

/** What a panel shows of a run. */
export type PanelRun = Pick<Run, 'id' | 'name' | 'status' | 'alerts' | 'last_step'>;

/** Runs and metrics that a panel should show and does not; more: even more runs. */
interface NotDrawn {
	runs: Pick<Run, 'id' | 'name'>[];
	metrics: string[];
	more: boolean;
}

/** Data of a panel: runs and series as REST replies. */
export interface PanelData {
	/** Time of the request, in milliseconds since 1970. */
	time: number;
	runs: PanelRun[];
	/** In the server's encoding. */
	sent: Json[];
	series: SeriesReply[];
	/** Of a panel with groups, in the order of their names. */
	groups: PanelGroup[];
	left: NotDrawn;
}

/** Reports of the experiment or of all, null until loaded. */
export const reports = signal<ReportHead[] | null>(null);

function headOf(r: Json): ReportHead {
	return {
		id : String(r.id),
		name : String(r.name),
		experiment : String(r.experiment),
		edition : Number(r.edition),
		changed : Number(r.changed_time),
		by : String(r.changed_by ?? '')
	};
}

function reportOf(r: Json): Report {
	const editions = r.editions as { edition: number; time: number }[];
	return { ...headOf(r), text: String(r.text), etag: String(r.etag), editions };
}

export async function loadReports(experiment: string | null): Promise<void> {
	try {
		const of = experiment === null ? '' : '?experiment=' + encodeURIComponent(experiment);
		reports.value = ((await request('reports' + of)).reports as Json[]).map(headOf);
	} catch (e) {
		complain(e);
	}
}

/** Loads a report; version null: the newest. Throws if the server refuses, as all of these do. */
export async function getReport(id: string, edition: number | null): Promise<Report> {
	const which = edition === null ? '' : `?edition=${edition}`;
	return reportOf(await request('reports/' + encodeURIComponent(id) + which));
}

export async function makeReport(experiment: string, name: string, text: string): Promise<Report> {
	return reportOf(await request('reports', { experiment, name, text }));
}

/** seen: the ETag of the report whose text it replaces. */
export async function changeReport(id: string, change: { name?: string; text?: string; editing?: string },
	seen?: string): Promise<Report> {
	return reportOf(await request('reports/' + id, change, 'PATCH', seen));
}

/** Deletes a report; returns the function that restores its newest text. */
export async function deleteReport(id: string): Promise<() => Promise<Report>> {
	const was = reportOf(await request('reports/' + id, undefined, 'DELETE'));
	return () => makeReport(was.experiment, was.name, was.text);
}

const FIELDS = ['params', 'tags', 'alerts'];

interface PanelRuns {
	runs: Run[];
	/** Those beyond the maximum. */
	rest: Pick<Run, 'id' | 'name'>[];
	more: boolean;
}

/** The newest runs of the panel's filter. */
async function filteredRuns(p: ReportPanel, experiment: string, most: number): Promise<PanelRuns> {
	const asked = { experiment: p.experiment || experiment, filter: p.filter };
	const { runs, next } = await getRuns({ ...asked, limit: most, fields: FIELDS });
	if (next === null) return { runs, rest: [], more: false };
	const rest = await getRuns({ ...asked, page: next, limit: NAMED_MAX, fields: ['tags'] });
	return { runs, rest: rest.runs, more: rest.next !== null };
}

async function runsOf(p: ReportPanel, experiment: string): Promise<PanelRuns> {
	const most = p.group.length ? MEMBERS_MAX : RUNS_MAX;
	if (!p.runs.length) return filteredRuns(p, experiment, most);
	if (p.runs.every((id) => id.length === 32)) {
		const [ids, rest] = [p.runs.slice(0, most), p.runs.slice(most)];
		const { runs } = await getRuns({ ids, limit: most, fields: FIELDS });
		return { runs, rest: rest.map((id) => ({ id, name: '' })), more: false };
	}
	const all = await getRuns({ experiment: p.experiment || experiment, fields: FIELDS, limit: 1000 });
	const found = p.runs.flatMap((id) => all.runs.filter((r) => r.id.startsWith(id)));
	return { runs: found.slice(0, most), rest: found.slice(most), more: false };
}

/** The curves of the panel's groups, in which runs that failed or diverged are not counted. */
async function groupsOf(p: ReportPanel, keys: readonly string[], runs: readonly Run[]): Promise<PanelGroup[]> {
	const counted = runs.filter((r) => !isFallen(r)).map((r) => r.id);
	if (!p.group.length || !counted.length) return [];
	const curves = await askPanelGroups({ runs: counted, keys, buckets: GROUP_BUCKETS, axes: p }, p.group, p.band);
	const groups = groupRuns(runs, p.group, tagsOf);
	const titles = groupTitles(groups);
	return groups.map((g, i) => ({
		name: g.name, title: titles[i], fallen: fallenText(g.runs),
		oldest: oldest(g.runs),
		curves: curves.filter((c) => p.group.every((f) => (c.group[fieldAddress(f)] ?? null) === g.values[f])),
	}));
}

const named = ({ id, name }: Pick<Run, 'id' | 'name'>) => ({ id, name });
const runIn = ({ id, name, status, alerts, last_step }: Run): PanelRun => ({ id, name, status, alerts, last_step });

/** Loads the current data of a panel. */
export async function panelNow(p: ReportPanel, experiment: string): Promise<PanelData> {
	const { runs, rest, more } = await runsOf(p, experiment);
	const keys = p.metrics.slice(0, METRICS_MAX);
	const few = Math.max(p.group.length ? 1 : BUCKETS_MIN, Math.floor(BUCKETS_ALL / (runs.length * keys.length)));
	const buckets = Math.min(BUCKETS, few);
	const some = runs.length > 0 && keys.length > 0;
	const [sent, groups] = await Promise.all([
		some ? askPanel({ runs: runs.map((r) => r.id), keys, buckets, axes: p }) : [],
		some ? groupsOf(p, keys, runs) : []]);
	return { time: Date.now(), runs: runs.map(runIn), sent, series: seriesIn(sent), groups,
		left: { runs: rest.map(named), metrics: p.metrics.slice(METRICS_MAX), more } };
}

/** Looks of runs of other experiments. */
const foreign = signal<ReadonlyMap<string, Look>>(new Map());
const sought = new Set<string>();

/** The look of a run in the table of its experiment; undefined until needLooks has loaded it. */
export function lookOf(id: string): Look | undefined {
	return autoLooks.value.byRun.get(id) ?? foreign.value.get(id);
}

/** Assigns looks as the page of the experiment does: from all its runs and the params that its first screen has. */
async function looksIn(experiment: string): Promise<ReadonlyMap<string, Look>> {
	const first = await getRuns({ experiment, limit: FIRST_PAGE, params: FIRST, paramsMost: PARAMS_MAX,
		fields: ['params'], keys: true });
	const among = first.paramsLeftOut ? new Set(first.runs.flatMap((r) => Object.keys(r.params))) : null;
	const all = among ? [] : [...first.runs];
	for (let page = among ? '' : first.next; page !== null && all.length < HELD_MAX;) {
		const more: Awaited<ReturnType<typeof getRuns>> =
			await getRuns({ experiment, limit: NEXT_PAGE, page, fields: ['params'] });
		all.push(...more.runs);
		page = more.next;
	}
	return assignLooks([...all, ...first.deleted], { hue: null, dash: null, among }).byRun;
}

/** Loads the looks of runs that the experiment of the page does not have. */
export async function needLooks(ids: readonly string[]): Promise<void> {
	const lack = ids.filter((id) => !lookOf(id) && !sought.has(id));
	if (!lack.length) return;
	lack.forEach((id) => sought.add(id));
	const { runs } = await getRuns({ ids: lack, limit: lack.length, fields: ['tags'] });
	for (const experiment of new Set(runs.map((r) => r.experiment)))
		foreign.value = new Map([...foreign.value, ...await looksIn(experiment)]);
}

/** What older frozen panels do not have. */
const OLD_RUN = { status: 'finished' as const, alerts: [], last_step: null };

/** Data of a frozen panel; null if its block is missing or invalid. */
export function frozenData(text: string, number: number): PanelData | null {
	try {
		const { time, runs, series, groups, left } = JSON.parse(readReport(text).data.get(number)!) as Json;
		const sent = series as Json[];
		const known = (runs as PanelRun[]).map((r) => ({ ...OLD_RUN, ...r }));
		return { time: time as number, runs: known, sent, series: seriesIn(sent),
			groups: (groups ?? []) as PanelGroup[],
			left: (left ?? { runs: [], metrics: [], more: false }) as NotDrawn };
	} catch {
		return null;
	}
}

/** The text with the panels at these parts frozen to their current data. */
export async function freeze(r: Report, parts: readonly number[]): Promise<string> {
	let text = r.text;
	for (const at of parts) {
		const part = readReport(text).parts[at];
		if (!part || !('panel' in part) || part.panel.frozen !== null) continue;
		const { time, runs, sent, groups, left } = await panelNow(part.panel, r.experiment);
		text = withFrozen(text, at, JSON.stringify({ time, runs, series: sent, groups, left }));
	}
	return text;
}
