// Where the time of a step goes: shares of the phases per run, and the means per rank that they are made of.
import { signal } from '@preact/signals';
import * as api from '../../state/api.ts';
import { phaseClass, stack, type Segment } from '../../charts/stack.ts';
import type { Run } from '../../base/types.ts';

export const PHASE_KEYS = ['data_wait', 'h2d', 'forward', 'backward', 'comm_exposed', 'optimizer', 'other'];

export interface RankPhases {
	rank: number;
	/** Mean seconds by phase name. */
	seconds: Record<string, number>;
}

/** Per-rank means of runs that log phases by rank; absent while asked for. */
const byRank = new Map<string, RankPhases[]>();
/** When a run's phases were asked for, and what its status was: a running run is asked for again. */
const asked = new Map<string, { at: number; status: string }>();
const AGAIN_MS = 10000;
const rev = signal(0);
let queue: string[] = [];

/** Phases that the run logs as a whole, from its summaries: the newest value of each. */
function ownPhases(r: Run): Record<string, number> | null {
	const out: Record<string, number> = {};
	let any = false;
	for (const [k, m] of Object.entries(r.metrics)) {
		if (!k.startsWith('phase/') || k === 'phase/step' || k === 'phase/comm_total') continue;
		if (!Number.isFinite(m.last)) continue;
		out[k.slice(6)] = m.last;
		any = true;
	}
	return any ? out : null;
}

export function rankPhases(id: string): RankPhases[] | null {
	void rev.value;
	return byRank.get(id) ?? null;
}

/** Segments of the run's bar; null when it logs no phases or they are not there yet. */
export function phasesOf(r: Run): Segment[] | null {
	const own = ownPhases(r);
	if (own) return stack(Object.entries(own).map(([name, value]) => ({ name, value })));
	const ranks = rankPhases(r.id);
	if (!ranks?.length) return null;
	const mean: Record<string, number> = {};
	for (const k of ranks)
		for (const [n, v] of Object.entries(k.seconds))
			if (PHASE_KEYS.includes(n)) mean[n] = (mean[n] ?? 0) + v / ranks.length;
	return stack(Object.entries(mean).map(([name, value]) => ({ name, value })));
}

/** Asks for the per-rank phases of runs that do not log them as a whole; one request for all asked in one turn.
 * The first step is left out: it pays for what later ones find ready. */
export function wantPhases(list: readonly Run[]): void {
	const now = Date.now();
	for (const r of list) {
		const last = asked.get(r.id);
		const stale = last && (last.status !== r.status || (r.status === 'running' && now - last.at > AGAIN_MS));
		if ((last && !stale) || ownPhases(r)) continue;
		asked.set(r.id, { at: now, status: r.status });
		queue.push(r.id);
	}
	if (queue.length) queueMicrotask(() => void ask());
}

async function ask(): Promise<void> {
	const ids = [...new Set(queue)];
	queue = [];
	if (!ids.length) return;
	const list = await api.querySeries({
		runs: ids, keys: [...PHASE_KEYS, 'comm_total', 'step'].map((k) => 'phase/' + k), rank: null, buckets: 1, x: 'step', from: 2,
	}).catch(() => []);
	const found = new Map<string, Map<number, Record<string, number>>>();
	for (const t of list) {
		const sum = t.columns.sum.reduce((a: number, v) => a + (v ?? 0), 0);
		const n = t.columns.count.reduce((a, v) => a + v, 0) - t.columns.nonfinite.reduce((a, v) => a + v, 0);
		if (n <= 0) continue;
		const ranks = found.get(t.run) ?? new Map<number, Record<string, number>>();
		const one = ranks.get(t.rank) ?? {};
		one[t.key.slice(6)] = sum / n;
		ranks.set(t.rank, one);
		found.set(t.run, ranks);
	}
	for (const id of ids)
		byRank.set(id, [...(found.get(id) ?? [])].map(([rank, seconds]) => ({ rank, seconds }))
			.sort((a, b) => a.rank - b.rank));
	rev.value++;
}

export function shares(list: readonly Segment[]): string {
	return list.map((p) => `${p.name} ${Math.round(p.share * 100)} %`).join(', ');
}

export function Bar({ segments, label }: { segments: readonly Segment[]; label: string }) {
	return (
		<span class="phases" role="img" aria-label={label} title={label}>
			{segments.map((p) => (
				<span key={p.name} class={'ph ' + phaseClass(p.name)} style={{ width: (p.share * 100).toFixed(2) + '%' }} />
			))}
		</span>
	);
}

export function PhaseBar({ run }: { run: Run }) {
	const list = phasesOf(run);
	return list ? <Bar segments={list} label={shares(list)} /> : null;
}

export function PhaseLegend({ names }: { names: readonly string[] }) {
	const order = stack(names.map((name) => ({ name, value: 1 })));
	return (
		<p class="legend">
			{order.map((p) => <span key={p.name}><i class={'ph ' + phaseClass(p.name)} />{p.name.replace(/_/g, ' ')}</span>)}
		</p>
	);
}
