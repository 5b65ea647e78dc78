// SPDX-License-Identifier: Apache-2.0
// Lifetime of the page: loads what it needs, follows changes, and retries an unavailable server.
import { effect, untracked } from '@preact/signals';
import * as api from './server/api.ts';
import { followLink, loadExperiments, loadRuns, openLinked, refresh, serverFilter } from './load.ts';
import { viewExperiments, viewPage } from './load.ts';
import { part } from './parts.ts';
import { away, drawn, experiments, report, session } from './runs.ts';
import { schedule, settled } from './series.ts';
import { view } from './view.ts';

const PROBE_MS = 3000;

/** Live updates, loaded after the first screen is drawn. */
const follower = part(() => import('./follow.ts'));
let probeTimer = 0;

/** Retries a server that does not answer. */
async function probe(): Promise<void> {
	try {
		await api.getSession();
	} catch (e) {
		if ((e as api.ApiError).status === 0 || (e as api.ApiError).status >= 502) {
			probeTimer = window.setTimeout(() => void probe(), PROBE_MS);
			return;
		}
		report(e);
	}
	away.value = false;
	follower.value.peek()?.follow();
	refresh();
}

/** Starts with the view of the address. */
export async function start(): Promise<void> {
	const wrong = await openLinked();
	void followLink(location.hash);
	addEventListener('hashchange', () => void followLink(location.hash));
	effect(() => {
		const names = viewExperiments.value;
		const filter = serverFilter.value;
		// load what the page shows first
		const shown = viewPage.value === 'experiments' ? loadExperiments() : null;
		if (shown) void shown.then(() => loadRuns(names, filter));
		// signals that a load reads and sets must not trigger another one
		else untracked(() => void loadRuns(names, filter));
	});
	effect(() => {
		void view.value.x;
		void view.value.zoom;
		void view.value.epochZoom;
		void drawn.value;
		schedule();
	});
	effect(() => {
		if (!away.value) return;
		follower.value.peek()?.unfollow();
		clearTimeout(probeTimer);
		probeTimer = window.setTimeout(() => void probe(), PROBE_MS);
	});
	effect(() => {
		const f = follower.value.value;
		if (f) untracked(f.follow);
	});
	let began = false;
	effect(() => {
		if (!settled.value || began) return;
		began = true;
		void api.getSession().then((s) => (session.value = s), report).then(() => {
			if (session.value?.share) return;
			void follower.load();
			if (experiments.value === null) void loadExperiments();
		});
	});
	if (wrong) report(wrong);
	document.addEventListener('visibilitychange', () => {
		follower.value.value?.follow();
	});
}
