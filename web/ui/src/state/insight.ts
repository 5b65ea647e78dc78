// What makes a run slow and what a change bought, as the server says it; asked for by the page of one run alone.
import { ApiError, num, numOrNull, request, type Json } from './api.ts';

/** A reason for lost time; shares of the wall time. */
export interface Leaf {
	leaf: string;
	share: number;
	low: number | null;
	high: number | null;
	evidence: string;
	usual: string;
	action: string;
	/** So many times as fast without it, at most. */
	gain: number;
}

export interface Diagnosis {
	/** The first leaf, or "healthy". */
	verdict: string;
	leaves: Leaf[];
	bound: string;
	/** Steps that were judged, and left out before them. */
	steps: number;
	warmup: number;
}

function leafOf(l: Json): Leaf {
	return { leaf: String(l.leaf), share: num(l.share), low: numOrNull(l.low), high: numOrNull(l.high),
		evidence: String(l.evidence), usual: String(l.usual), action: String(l.action), gain: num(l.gain) };
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
	if (!d || d.verdict === null) return null;
	const leaves = (d.leaves as Json[]).map(leafOf);
	return { verdict: String(d.verdict), leaves, bound: String(d.bound), steps: num(d.steps),
		warmup: num(d.warmup) };
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

export function traceAddress(run: string): string {
	return `api/v1/runs/${encodeURIComponent(run)}/trace`;
}
