// SPDX-License-Identifier: Apache-2.0
// Entry point: starts the state and shows the view of the address.
import { effect } from '@preact/signals';
import { render, type ComponentChildren } from 'preact';
import './style.css';
import * as s from './state/index.ts';
import { Compare, Header, lazy, Nav, theme } from './views/index.ts';

const AHEAD_MS = 300;
/** How long to wait for the first reply before an empty page is drawn. */
const ANSWER_MS = 50;
const Experiments = lazy(() => import('./views/experiments/experiments.tsx').then((m) => m.Experiments));
const SideBySide = lazy(() => import('./views/side/side.tsx').then((m) => m.SideBySide));
const Reports = lazy(() => import('./views/report/report.tsx').then((m) => m.Reports));
const Models = lazy(() => import('./views/models/models.tsx').then((m) => m.Models));
const AlertsPage = lazy(() => import('./views/alerts/alerts.tsx').then((m) => m.AlertsPage));
const TrashPage = lazy(() => import('./views/experiments/trash.tsx').then((m) => m.TrashPage));
const RunPage = lazy(() => import('./views/run/run.tsx').then((m) => m.RunPage));

/** The most serious problem with the server. */
function Banner() {
	const alarm = (text: ComponentChildren) => <p class="banner" role="alert">{text}</p>;
	const again = (word: string) => <button type="button" onClick={() => location.reload()}>{word}</button>;
	if (s.signedOut.value)
		return alarm(<>You are signed out: the session has ended or its token was revoked. {again('Sign in')}
			</>);
	if (s.away.value) return alarm('The server does not answer. The page reconnects automatically.');
	if (s.problem.value !== null) return alarm(<>{s.problem.value} {again('Try again')}</>);
	const done = s.done.value;
	return done && (
		<p class="banner told" role="status">{done.text} <button type="button"
			title="z" aria-keyshortcuts="z" onClick={() => void s.undoLast(done)}>Undo</button>
			{!!done.each?.length && <span class="each">or only{done.each.map((one, i) => <button
				key={i} type="button" aria-label={`Undo for ${one.name}`}
				onClick={() => void s.undoLast(one)}>{one.name}</button>)}</span>}
			<button type="button" class="quiet" aria-label="Close"
				onClick={() => (s.done.value = null)}>✕</button></p>
	);
}

function Page() {
	const { page, run } = s.view.value;
	const meanwhile = <><main key="wait" class="wait" aria-busy="true" /><Header /></>;
	if (page === 'run' && run !== null) return <RunPage key={run} id={run} meanwhile={meanwhile} />;
	if (page === 'report') return <Reports meanwhile={meanwhile} />;
	if (page === 'models') return <Models meanwhile={meanwhile} />;
	if (page === 'alerts') return <AlertsPage meanwhile={meanwhile} />;
	if (page === 'trash') return <TrashPage meanwhile={meanwhile} />;
	if (page === 'side') return <SideBySide meanwhile={meanwhile} />;
	return page === 'experiments' ? <Experiments meanwhile={meanwhile} /> : <Compare />;
}

function App() {
	const v = s.view.value;
	return (
		<div class={'app ' + v.page + (s.slimSidebar.value ? ' slimnav' : '')} data-ready={s.settled.value}>
			<Page />
			<Nav />
			<Banner />
		</div>
	);
}

let shown = false;

function show(): void {
	if (!shown) render(<App />, document.getElementById('app')!);
	shown = true;
}

effect(() => {
	document.documentElement.dataset.theme = theme();
});
effect(() => {
	// most users open a run next: load that first
	if (!s.settled.value) return;
	setTimeout(() => void RunPage.ahead(), AHEAD_MS);
	void import('./views/base/afterwards.ts').then((m) => m.afterwards());
});
void s.start();
setTimeout(show, ANSWER_MS);
effect(() => {
	if (!s.loading.value || s.view.value.page !== 'compare') queueMicrotask(show);
});
