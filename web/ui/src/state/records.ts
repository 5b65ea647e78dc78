// SPDX-License-Identifier: Apache-2.0
// Console, code, alerts and media of a run. Loaded on demand; caches nothing.
import { num, request, type Json } from './server/api.ts';
import { pointsBetween, pointsUpTo } from './exact.ts';

/** Console of one rank in one segment. */
export interface ConsolePart {
	rank: number;
	segment: number;
	lines: number;
}

export interface ConsoleLine {
	/** Line number from 0 in its part. */
	n: number;
	/** Milliseconds since 1970. */
	time: number;
	error: boolean;
	/** The next line overwrote it, as progress bars do. */
	again: boolean;
	text: string;
}

export interface Console {
	parts: ConsolePart[];
	/** The part that was read, and its number of lines. */
	rank: number;
	segment: number;
	total: number;
	lines: ConsoleLine[];
}

interface ConsoleQuestion {
	rank?: number;
	segment?: number;
	/** First line; negative: that many before the end, or with at before the last line printed by then. */
	from?: number;
	/** Milliseconds since 1970. */
	at?: number;
	limit: number;
	search?: string;
}

const addressOf = (run: string, what: string) => `runs/${encodeURIComponent(run)}/${what}`;

export async function getConsole(run: string, q: ConsoleQuestion): Promise<Console> {
	const p = new URLSearchParams();
	for (const [k, v] of Object.entries(q)) if (v !== undefined && v !== '') p.set(k, String(v));
	const r = await request(addressOf(run, 'console?' + p));
	return {
		rank: num(r.rank), segment: num(r.segment), total: num(r.total),
		parts: (r.parts as Json[]).map((x) => ({ rank: num(x.rank), segment: num(x.segment),
			lines: num(x.lines) })),
		lines: (r.lines as Json[]).map((l) => ({ n: num(l.n), time: num(l.time), error: l.stream === 'stderr',
			again: l.again === true, text: String(l.text) })),
	};
}

/** Code of the newest segment that recorded any: commit, branch, remote, diff, packages, and other entries. */
export async function getCode(run: string): Promise<Record<string, string>> {
	const list = (await request(addressOf(run, 'code'))).code as Json[];
	const newest = [...list].sort((a, b) => num(a.segment) - num(b.segment));
	return Object.fromEntries(newest.map((c) => [String(c.name), String(c.text)]));
}

export interface ToldAlert {
	level: 'info' | 'warning' | 'error';
	title: string;
	text: string;
	step: number;
	time: number;
}

export async function getAlerts(run: string): Promise<ToldAlert[]> {
	return ((await request(addressOf(run, 'alerts'))).alerts as Json[]).map((a) => ({
		level: a.level as ToldAlert['level'], title: String(a.title), text: String(a.text), step: num(a.step),
		time: num(a.time),
	}));
}

type MediaKind = 'image' | 'histogram' | 'text' | 'table' | 'audio';

export interface MediaKey {
	key: string;
	kind: MediaKind;
	count: number;
	/** Its items have captions: texts below the key + CAPTION. */
	captioned?: boolean;
}

export interface Media {
	run: string;
	kind: MediaKind;
	rank: number;
	step: number;
	/** Digest of the content, and its media type. */
	content: string;
	type: string;
	width: number;
	height: number;
	caption?: Media | undefined;
}

export const CAPTION = '/caption';
const MEDIA_MAX = 50000;

export async function getMediaKeys(run: string): Promise<MediaKey[]> {
	return ((await request(addressOf(run, 'media?limit=0'))).keys as Json[]).map((k) => ({
		key: String(k.key), kind: k.kind as MediaKind, count: num(k.count),
	}));
}

/** All items of a key, by step and rank. */
export async function getMedia(run: string, key: string): Promise<Media[]> {
	const r = await request(addressOf(run, `media?limit=${MEDIA_MAX}&key=${encodeURIComponent(key)}`));
	return (r.media as Json[]).map((m) => ({
		run, kind: m.kind as MediaKind, rank: num(m.rank), step: num(m.step), content: String(m.content),
		type: String(m.type ?? ''),
		width: Number(m.width ?? 0), height: Number(m.height ?? 0),
	}));
}

export function contentAddress(m: Media): string {
	return 'api/v1/' + addressOf(m.run, 'media/' + m.content);
}

export async function getMediaText(m: Media): Promise<string> {
	const r = await fetch(contentAddress(m));
	if (!r.ok) throw new Error(`The server replied ${r.status}`);
	return r.text();
}

export interface Histogram {
	/** One more than counts. */
	edges: number[];
	counts: number[];
}

export async function getHistogram(m: Media): Promise<Histogram> {
	const r = await request(addressOf(m.run, 'media/' + m.content));
	return { edges: (r.edges as unknown[]).map(num), counts: (r.counts as unknown[]).map(num) };
}

export async function getTable(m: Media): Promise<string[][]> {
	return (await request(addressOf(m.run, 'media/' + m.content))).rows as string[][];
}

/** The last step of the run's series at a time in seconds; null before the first. */
export async function stepAt(run: string, key: string, seconds: number): Promise<number | null> {
	const range = await pointsUpTo(run, key, seconds);
	if (!range) return null;
	const near = await pointsBetween(run, key, ...range);
	let step: number | null = null;
	for (const p of near) if (p.seconds <= seconds) step = p.step;
	return step ?? range[0];
}

/** Time of a step of a series, in seconds; null without a point. */
export async function timeOf(run: string, key: string, step: number): Promise<number | null> {
	const [p] = await pointsBetween(run, key, step, step);
	return p ? p.seconds : null;
}
