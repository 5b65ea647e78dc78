// SPDX-License-Identifier: Apache-2.0
// Page of registered models: the list, or one with its versions.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { when } from '../../base/format.ts';
import * as s from '../../state/index.ts';
import { loadModels, models, type ModelHead } from '../../state/saved/registry.ts';
import { Empty, followed } from '../base/bits.tsx';
import '../base/later.ts';
import { addStyles } from '../base/styles.ts';
import { Header } from '../header/header.tsx';
import { pageOf } from './address.ts';
import { OneModel } from './model.tsx';
import text from './models.part.css';

addStyles(text);

const FIND_MS = 250;

function Line({ m }: { m: ModelHead }) {
	const to = pageOf(m.name);
	const names = m.aliases.map((a) => `${a.alias} → ${a.version}`);
	return (
		<tr>
			<td><a href={s.addressOf(to)} onClick={followed(() => s.go(to, true))}>{m.name}</a>
				{m.description && <p class="dim detail">{m.description}</p>}</td>
			<td class="num" data-name="Newest version">{m.newest || ''}</td>
			<td>{names.map((n) => <span key={n} class="alias">{n}</span>)}</td>
			<td class="num">{when(m.changed)}</td>
		</tr>
	);
}

function None({ words }: { words: string }) {
	if (words) return <p class="dim">No model contains “{words}”.</p>;
	return (
		<Empty title="No registered models yet">
			<p>A model is registered from a run: by “Register model” on its page, or by MLflow's client:</p>
			<pre>mlflow.register_model("runs:/RUN_ID/model", "NAME")</pre></Empty>
	);
}

function AllModels() {
	const words = useSignal('');
	const timer = useRef(0);
	useEffect(() => {
		document.title = 'Models · dptrack';
		void loadModels('');
		return () => clearTimeout(timer.current);
	}, []);
	const found = models.value;
	if (!found) return <div class="wait" aria-busy="true" />;
	return (
		<>
			<h1>Models</h1>
			{(found.models.length > 0 || words.value) && <p><input type="search"
				placeholder="Find a model"
				aria-label="Find a model" value={words.value} onInput={(e) => {
					words.value = e.currentTarget.value;
					clearTimeout(timer.current);
					timer.current = window.setTimeout(() => void loadModels(words.value), FIND_MS);
				}} /></p>}
			{found.models.length ? <div class="box scroll"><table>
				<thead><tr><th>Name</th><th>Newest version</th><th class="left">Aliases</th>
					<th>Last change</th></tr></thead>
				<tbody>{found.models.map((m) => <Line key={m.name} m={m} />)}</tbody>
			</table></div> : <None words={words.value} />}
			{found.more && <p class="dim">There are more: search to find them.</p>}
		</>
	);
}

export function Models() {
	const { model } = s.view.value;
	return (
		<><main class="models">
			{model ? <OneModel key={model} name={model} /> : <AllModels />}
		</main><Header /></>
	);
}
