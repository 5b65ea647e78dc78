// SPDX-License-Identifier: Apache-2.0
// Empty states: three ways to log the first run, which the page waits for; a filter without matches.
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
		{ title: 'dptrain', about: 'The data-parallel trainer', token: 'DPTRACK_TOKEN',
			text: `dptrain --experiment '${name.replaceAll('\'', '')}' \\
    --model resnet20 --data-path DATA \\
    --report-to ${url}
` },
	];
}

function Card({ way }: { way: Way }) {
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
			{s.session.value?.signedIn && <p class="dim">
				Set <code>{way.token}</code> to a token that may write.</p>}
		</section>
	);
}

/** Three ways to log; the page shows the first run when it arrives. */
export function FirstRun({ title }: { title: string }) {
	const url = location.origin + location.pathname.replace(/\/$/, '');
	return (
		<div class="empty start">
			<h2>{title}</h2>
			<p>Log one in one of these ways. TensorBoard event files below the served folder are shown, too.
				</p>
			<div class="ways">{ways(s.experiment.value ?? 'first', url).map((w) => (
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
