// What changes while the page is open: runs that the server names are read again, points are added to their curves.
// Loaded once the first screen is drawn.
import * as api from './server/api.ts';
import type { Run } from '../base/types.ts';
import { refresh, serverFilter } from './load.ts';
import { away, countKeys, experiment, heldMetrics, keyRuns, liveRev, problem, report, runs } from './runs.ts';
import { grow, wantedKeys } from './series.ts';

/** Changes are taken at once, but not more often than this, nor for more than a share of the time. */
const LIVE_MS = 400;
const LIVE_SHARE = 0.25;
const SOON_MS = 60;
/** Without events. */
const POLL_MS = 2000;
/** A server that starts again is not worth a word. */
const PATIENCE_MS = 2000;
/** Runs that are asked for at once: their ids stand in the address. */
const AT_ONCE = 100;

const changed = new Set<string>();
let liveTimer = 0;
let nextAt = 0;

/** Of these something is new. */
export function onRuns(ids: string[]): void {
	ids.forEach((id) => changed.add(id));
	if (!liveTimer) takeSoon();
}

function takeSoon(): void {
	liveTimer = window.setTimeout(() => void takeChanges(), Math.max(SOON_MS, nextAt - Date.now()));
}

/** Reads the runs that changed and the points they have gained. */
async function takeChanges(): Promise<void> {
	const ids = [...changed].slice(0, AT_ONCE);
	ids.forEach((id) => changed.delete(id));
	const began = Date.now();
	try {
		const held = heldMetrics.value;
		const metrics = held ? [...new Set([...held, ...wantedKeys()])] : undefined;
		const { runs: found, keys } = await api.getRuns({
			ids, filter: serverFilter.value, limit: 1000, keys: true, metrics,
		});
		problem.value = null;
		const fresh = found.filter((r) => r.experiment === experiment.value || experiment.value === null);
		countNew(keys);
		mergeRuns(ids, fresh);
		await grow(fresh);
	} catch (e) {
		report(e);
	} finally {
		nextAt = began + Math.max(LIVE_MS, (Date.now() - began) / LIVE_SHARE);
		liveTimer = 0;
		if (changed.size) takeSoon();
		liveRev.value++;
	}
}

/** Metrics that no run had until now. */
function countNew(keys: ReadonlyMap<string, number>): void {
	const fresh = [...keys].filter(([k]) => !keyRuns.value.has(k));
	if (fresh.length) countKeys(new Map(fresh));
}

/** Of the runs asked for, those that came are new or changed; the others were deleted or no longer match. */
function mergeRuns(asked: string[], fresh: Run[]): void {
	const byId = new Map(fresh.map((r) => [r.id, r]));
	const gone = new Set(asked.filter((id) => !byId.has(id)));
	const known = new Set(runs.value.map((r) => r.id));
	if (!fresh.length && !asked.some((id) => known.has(id))) return;
	const list = runs.value.filter((r) => !gone.has(r.id)).map((r) => byId.get(r.id) ?? r);
	runs.value = [...fresh.filter((r) => !known.has(r.id)), ...list];
}

let closeEvents: (() => void) | null = null;
let pollTimer = 0;
let awayTimer = 0;
let token: string | null = null;

/** Without events the page asks for changes, but only while a run is running. */
async function poll(): Promise<void> {
	pollTimer = 0;
	if (document.hidden || away.value) return;
	if (token === null || runs.value.some((r) => r.status === 'running')) {
		try {
			const c = await api.getChanges(token);
			if (token !== null && c.runs.length) onRuns(c.runs);
			token = c.token;
		} catch (e) {
			token = null;
			report(e);
			return;
		}
	}
	if (runs.value.some((r) => r.status === 'running'))
		pollTimer = window.setTimeout(() => void poll(), POLL_MS);
}

/** Follows for the first time; what the runs that go on have gained since they were read is asked for. */
export function begin(): void {
	follow();
	const going = runs.value.filter((r) => r.status === 'running');
	if (going.length) onRuns(going.slice(0, AT_ONCE).map((r) => r.id));
}

/** Listens no more. */
export function unfollow(): void {
	closeEvents?.();
	closeEvents = null;
	clearTimeout(pollTimer);
	clearTimeout(awayTimer);
	awayTimer = 0;
}

/** One open connection while the page is visible; a hidden tab holds none. */
export function follow(): void {
	unfollow();
	if (document.hidden || away.value) return;
	let dropped = false;
	closeEvents = api.openEvents({
		onRuns,
		onOpen: () => {
			clearTimeout(awayTimer);
			awayTimer = 0;
			if (dropped) refresh();
			dropped = false;
		},
		onDrop: () => {
			dropped = true;
			if (!awayTimer) awayTimer = window.setTimeout(() => (away.value = true), PATIENCE_MS);
		},
		onRefused: () => void poll(),
	});
}
