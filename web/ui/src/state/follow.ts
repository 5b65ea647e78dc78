// SPDX-License-Identifier: Apache-2.0
// Live updates: reads changed runs again and appends points to their curves. Loaded after the first screen is drawn.
import * as api from './server/api.ts';
import type { Run } from '../base/types.ts';
import { loadExperiments, refresh, serverFilter } from './load.ts';
import { away, changesToken, countKeys, heldMetrics, keyRuns, liveRev, problem, report, runs, session,
	shownExperiments } from './runs.ts';
import { grow, wantedKeys } from './series.ts';
import { go, view } from './view.ts';

/** Minimum interval between updates, and the maximum share of time that they may take. */
const LIVE_MS = 400;
const LIVE_SHARE = 0.25;
const SOON_MS = 60;
/** Polling intervals without events: while a run is running, and else. */
const POLL_MS = 2000;
const IDLE_MS = 10000;
/** Events that are not open by then are held back: by a proxy that collects replies. */
const OPEN_MS = 5000;
/** Grace period for a restarting server. */
const PATIENCE_MS = 2000;
/** Runs per request: their ids are in the address. */
const AT_ONCE = 100;

const changed = new Set<string>();
let liveTimer = 0;
let nextAt = 0;

/** Takes a report of changed runs. */
function onChanges(c: api.Changes): void {
	const known = changesToken.value !== null;
	changesToken.value = c.token;
	if (c.reset && known) return refresh();
	c.runs.forEach((id) => changed.add(id));
	if (changed.size && !liveTimer) takeSoon();
}

function takeSoon(): void {
	liveTimer = window.setTimeout(() => void takeChanges(), Math.max(SOON_MS, nextAt - Date.now()));
}

/** Reads the changed runs and their new points. */
async function takeChanges(): Promise<void> {
	const ids = [...changed].slice(0, AT_ONCE);
	ids.forEach((id) => changed.delete(id));
	const began = Date.now();
	try {
		const held = heldMetrics.value;
		const of = shownExperiments.value;
		const metrics = held ? [...new Set([...held, ...wantedKeys()])] : undefined;
		const { runs: found, keys } = await api.getRuns({
			ids, experiment: of, filter: serverFilter.value, limit: 1000, keys: true, metrics,
		});
		problem.value = null;
		if (of !== shownExperiments.value) return;
		countNew(keys);
		await grow(found);
		// right after their points, so that a chart is drawn once
		if (of === shownExperiments.value) mergeRuns(ids, found);
	} catch (e) {
		report(e);
	} finally {
		nextAt = began + Math.max(LIVE_MS, (Date.now() - began) / LIVE_SHARE);
		liveTimer = 0;
		if (changed.size) takeSoon();
		liveRev.value++;
	}
}

/** Metrics that no run had before. */
function countNew(keys: ReadonlyMap<string, number>): void {
	const fresh = [...keys].filter(([k]) => !keyRuns.value.has(k));
	if (fresh.length) countKeys(new Map(fresh));
}

/** Runs in the reply are new or changed; the missing ones were deleted or no longer match. */
function mergeRuns(asked: string[], fresh: Run[]): void {
	const byId = new Map(fresh.map((r) => [r.id, r]));
	const gone = new Set(asked.filter((id) => !byId.has(id)));
	const known = new Set(runs.value.map((r) => r.id));
	if (!fresh.length && !asked.some((id) => known.has(id))) return;
	const list = runs.value.filter((r) => !gone.has(r.id)).map((r) => byId.get(r.id) ?? r);
	runs.value = [...fresh.filter((r) => !known.has(r.id)), ...list];
	// the first run of a store: the address names what the page shows
	const { experiment: named, page } = view.value;
	if (named === null && page === 'compare' && runs.value[0]) go({ experiment: runs.value[0].experiment });
}

let closeEvents: (() => void) | null = null;
let pollTimer = 0;
let awayTimer = 0;
let streaming = false;

function pollIn(ms: number): void {
	clearTimeout(pollTimer);
	pollTimer = window.setTimeout(() => void poll(), ms);
}

/** Continues where the person was, who has signed in again in another tab. */
async function resume(): Promise<void>
{
	session.value = await api.getSession();
	api.signedOut.value = false;
	refresh();
	void loadExperiments();
	follow();
}

/** Polls without events. */
async function poll(): Promise<void> {
	if (document.hidden || away.value) return;
	try {
		if (api.signedOut.value) return await resume();
		const c = await api.getChanges(changesToken.value);
		if (streaming) return;
		onChanges(c);
		pollIn(c.more ? 0 : runs.value.some((r) => r.status === 'running') ? POLL_MS : IDLE_MS);
	} catch (e) {
		report(e);
		if (api.signedOut.value) pollIn(POLL_MS);
	}
}

/** Stops live updates. */
export function unfollow(): void {
	closeEvents?.();
	closeEvents = null;
	streaming = false;
	clearTimeout(pollTimer);
	clearTimeout(awayTimer);
	awayTimer = 0;
}

/** One connection while the page is visible, which begins with what changed in between; a hidden tab has none. */
export function follow(): void {
	unfollow();
	if (document.hidden || away.value) return;
	if (api.signedOut.value) return pollIn(0);
	let dropped = false;
	pollIn(OPEN_MS);
	closeEvents = api.openEvents(changesToken.value, {
		onChanges,
		onOpen: () => {
			clearTimeout(awayTimer);
			clearTimeout(pollTimer);
			awayTimer = 0;
			streaming = true;
			if (dropped) refresh();
			dropped = false;
		},
		onDrop: () => {
			dropped = true;
			if (!awayTimer) awayTimer = window.setTimeout(() => (away.value = true), PATIENCE_MS);
		},
		onRefused: () => pollIn(0),
	});
}
