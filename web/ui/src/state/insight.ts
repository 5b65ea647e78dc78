// SPDX-License-Identifier: Apache-2.0
// Diagnosis of a run and speed comparisons, from the server; used by the page of one run.
import type { TraceEvent } from '../base/trace.ts';
import { ApiError, num, numOrNull, request, type Json } from './server/api.ts';
import {shared} from './shares.ts';

/** A cause of lost time; shares of the wall time. */
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
	/** The first leaf, or "healthy"; '' if the speed cannot be judged. */
	verdict: string;
	/** The verdict in words. */
	sentence: string;
	leaves: Leaf[];
	bound: string;
	/** Step since which validation loss rises while training loss falls, in words. */
	overfitting: string | null;
	/** Steps that were judged, and skipped before them. */
	steps: number;
	warmup: number;
}

function leafOf(l: Json): Leaf {
	return { leaf: String(l.leaf), share: num(l.share), sentence: String(l.sentence), evidence: String(l.evidence),
		usual: String(l.usual), action: String(l.action) };
}

/** null if the server has no answer. */
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

/** Speed-up of a run over another, in words; null if unknown. */
export async function getChange(from: string, to: string): Promise<string | null> {
	const w = shared.value ? null : await orNull(request('compare/why?' + pairOf(from, to)));
	const [first] = (w?.pairs ?? []) as Json[];
	return first ? String(first.sentence) : null;
}

/** Address of its picture. */
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
	/** Product of all factors so far. */
	product: number;
	/** Seconds per sample, and by phase. */
	difference: number;
	phases: Record<string, number>;
	params: { key: string; a: string | null; b: string | null }[];
	/** worse: by more than the noise of equal runs; null: unknown. */
	metric: { key: string; worse: boolean | null } | null;
}

export interface Why {
	runs: { id: string; name: string; seconds: number; phases: Record<string, number> }[];
	/** From each run to the next. */
	pairs: Pair[];
	/** The skipped warm-up, in words. */
	rule: string;
}

const numbers = (o: unknown, of: (v: unknown) => unknown = (v) => v) =>
	Object.fromEntries(Object.entries(o as Json).map(([k, v]) => [k, num(of(v))]));

function pairFrom(p: Json): Pair {
	return { a: String(p.a), b: String(p.b), sentence: String(p.sentence), factor: num(p.factor),
		low: numOrNull(p.low), high: numOrNull(p.high), product: num(p.product),
		difference: num((p.difference as Json).seconds),
		phases: numbers(p.phases, (v) => (v as Json).seconds), params: p.params as Pair['params'],
		metric: p.metric as Pair['metric'] };
}

export function whyAddress(runs: readonly string[], form = ''): string {
	return `api/v1/compare/why${form}?` + runs.map((r) => 'run=' + encodeURIComponent(r)).join('&');
}

/** Speed by change over several runs; null if a run has no timed steps. */
export async function getWhy(runs: readonly string[]): Promise<Why | null> {
	const w = shared.value ? null : await orNull(request(whyAddress(runs).slice('api/v1/'.length)));
	const paces = ((w?.runs ?? []) as Json[]).map((r) => ({ id: String(r.id), name: String(r.name),
		seconds: num(r.seconds), phases: numbers(r.phases) }));
	return w && { runs: paces, pairs: (w.pairs as Json[]).map(pairFrom), rule: String(w.warmup_rule) };
}

export function traceAddress(run: string): string {
	return `api/v1/runs/${encodeURIComponent(run)}/trace`;
}

/** Chrome trace events of the traced steps, or null. */
export async function getTrace(run: string): Promise<TraceEvent[] | null> {
	const t = await orNull(request(`runs/${encodeURIComponent(run)}/trace`));
	return t && (t.traceEvents as TraceEvent[]);
}
