// SPDX-License-Identifier: Apache-2.0
// Entry point: starts the state and shows the view of the address.
import { effect } from '@preact/signals';
import { render, type ComponentChildren } from 'preact';
import type { View } from './base/url.ts';
import './style.css';
import * as s from './state/index.ts';
import { Compare, Header, lazy, Nav, theme } from './views/index.ts';

const AHEAD_MS = 300;
/** How long to wait for the first reply before an empty page is drawn. */
const ANSWER_MS = 50;
/** Pages that are loaded on demand. */
const later: Partial<Record<View['page'], ReturnType<typeof lazy<object>>>> = {
	experiments: lazy(() => import('./views/experiments/experiments.tsx').then((m) => m.Experiments)),
	side: lazy(() => import('./views/side/side.tsx').then((m) => m.SideBySide)),
	report: lazy(() => import('./views/report/report.tsx').then((m) => m.Reports)),
	models: lazy(() => import('./views/models/models.tsx').then((m) => m.Models)),
	alerts: lazy(() => import('./views/alerts/alerts.tsx').then((m) => m.AlertsPage)),
	trash: lazy(() => import('./views/experiments/trash.tsx').then((m) => m.TrashPage)),
	settings: lazy(() => import('./views/settings/settings.tsx').then((m) => m.SettingsPage)),
};
const Undo = lazy(() => import('./views/base/lists/undo.tsx').then((m) => m.Undo));
const RunPage = lazy(() => import('./views/run/run.tsx').then((m) => m.RunPage));

/** The most serious problem with the server. */
function Banner() {
	const alarm = (text: ComponentChildren) => <p class="banner" role="alert">{text}</p>;
	if (s.signedOut.value)
		return alarm(<>You are signed out. What you typed is kept: sign in and come back.
			<a class="button" href="./" target="_blank">Sign in</a></>);
	if (s.away.value) return alarm('The server does not answer. The page reconnects automatically.');
	if (s.problem.value !== null) return alarm(<>{s.problem.value} <button type="button"
		onClick={() => location.reload()}>Try again</button></>);
	return s.done.value && <Undo />;
}

function Page() {
	const { page, run } = s.view.value;
	const meanwhile = <><main key="wait" class="wait" aria-busy="true" /><Header /></>;
	if (page === 'run' && run !== null) return <RunPage key={run} id={run} meanwhile={meanwhile} />;
	const Later = later[page];
	return Later ? <Later meanwhile={meanwhile} /> : <Compare />;
}

function App() {
	const v = s.view.value;
	return (
		<div class={'app ' + v.page + (s.slimSidebar.value ? ' slimnav' : '')} data-ready={s.settled.value}
			style={v.perRow ? { '--cols': v.perRow } : undefined}>
			<Page />
			<Nav />
			<Banner />
		</div>
	);
}

const first = s.view.value;
let shown = false;
/** What follows the first screen has begun. */
let followed = false;

function show(): void {
	if (!shown) render(<App />, document.getElementById('app')!);
	shown = true;
}

effect(() => {
	document.documentElement.dataset.theme = theme();
});
effect(() => {
	// most users open a run next: load that first
	if (!s.settled.value || followed) return;
	followed = true;
	setTimeout(() => void RunPage.ahead(), AHEAD_MS);
	void Undo.ahead();
	void import('./views/base/afterwards.ts').then((m) => m.afterwards(first));
	void import('./views/charts/paper.ts').then((m) => m.paper());
});
void s.start();
setTimeout(show, ANSWER_MS);
effect(() => {
	if (!s.loading.value || s.view.value.page !== 'compare') queueMicrotask(show);
});
