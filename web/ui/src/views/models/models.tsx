// SPDX-License-Identifier: Apache-2.0
// Page of registered models: the list, or one with its versions.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { when } from '../../base/format.ts';
import * as s from '../../state/index.ts';
import { loadModels, models, type ModelHead } from '../../state/saved/registry.ts';
import { Empty, followed } from '../base/bits.tsx';
import { Find, List, type Column } from '../base/lists/list.tsx';
import { Versions } from '../base/lists/versions.tsx';
import { addStyles } from '../base/styles.ts';
import { Header } from '../header/header.tsx';
import { pageOf } from './address.ts';
import { OneModel } from './model.tsx';
import text from './models.part.css';

addStyles(text);

const FIND_MS = 250;

const COLUMNS: readonly Column<ModelHead>[] = [
	{ head: 'Name', cell: (m) => <><a href={s.addressOf(pageOf(m.name))}
		onClick={followed(() => s.go(pageOf(m.name), true))}>{m.name}</a>
		{m.description && <p class="dim detail">{m.description}</p>}</> },
	{ head: 'Newest version', cell: (m) => m.newest || '', num: true },
	{ head: 'Aliases', cell: (m) => m.aliases.map((a) => <span key={a.alias} class="alias">
		{a.alias} → {a.version}</span>) },
	{ head: 'Last change', cell: (m) => when(m.changed), num: true },
];

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
	useEffect(() => {
		document.title = 'Models · dptrack';
	}, []);
	useEffect(() => {
		const timer = setTimeout(() => void loadModels(words.value), words.value ? FIND_MS : 0);
		return () => clearTimeout(timer);
	}, [words.value]);
	const found = models.value;
	return (
		<>
			<h1>Models</h1>
			<Find label="Models" n={found?.models.length ?? 0} words={words} from={0} />
			<List label="Models" rows={found && found.models} id={(m) => m.name} columns={COLUMNS}
				none={<None words={words.value} />} />
			{s.experiment.value !== null && <Versions of="experiment" name={s.experiment.value} />}
			{found?.more && <p class="dim">There are more: search to find them.</p>}
		</>
	);
}

export function Models() {
	const { model } = s.view.value;
	return (
		<><main class="page models">{model ? <OneModel key={model} name={model} /> : <AllModels />}
		</main><Header /></>
	);
}
