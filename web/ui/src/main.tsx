// Starts the page: the state, then the view that the address names.
import { effect } from '@preact/signals';
import { render } from 'preact';
import './style.css';
import * as s from './state.ts';
import { Compare, Experiments, RunPage, theme } from './views/index.ts';

function App() {
	const v = s.view.value;
	return (
		<div class={'app ' + v.page} data-ready={s.settled.value}>
			{v.page === 'run' && v.run !== null ? <RunPage key={v.run} id={v.run} /> : v.page === 'experiments' ? <Experiments /> : <Compare />}
			{s.problem.value !== null && <p class="banner" role="alert">{s.problem.value}
				<button type="button" onClick={() => location.reload()}>try again</button></p>}
		</div>
	);
}

effect(() => {
	document.documentElement.dataset.theme = theme();
});
s.start();
render(<App />, document.getElementById('app')!);
