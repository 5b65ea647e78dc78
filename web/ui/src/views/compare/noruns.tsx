// SPDX-License-Identifier: Apache-2.0
// Empty states: the ways to log the first run, which the page waits for; a filter without matches. And what programs
// set to reach this server.
import { useSignal } from '@preact/signals';
import * as s from '../../state/index.ts';
import { Empty } from '../base/bits.tsx';
import { copy } from '../base/copytext.tsx';
import { Icon } from '../base/icon.tsx';
import '../base/later.ts';

interface Way {
	title: string;
	about: string;
	/** What is copied. */
	text: string;
	/** Its variable for a token, if the server asks for one. */
	token: string;
}

/** The address of this server, for programs. */
const address = () => location.origin + location.pathname.replace(/\/$/, '');
/** Of W&B's client, which takes no shorter one, for a server without tokens. */
const KEY = '0123456789'.repeat(4);
const exported = (name: string, value: string) => `export ${name}=${value}\n`;

function ways(name: string, url: string): Way[] {
	const quoted = JSON.stringify(name);
	return [
		{ title: 'Python', about: 'In any training script', token: 'DPTRACK_TOKEN', text: `import dptrack

run = dptrack.init(
    experiment=${quoted}, run_name="hello",
    config={"lr": 0.1}, url="${url}")
for step in range(1, 101):
    run.log({"train/loss": 1 / step}, step=step)
run.finish()
` },
		{ title: "MLflow's client", about: 'Change the address and nothing else',
			token: 'MLFLOW_TRACKING_TOKEN', text: `import mlflow

mlflow.set_tracking_uri(
    "${url}")
mlflow.set_experiment(${quoted})
with mlflow.start_run(run_name="hello"):
    mlflow.log_param("lr", 0.1)
    for step in range(1, 101):
        mlflow.log_metric("train/loss", 1 / step, step=step)
` },
		{ title: "W&B's client", about: 'Two variables; the script stays as it is', token: 'WANDB_API_KEY',
			text: `${exported('WANDB_BASE_URL', url)}${exported('WANDB_API_KEY', KEY)}python train.py
` },
		{ title: 'dptrain', about: 'The data-parallel trainer', token: 'DPTRACK_TOKEN',
			text: `dptrain --experiment '${name.replaceAll('\'', '')}' \\
    --model resnet20 --data-path DATA \\
    --report-to ${url}
` },
	];
}

/** The variables of each client. token: '' where the server needs none. */
export function variables(token: string): Way[] {
	const url = address();
	const ifAny = (name: string) => (token ? exported(name, token) : '');
	return [
		{ title: 'Python and dptrain', about: 'import dptrack, dptrain', token: '',
			text: exported('DPTRACK_URL', url) + ifAny('DPTRACK_TOKEN') },
		{ title: 'MLflow', about: 'import mlflow', token: '',
			text: exported('MLFLOW_TRACKING_URI', url) + ifAny('MLFLOW_TRACKING_TOKEN') },
		{ title: 'W&B', about: 'import wandb', token: '',
			text: exported('WANDB_BASE_URL', url) + exported('WANDB_API_KEY', token || KEY) },
	];
}

export function Card({ way }: { way: Way }) {
	const said = useSignal('');
	const take = async () => {
		said.value = (await copy(way.text)) ? 'Copied' : 'The browser does not allow it: select the text';
	};
	return (
		<section class="box way" aria-label={way.title}>
			<h2>{way.title}</h2>
			<p class="dim">{way.about}</p>
			<pre tabIndex={0} aria-label={`Code for ${way.title}`}>{way.text}</pre>
			<p class="options"><button type="button" onClick={() => void take()}>
				<Icon name="copy" />Copy</button>
				<span role="status" class="dim">{said.value}</span></p>
			{s.session.value?.scope && way.token && <p class="dim">
				Set <code>{way.token}</code> to a token that may write.</p>}
		</section>
	);
}

/** Ways to log; the page shows the first run when it arrives. */
export function FirstRun({ title }: { title: string }) {
	return (
		<div class="empty start">
			<h2>{title}</h2>
			<p>Log one in one of these ways. TensorBoard event files below the served folder are shown, too.
				</p>
			<div class="ways">{ways(s.experiment.value ?? 'first', address()).map((w) => (
				<Card key={w.title} way={w} />))}</div>
			<p class="waiting" role="status"><i class="live" />
				Waiting for the first run: this page shows it as soon as it starts.</p>
		</div>
	);
}

export function NoRuns() {
	const known = s.totalRuns.value;
	if (!s.view.value.filter) return <FirstRun title="No runs yet" />;
	return (
		<Empty title="No run matches the filter">
			<p>{known > 0 && `This experiment has ${known} runs. `}
				The filter is <code>{s.view.value.filter}</code></p>
			<p><button type="button" onClick={() => s.go({ filter: '' })}>Clear the filter</button></p>
		</Empty>
	);
}
