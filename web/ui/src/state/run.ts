// SPDX-License-Identifier: Apache-2.0
// Requests of the page of one run; loaded with it.
import { batch } from '@preact/signals';
import { byName } from '../base/format.ts';
import type { Artifact, Run, RunDetail } from '../base/types.ts';
import { num, numOrNull, request, restoreRun, runOf, textMap, type Json } from './server/api.ts';
import { done, settleUndo } from './removal.ts';
import { runs } from './runs.ts';
import { go } from './view.ts';

/** Maximum bytes of a displayed text. */
const TEXT_BYTES = 256 * 1024;

function artifactsOf(list: unknown): Artifact[] {
	return ((list ?? []) as Json[])
		.map((a) => ({ path: String(a.path), folder: a.folder === true, bytes: numOrNull(a.bytes),
			sha256: (a.sha256 as string | undefined) ?? null }));
}

/** Entries of an artifact folder of a run, with digests if requested. */
export async function getArtifacts(run: string, folder: string, digests = false): Promise<Artifact[]> {
	const p = new URLSearchParams({ path: folder, ...digests && { include: 'digests' } });
	const r = await request(`runs/${encodeURIComponent(run)}/artifacts?${p}`);
	return artifactsOf(r.files);
}

/** Entries of a run's own folder; folder null: its journals are not local files. */
export async function getFiles(run: string, path: string): Promise<{ folder: string | null; files: Artifact[] }> {
	const r = await request(`runs/${encodeURIComponent(run)}/files?path=${encodeURIComponent(path)}`);
	return { folder: r.folder === null ? null : String(r.folder), files: artifactsOf(r.files) };
}

export function artifactAddress(run: string, path: string): string {
	return `api/v1/runs/${encodeURIComponent(run)}/artifacts/${path.split('/').map(encodeURIComponent).join('/')}`;
}

/** The first bytes of a text file. */
export async function getText(run: string, path: string): Promise<{ text: string; cut: boolean }> {
	const r = await fetch(artifactAddress(run, path), { headers: { Range: `bytes=0-${TEXT_BYTES - 1}` } });
	// an empty file has no first byte
	if (r.status === 416) return { text: '', cut: false };
	if (!r.ok) throw new Error(`The server replied ${r.status}`);
	const whole = Number(/\/(\d+)$/.exec(r.headers.get('Content-Range') ?? '')?.[1] ?? 0);
	return { text: await r.text(), cut: whole > TEXT_BYTES };
}

function spanOf(r: Json): number | null {
	const all = Object.values((r.metrics ?? {}) as Record<string, Json>);
	const times = (key: string) => all.map((m) => numOrNull(m[key])).filter((v): v is number => v !== null);
	const [first, last] = [times('first_time'), times('last_time')];
	return first.length && last.length ? 1000 * (last.reduce((a, b) => Math.max(a, b)) - first.reduce((a, b) =>
		Math.min(a, b))) : null;
}

export async function getRun(id: string): Promise<RunDetail> {
	const r = await request('runs/' + encodeURIComponent(id));
	const segments = ((r.segments ?? []) as Json[]).map((s) => ({
		segment: num(s.number ?? s.segment ?? 0), first_step: numOrNull(s.first_step),
	}));
	const ranks = ((r.ranks ?? []) as (Json | number)[]).map((x) => typeof x === 'number' ? x : num(x.rank));
	const problems = ((r.problems ?? []) as Json[])
		.map((p) => String(p.text) + (num(p.count) > 1 ? ` (${num(p.count)} times)` : ''));
	const inputs = ((r.inputs ?? []) as Json[]).map((i) => ({ name: String(i.name), digest: String(i.digest),
		context: String(i.context), source: String(i.source), profile: String(i.profile ?? '') }));
	return {
		...runOf(r),
		environment : textMap(r.environment),
		span : spanOf(r),
		user : String(r.user ?? ''),
		by : String(r.created_by ?? ''),
		editor : String(r.changed_by ?? ''),
		edited : numOrNull(r.changed_time),
		inputs,
		ranks,
		segments,
		artifacts : artifactsOf(r.artifacts),
		problems,
	};
}

/** Keys that a run records by rank. */
export async function getRankKeys(id: string): Promise<string[]> {
	const r = await request(`runs/${encodeURIComponent(id)}?include=series`);
	const keys = ((r.series ?? []) as Json[]).filter((t) => num(t.rank) >= 0).map((t) => String(t.key));
	return [...new Set(keys)].sort(byName);
}

/** seen: the notes_etag of the notes that it replaces. */
export async function changeRun(id: string, change: { notes?: string; editing?: string; name?: string },
	seen?: string): Promise<Run> {
	return runOf(await request('runs/' + encodeURIComponent(id), change, 'PATCH', seen));
}

/** Restores a deleted run in the list. */
export async function bringBack(id: string): Promise<Run> {
	const back = await restoreRun(id);
	settleUndo(id);
	if (!runs.value.some((o) => o.id === id)) runs.value = [back, ...runs.value];
	return back;
}

/** Deletes a run and shows the list; throws if the server refuses. */
export async function removeRun(r: Run): Promise<void> {
	await request('runs/' + encodeURIComponent(r.id), undefined, 'DELETE');
	batch(() => {
		done.value = { text: `${r.name} is deleted.`, undo: async () => void await bringBack(r.id),
			without: (id) => id === r.id && (done.value = null) };
		runs.value = runs.value.filter((o) => o.id !== r.id);
		go({ page: 'compare', run: null }, true);
	});
}

export function seriesAddress(run: string): string {
	return 'api/v1/export/series.csv?run=' + encodeURIComponent(run);
}

/** Asks the program of a running run of W&B's client to stop. */
export async function stopRun(id: string): Promise<void> {
	await request(`runs/${encodeURIComponent(id)}/stop`, {});
}

/** A run that made or uses an artifact. */
export interface Maker {
	id: string;
	name: string;
	experiment: string;
}

/** A version of W&B's artifacts; runs that the session may not see are null. */
export interface ArtifactVersion {
	collection: string;
	version: number;
	type: string;
	aliases: string[];
	created_time: number;
	made_by: Maker | null;
	used_by: (Maker | null)[];
}

/** What a run made, then what it uses; or those of an experiment, by its name. */
export async function getVersions(of: 'run' | 'experiment', name: string) {
	return await request(`artifact-versions?${of}=${encodeURIComponent(name)}`) as unknown as
		{ versions: ArtifactVersion[]; more: boolean };
}
