// What makes a run slow and what a change bought, as the server says it; asked for by the page of one run alone.
import type { TraceEvent } from '../base/trace.ts';
import { ApiError, num, numOrNull, request, type Json } from './server/api.ts';

/** A reason for lost time; shares of the wall time. */
export interface Leaf {
	leaf: string;
	share: number;
	/** Leaf, share, interval and gain in words. */
	sentence: string;
	evidence: string;
	usual: string;
	action: string;
}

export interface Diagnosis {
	/** The first leaf, or "healthy"; '': its speed cannot be judged. */
	verdict: string;
	/** That in words. */
	sentence: string;
	leaves: Leaf[];
	bound: string;
	/** Since which step validation rises while training falls, in words. */
	overfitting: string | null;
	/** Steps that were judged, and left out before them. */
	steps: number;
	warmup: number;
}

function leafOf(l: Json): Leaf {
	return { leaf: String(l.leaf), share: num(l.share), sentence: String(l.sentence), evidence: String(l.evidence),
		usual: String(l.usual), action: String(l.action) };
}

/** What the server has nothing to say about is none. */
async function orNull<T>(asked: Promise<T>): Promise<T | null> {
	try {
		return await asked;
	} catch (e) {
		if (e instanceof ApiError && e.status >= 400 && e.status < 500) return null;
		throw e;
	}
}

export async function getDiagnosis(run: string): Promise<Diagnosis | null> {
	const d = await orNull(request(`runs/${encodeURIComponent(run)}/diagnosis`));
	if (!d || (d.verdict === null && !d.overfitting)) return null;
	const leaves = (d.leaves as Json[]).map(leafOf);
	const overfitting = d.overfitting ? String((d.overfitting as Json).sentence) : null;
	return { verdict: String(d.verdict ?? ''), sentence: String(d.sentence ?? ''), leaves, bound: String(d.bound),
		overfitting, steps: num(d.steps), warmup: num(d.warmup) };
}

const pairOf = (from: string, to: string) => `run=${encodeURIComponent(from)}&run=${encodeURIComponent(to)}`;

/** How much faster a run is than another one, in words; null: nothing tells. */
export async function getChange(from: string, to: string): Promise<string | null> {
	const w = await orNull(request('compare/why?' + pairOf(from, to)));
	const [first] = (w?.pairs ?? []) as Json[];
	return first ? String(first.sentence) : null;
}

/** The picture of it. */
export function changeAddress(from: string, to: string): string {
	return 'api/v1/compare/why.svg?' + pairOf(from, to);
}

export interface Pair {
	a: string;
	b: string;
	sentence: string;
	factor: number;
	low: number | null;
	high: number | null;
	/** Of all factors so far. */
	product: number;
	/** Seconds a sample, and of them by phase. */
	difference: number;
	phases: Record<string, number>;
	params: { key: string; a: string | null; b: string | null }[];
	/** worse: by more than equal runs differ. */
	metric: { key: string; a: number; b: number; worse: boolean } | null;
}

export interface Why {
	runs: { id: string; name: string; seconds: number; phases: Record<string, number> }[];
	/** From each run to the next one. */
	pairs: Pair[];
	/** What was left out as warm-up, in words. */
	rule: string;
}

const numbers = (o: unknown, of: (v: unknown) => unknown = (v) => v) =>
	Object.fromEntries(Object.entries(o as Json).map(([k, v]) => [k, num(of(v))]));

function metricOf(m: Json | null): Pair['metric'] {
	return m && { key: String(m.key), a: num(m.a), b: num(m.b), worse: m.worse === true };
}

function pairFrom(p: Json): Pair {
	return { a: String(p.a), b: String(p.b), sentence: String(p.sentence), factor: num(p.factor),
		low: numOrNull(p.low), high: numOrNull(p.high), product: num(p.product),
		difference: num((p.difference as Json).seconds),
		phases: numbers(p.phases, (v) => (v as Json).seconds), params: p.params as Pair['params'],
		metric: metricOf(p.metric as Json | null) };
}

export function whyAddress(runs: readonly string[], form = ''): string {
	return `api/v1/compare/why${form}?` + runs.map((r) => 'run=' + encodeURIComponent(r)).join('&');
}

/** What each step of several runs bought; null: one of them has no steps that can be timed. */
export async function getWhy(runs: readonly string[]): Promise<Why | null> {
	const w = await orNull(request(whyAddress(runs).slice('api/v1/'.length)));
	const paces = ((w?.runs ?? []) as Json[]).map((r) => ({ id: String(r.id), name: String(r.name),
		seconds: num(r.seconds), phases: numbers(r.phases) }));
	return w && { runs: paces, pairs: (w.pairs as Json[]).map(pairFrom), rule: String(w.warmup_rule) };
}

export function traceAddress(run: string): string {
	return `api/v1/runs/${encodeURIComponent(run)}/trace`;
}

/** Chrome's trace events of the traced steps; null: none. */
export async function getTrace(run: string): Promise<TraceEvent[] | null> {
	const t = await orNull(request(`runs/${encodeURIComponent(run)}/trace`));
	return t && (t.traceEvents as TraceEvent[]);
}
