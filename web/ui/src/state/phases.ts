// SPDX-License-Identifier: Apache-2.0
// Mean seconds per step by phase, of runs and of their ranks.
import { signal } from '@preact/signals';
import type { Run } from '../base/types.ts';
import { askMeans } from './points.ts';

export const PHASE_KEYS = ['data_wait', 'data', 'h2d', 'forward', 'backward', 'comm_exposed', 'allreduce',
	'copy_exposed', 'bubble', 'optimizer', 'eval', 'other'];
/** Recorded, but not part of a step. */
const NO_SHARE = ['comm_total', 'step'];
const PREFIX = 'phase/';

export interface RankPhases {
	rank: number;
	/** Mean seconds by phase. */
	seconds: Record<string, number>;
}

/** Per-rank means of runs that log phases by rank; absent while loading. */
const byRank = new Map<string, RankPhases[]>();
/** Request time and run status by run: running runs are requested again. */
const asked = new Map<string, { at: number; status: string }>();
const AGAIN_MS = 10000;
const rev = signal(0);
let queue: string[] = [];

/** Latest phases of the whole run, from its summaries. */
function ownPhases(r: Run): Record<string, number> | null {
	const own = Object.entries(r.metrics).map(([k, m]): [string, number] => [k, m.last])
		.filter(([k, v]) => k.startsWith(PREFIX) && !NO_SHARE.includes(k.slice(PREFIX.length))
		&& Number.isFinite(v));
	return own.length ? Object.fromEntries(own.map(([k, v]) => [k.slice(PREFIX.length), v])) : null;
}

export function rankPhases(id: string): RankPhases[] | null {
	void rev.value;
	return byRank.get(id) ?? null;
}

/** Seconds by phase of a whole run; null if not logged or not loaded. */
export function phaseSeconds(r: Run): Record<string, number> | null {
	const own = ownPhases(r);
	if (own) return own;
	const ranks = rankPhases(r.id);
	if (!ranks?.length) return null;
	const mean: Record<string, number> = {};
	for (const k of ranks)
		for (const [n, v] of Object.entries(k.seconds))
			if (PHASE_KEYS.includes(n)) mean[n] = (mean[n] ?? 0) + v / ranks.length;
	return mean;
}

/** Requests per-rank phases of runs without phases of the whole run; one request per turn. */
export function wantPhases(list: readonly Run[]): void {
	const now = Date.now();
	for (const r of list) {
		const last = asked.get(r.id);
		const stale = last
			&& (last.status !== r.status || (r.status === 'running' && now - last.at > AGAIN_MS));
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
	const list = await askMeans(ids, [...PHASE_KEYS, ...NO_SHARE].map((k) => PREFIX + k)).catch(() => []);
	const found = new Map<string, Map<number, RankPhases>>();
	for (const { of: t, mean } of list) {
		const ranks = found.get(t.run) ?? new Map<number, RankPhases>();
		const one = ranks.get(t.rank) ?? { rank: t.rank, seconds: {} };
		one.seconds[t.key.slice(PREFIX.length)] = mean;
		found.set(t.run, ranks.set(t.rank, one));
	}
	for (const id of ids) byRank.set(id, [...(found.get(id)?.values() ?? [])].sort((a, b) => a.rank - b.rank));
	rev.value++;
}
