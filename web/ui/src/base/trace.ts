// SPDX-License-Identifier: Apache-2.0
// Parses Chrome trace events of a run into rows of spans, one per rank and thread, and finds the rank that the others
// waited for.

export interface Span {
	name: string;
	/** Phase, or ''. */
	cat: string;
	/** Microseconds of the trace. */
	from: number;
	to: number;
	step: number;
	/** Nesting depth in its row. */
	depth: number;
}

export interface Row {
	rank: number;
	thread: string;
	/** Sorted by start; spans never overlap partially. */
	spans: Span[];
	/** Maximum nesting depth. */
	depth: number;
}

export interface StepOf {
	step: number;
	rank: number;
	from: number;
	to: number;
	/** Microseconds that the rank waited for others. */
	waited: number;
}

export interface Trace {
	rows: Row[];
	/** Length of the trace, which starts at 0. */
	end: number;
	/** For each step, the rank that the others waited for. */
	critical: StepOf[];
}

export interface TraceEvent {
	name: string;
	ph: string;
	pid: number;
	tid: number;
	cat?: string;
	ts?: number;
	dur?: number;
	args?: { name?: string; step?: number };
}

/** The main thread, whose spans cover each step. */
const STEP_ROW = 'step';
const WAITS = 'comm_exposed';

/** Computes the nesting of a row's spans; of those with equal start the longest is the outermost. */
function nest(spans: Span[]): number {
	const open: Span[] = [];
	let most = 0;
	spans.sort((a, b) => a.from - b.from || b.to - a.to);
	for (const s of spans) {
		while (open.length && open.at(-1)!.to <= s.from) open.pop();
		s.depth = open.length;
		open.push(s);
		most = Math.max(most, open.length);
	}
	return most;
}

/** Rounds to whole nanoseconds, so that adjacent spans touch. */
const ofNanoseconds = (us: number) => Math.round(us * 1000) / 1000;

/** The rank with the longest compute time is the one that the others wait for. */
function criticalOf(rows: readonly Row[]): StepOf[] {
	const by = new Map<number, StepOf>();
	for (const row of rows.filter((r) => r.thread === STEP_ROW)) {
		const waited = new Map<number, number>();
		for (const s of row.spans)
			if (s.depth > 0 && s.cat === WAITS)
				waited.set(s.step, (waited.get(s.step) ?? 0) + s.to - s.from);
		for (const { step, from, to, depth } of row.spans) {
			const own = { step, rank: row.rank, from, to, waited: waited.get(step) ?? 0 };
			const best = by.get(step);
			if (depth === 0 && (!best || to - from - own.waited > best.to - best.from - best.waited))
				by.set(step, own);
		}
	}
	return [...by.values()].sort((a, b) => a.step - b.step);
}

/** The main thread first, then by name. */
function inOrder(a: Row, b: Row): number {
	const own = (r: Row) => (r.thread === STEP_ROW ? 0 : 1);
	return a.rank - b.rank || own(a) - own(b) || (a.thread < b.thread ? -1 : 1);
}

export function traceOf(events: readonly TraceEvent[]): Trace {
	const rows = new Map<string, Row>();
	const at = (e: TraceEvent) => `${e.pid} ${e.tid}`;
	for (const e of events)
		if (e.ph === 'M' && e.name === 'thread_name')
			rows.set(at(e), { rank: e.pid, thread: e.args?.name ?? '', spans: [], depth: 0 });
	for (const e of events)
		if (e.ph === 'X')
			rows.get(at(e))?.spans.push({ name: e.name, cat: e.cat ?? '', from: e.ts ?? 0,
				to: ofNanoseconds((e.ts ?? 0) + (e.dur ?? 0)), step: e.args?.step ?? 0, depth: 0 });
	const list = [...rows.values()].sort(inOrder);
	for (const r of list) r.depth = nest(r.spans);
	return { rows: list, end: Math.max(0, ...list.flatMap((r) => r.spans.map((s) => s.to))),
		critical: criticalOf(list) };
}

/** The deepest span of a row at a time, or null. */
export function spanAt(row: Row, time: number): Span | null {
	let found: Span | null = null;
	for (const s of row.spans) {
		if (s.from > time) break;
		if (time < s.to && (!found || s.depth >= found.depth)) found = s;
	}
	return found;
}

/** Clamps a visible range to the trace with a minimum width. */
export interface Stretch {
	from: number;
	to: number;
}

const NARROWEST_US = 1;

/** Zooms around a fixed time; factor below 1 zooms in. */
export function zoomed(look: Stretch, end: number, at: number, factor: number): Stretch {
	const wide = Math.min(end, Math.max(NARROWEST_US, (look.to - look.from) * factor));
	const share = (at - look.from) / (look.to - look.from);
	return moved({ from: at - share * wide, to: at - share * wide + wide }, end, 0);
}

/** Pans by a share of the width within the trace. */
export function moved(look: Stretch, end: number, share: number): Stretch {
	const wide = look.to - look.from;
	const from = Math.min(Math.max(0, look.from + share * wide), Math.max(0, end - wide));
	return { from, to: from + wide };
}
