// SPDX-License-Identifier: Apache-2.0
// Requests of /api/v1, decoded into the types of base/types.ts. This module has what the first screen needs; run.ts and
// tagging.ts have the rest. Addresses are relative to the page, so that it works below any proxy prefix.
import { signal } from '@preact/signals';
import { FORMULA } from '../../base/panel.ts';
import { lineOf } from '../../base/series.ts';
import type { Alert, BucketColumns, Experiment, LineColumns, Metric, Run, Series, Status } from '../../base/types.ts';

export class ApiError extends Error {
	/** stored: what the server has, when If-Match named something else. */
	constructor(message: string, readonly status: number, readonly field: string | null,
		readonly stored: Json | null = null) {
		super(message);
	}
}

export type Json = Record<string, unknown>;

/** The server no longer accepts the session of this page. */
export const signedOut = signal(false);

/** The reply, with its ETag as the member etag. seen: the ETag of what a change replaces. */
export async function request(path: string, body?: unknown,
	method = body === undefined ? 'GET' : 'POST', seen = ''): Promise<Json> {
	let reply: Response;
	try {
		reply = await fetch('api/v1/' + path, body === undefined ? { method } : {
			method, headers: { 'Content-Type': 'application/json', ...seen && { 'If-Match': seen } },
				body: JSON.stringify(body),
		});
	} catch {
		throw new ApiError('The server does not answer. Is dptrack serve still running?', 0, null);
	}
	const text = await reply.text();
	let json: Json | null = null;
	try {
		json = JSON.parse(text) as Json;
	} catch {
		// a proxy's error page instead of JSON: report the status
	}
	if (!reply.ok || json === null) {
		const e = (json?.error ?? json) as { message?: string; field?: string } | null;
		signedOut.value ||= reply.status === 401;
		throw new ApiError(reply.status === 401 ? 'You are signed out.'
			: e?.message ?? `The server replied ${reply.status}`, reply.status, e?.field ?? null,
			(json?.stored ?? null) as Json | null);
	}
	json.etag ??= reply.headers.get('ETag');
	return json;
}

/** A number of the API: NaN and infinities are strings, since JSON lacks them. */
export function num(v: unknown): number {
	return typeof v === 'number' ? v : v === 'Infinity' ? Infinity : v === '-Infinity' ? -Infinity : NaN;
}

export function numOrNull(v: unknown): number | null {
	return v === null || v === undefined ? null : num(v);
}

function metric(m: Json): Metric {
	const nullIfNaN = (v: unknown) => {
		const n = numOrNull(v);
		return n === null || Number.isNaN(n) ? null : n;
	};
	return {
		count: num(m.count), first: num(m.first), last: num(m.last), min: nullIfNaN(m.min),
		max: nullIfNaN(m.max),
		first_step: num(m.first_step), last_step: num(m.last_step),
		min_step: numOrNull(m.min_step), max_step: numOrNull(m.max_step),
		first_nonfinite_step: numOrNull(m.first_nonfinite_step),
	};
}

function alertOf(a: Json): Alert {
	return {
		kind: a.kind as Alert['kind'], key: (a.key as string) || null, step: numOrNull(a.step),
		value: numOrNull(a.value), text: String(a.text ?? ''),
	};
}

export function textMap(v: unknown): Record<string, string> {
	const given = (v ?? {}) as Json;
	// keep the object shape: equal shapes make later reads fast
	if (Object.values(given).every((x) => typeof x === 'string')) return given as Record<string, string>;
	const out: Record<string, string> = {};
	for (const [k, x] of Object.entries(given)) out[k] = typeof x === 'string' ? x : JSON.stringify(x);
	return out;
}

export function runOf(r: Json): Run {
	const metrics: Record<string, Metric> = {};
	for (const [k, m] of Object.entries((r.metrics ?? {}) as Record<string, Json>)) metrics[k] = metric(m);
	return {
		id: String(r.id), name: String(r.name ?? ''), experiment: String(r.experiment ?? ''),
		status: (r.status ?? 'finished') as Status, start_time: numOrNull(r.start_time),
		end_time: numOrNull(r.end_time),
		params: textMap(r.params), tags: textMap(r.tags), metrics, notes: String(r.notes ?? ''),
		notes_etag: String(r.notes_etag ?? ''),
		reason: String(r.status_reason ?? ''), alerts: ((r.alerts ?? []) as Json[]).map(alertOf),
		last_step: typeof r.last_step === 'number' && r.last_step >= 0 ? r.last_step : null,
		deleted: r.deleted === true, deleted_time: numOrNull(r.deleted_time),
	};
}

export function experimentsOf(r: Json): Experiment[] {
	return (r.experiments as Json[]).map((e) => ({
		id: String(e.id), name: String(e.name), run_count: num(e.run_count),
		running_count: Number(e.running_count ?? 0), failed_count: Number(e.failed_count ?? 0),
		description: String(e.description ?? ''), archived: e.archived === true,
		last_time: numOrNull(e.changed_time ?? e.created_time), may: String(e.may),
	}));
}

function keysIn(runs: readonly Run[]): Map<string, number> {
	const count = new Map<string, number>();
	for (const r of runs) for (const k in r.metrics) count.set(k, (count.get(k) ?? 0) + 1);
	return count;
}

export async function getExperiments(): Promise<Experiment[]> {
	return experimentsOf(await request('experiments'));
}

interface RunQuery {
	experiment?: string | readonly string[];
	filter?: string;
	limit: number;
	page?: string;
	ids?: readonly string[];
	/** Only these metrics; with most: all of them if the listed runs have at most that many keys. */
	metrics?: readonly string[];
	most?: number;
	/** At most this many params: these first, then those that differ. */
	paramsMost?: number;
	params?: readonly string[];
	/** Include the number of listed runs with each metric. */
	keys?: boolean;
	/** Only these fields of the runs. */
	fields?: readonly string[];
	/** Deleted runs. */
	deleted?: boolean;
}

interface RunList {
	runs: Run[];
	next: string | null;
	/** Number of listed runs with each metric, if requested. */
	keys: ReadonlyMap<string, number>;
	/** Only the requested metrics are included. */
	leftOut: boolean;
	/** Some params of the runs are missing. */
	paramsLeftOut: boolean;
	/** Start of the changes that the list does not have, if keys were requested. */
	token: string | null;
	/** Deleted runs of the experiment with start and params, if keys were requested. */
	deleted: Run[];
	/** Default view of the experiment, if keys were requested. */
	view: { id: string; query: string } | null;
}

/** The first request of a page, which web/api/native/api_page.c tells the browser to preload. */
export async function getRuns(q: RunQuery): Promise<RunList> {
	const p = new URLSearchParams({ limit: String(q.limit) });
	if (q.deleted) p.set('deleted', 'only');
	if (q.keys) p.set('include', 'keys');
	if (q.most !== undefined) p.set('metrics_max', String(q.most));
	if (q.paramsMost !== undefined) p.set('params_max', String(q.paramsMost));
	const lists = { params: q.params, experiment: [q.experiment ?? []].flat(), metrics: q.metrics, fields: q.fields,
		run: q.ids };
	for (const [k, list] of Object.entries(lists)) for (const v of list ?? []) p.append(k, v);
	if (q.filter) p.set('filter', q.filter);
	if (q.page) p.set('page_token', q.page);
	const r = await request('runs?' + p);
	const runs = (r.runs as Json[]).map(runOf);
	return {
		runs, next: (r.next_page_token as string | undefined) || null,
		token: r.changes_token as string | undefined ?? null,
		keys: r.metric_keys ? new Map(Object.entries(r.metric_keys as Record<string, number>)) : keysIn(runs),
		leftOut: r.metrics_left_out === true, paramsLeftOut: r.params_left_out === true,
		deleted: ((r.deleted_runs ?? []) as Json[]).map(runOf),
		view: r.default_view as RunList['view'] ?? null,
	};
}

/** The run that logged a model, or null. */
export async function runOfModel(model: string): Promise<string | null> {
	const r = await request('../../ajax-api/2.0/mlflow/logged-models/' + encodeURIComponent(model));
	return ((r.model as Json | undefined)?.info as Json | undefined)?.source_run_id as string | undefined ?? null;
}

/** none, read, write or admin. */
export type Level = string;

/** As the server writes it. */
export interface Session {
	/** This browser is signed in with a token. */
	signed_in: boolean;
	/** Of the token; without one the server needs none. */
	scope?: Level;
	person?: string;
	/** What it may do in which experiments; without: the scope in all. */
	experiments?: string;
	/** What it may do in every experiment, also in future ones. */
	all: Level;
	/** A link opened the page: what it shows, and who made it. */
	share?: { name: string; person: string };
}

export async function getSession(): Promise<Session> {
	return await request('session') as unknown as Session;
}

export async function endSession(): Promise<void> {
	await request('session', undefined, 'DELETE');
}

/** Returns true if the server has another version of this page. */
export async function pageIsOther(): Promise<boolean> {
	const own = document.querySelector('script[type=module]')?.getAttribute('src');
	return !(await (await fetch('./', { cache: 'no-store' })).text()).includes(`"${own}"`);
}

export async function restoreRun(id: string): Promise<Run> {
	return runOf(await request(`runs/${encodeURIComponent(id)}/restore`, {}));
}

interface SeriesQuery {
	runs: readonly string[];
	keys: readonly string[];
	/** null requests all ranks. */
	rank: number | null;
	buckets: number;
	x: 'step' | 'time' | 'elapsed' | 'epoch';
	/** log: buckets are logarithmic. */
	spacing?: 'log';
	/** all: include points hidden by restarts, one series per segment. */
	segments?: 'all';
	from?: number;
	to?: number;
}

export interface SeriesReply {
	run: string;
	key: string;
	rank: number;
	segment: number;
	columns: BucketColumns;
}

const COLUMNS =
	['x_first', 'first', 'x_min', 'min', 'x_max', 'max', 'x_last', 'last', 'sum', 'count', 'nonfinite'] as const;

/** Columns of numbers; null stays null unless the true value is one that JSON lacks. */
function columns(b: Record<string, unknown[]>): BucketColumns {
	const out: Record<string, unknown[]> = { i: b.i ?? [] };
	for (const c of COLUMNS) out[c] = (b[c] ?? []).map((v) => typeof v === 'number' ? v : numOrNull(v));
	if (b.x_nonfinite) out.x_nonfinite = b.x_nonfinite.map(numOrNull);
	return out as unknown as BucketColumns;
}

/** The key of a formula has no rank. */
function asked(keys: readonly string[]): Json {
	return keys[0]?.startsWith(FORMULA) ? { formula: keys[0].slice(1) } : { keys };
}

/** Series in buckets in the server's encoding. */
export async function askSeries(q: SeriesQuery, form?: 'line'): Promise<Json[]> {
	const body: Json = { runs: q.runs, ...asked(q.keys), buckets: q.buckets, x: q.x };
	if (form) body.form = form;
	if (q.rank !== null) body.rank = q.rank;
	if (q.spacing) body.spacing = q.spacing;
	if (q.segments) body.segments = q.segments;
	if (q.from !== undefined) body.from = q.from;
	if (q.to !== undefined) body.to = q.to;
	return (await request('series/query', body)).series as Json[];
}

/** Series as drawn, with the precision of pixels. */
export async function queryLines(q: SeriesQuery): Promise<{ segment: number; series: Series }[]> {
	return (await askSeries(q, 'line')).map((s) => ({
		segment: Number(s.segment ?? 0),
		series: lineOf(String(s.run), String(s.key), num(s.rank ?? -1), num(s.count),
			s as unknown as LineColumns),
	}));
}

/** Groups of runs with equal values, in buckets. */
export interface GroupReply {
	key: string;
	/** Values by field ("params.lr"); null if missing. */
	group: Record<string, string | null>;
	runs: string[];
	/** x is between from and to. */
	buckets: { x: number; from: number; to: number; n: number; mean: number | null; median: number | null;
		low: number | null; high: number | null }[];
}

export async function queryGroups(q: SeriesQuery, by: readonly string[], band: string): Promise<GroupReply[]> {
	const { rank: _, keys, ...rest } = q;
	const r = await request('series/query', { ...rest, ...asked(keys), group_by: by, band });
	const edges = r.edges as number[];
	const placed = (from: number, to: number) =>
		({ x: q.spacing ? Math.sqrt(from * to) : (from + to) / 2, from, to });
	return (r.groups as Json[]).map((g) => ({
		key: String(g.key), group: g.group as Record<string, string | null>, runs: g.runs as string[],
		buckets: (g.buckets as Json[]).map((b) => ({
			...placed(edges[num(b.i)]!, edges[num(b.i) + 1]!), n: num(b.n),
			mean: numOrNull(b.mean), median: numOrNull(b.median), low: numOrNull(b.low),
				high: numOrNull(b.high),
		})),
	}));
}

/** Decodes the reply of askSeries. */
export function seriesIn(sent: readonly Json[]): SeriesReply[] {
	return sent.map((s) => ({
		run: String(s.run), key: String(s.key), rank: num(s.rank ?? -1), segment: Number(s.segment ?? 0),
		columns: columns(s.buckets as Record<string, unknown[]>),
	}));
}

/** Series in buckets, in full precision. */
export async function querySeries(q: SeriesQuery): Promise<SeriesReply[]> {
	return seriesIn(await askSeries(q));
}

export interface Changes {
	/** For the next request. */
	token: string;
	runs: string[];
	/** The token was of another store: any run may have changed. */
	reset: boolean;
	/** More runs changed than one reply lists. */
	more: boolean;
}

function changesOf(r: Json): Changes {
	const { token, runs, reset, more } = r as Partial<Changes>;
	return { token: String(token), runs: runs ?? [], reset: reset === true, more: more === true };
}

const sinceArg = (token: string | null) => token === null ? '' : '?since=' + encodeURIComponent(token);

export async function getChanges(since: string | null): Promise<Changes> {
	return changesOf(await request('changes' + sinceArg(since)));
}

interface EventHandlers {
	onChanges(c: Changes): void;
	onOpen(): void;
	/** The connection is lost; the browser reconnects. */
	onDrop(): void;
	/** The server replied, but offers no events. */
	onRefused(): void;
}

/** Opens a connection that reports changed runs, from the token on; returns the function that closes it. */
export function openEvents(since: string | null, on: EventHandlers): () => void {
	const es = new EventSource('api/v1/events' + sinceArg(since));
	const take = (e: MessageEvent<string>) => {
		try {
			on.onChanges(changesOf(JSON.parse(e.data) as Json));
		} catch {
			// an unknown event
		}
	};
	es.onopen = () => on.onOpen();
	es.onmessage = take;
	es.addEventListener('changes', take);
	es.onerror = () => {
		if (es.readyState !== EventSource.CLOSED) return on.onDrop();
		on.onRefused();
	};
	return () => es.close();
}
