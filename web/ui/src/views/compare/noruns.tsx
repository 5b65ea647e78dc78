// SPDX-License-Identifier: Apache-2.0
// Empty states: three ways to log the first run, which the page waits for; a filter without matches.
import { useSignal } from '@preact/signals';
import * as s from '../../state/index.ts';
import { filled, parts, Str } from '../../strings/en.ts';
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
		{ title: Str.Python, about: Str.InAnyTrainingScript, token: 'DPTRACK_TOKEN', text: `import dptrack

run = dptrack.init(
    experiment=${quoted}, run_name="hello",
    config={"lr": 0.1}, url="${url}")
for step in range(1, 101):
    run.log({"train/loss": 1 / step}, step=step)
run.finish()
` },
		{ title: Str.MLflowsClient, about: Str.ChangeTheAddressAndNothing,
			token: 'MLFLOW_TRACKING_TOKEN', text: `import mlflow

mlflow.set_tracking_uri(
    "${url}")
mlflow.set_experiment(${quoted})
with mlflow.start_run(run_name="hello"):
    mlflow.log_param("lr", 0.1)
    for step in range(1, 101):
        mlflow.log_metric("train/loss", 1 / step, step=step)
` },
		{ title: Str.dptrain, about: Str.TheDataParallelTrainer, token: 'DPTRACK_TOKEN',
			text: `dptrain --experiment '${name.replaceAll('\'', '')}' \\
    --model resnet20 --data-path DATA \\
    --report-to ${url}
` },
	];
}

function Card({ way }: { way: Way }) {
	const said = useSignal('');
	const take = async () => {
		said.value = (await copy(way.text)) ? Str.Copied : Str.TheBrowserDoesNotAllow;
	};
	return (
		<section class="box way" aria-label={way.title}>
			<h2>{way.title}</h2>
			<p class="dim">{way.about}</p>
			<pre tabIndex={0} aria-label={filled(Str.CodeForX, way.title)}>{way.text}</pre>
			<p class="options"><button type="button" onClick={() => void take()}>
				<Icon name="copy" />{Str.Copy}</button>
				<span role="status" class="dim">{said.value}</span></p>
			{s.session.value?.signedIn && <p class="dim">
				{parts(Str.SetXToATokenThat, <code>{way.token}</code>)}</p>}
		</section>
	);
}

/** Three ways to log; the page shows the first run when it arrives. */
export function FirstRun({ title }: { title: string }) {
	const url = location.origin + location.pathname.replace(/\/$/, '');
	return (
		<div class="empty start">
			<h2>{title}</h2>
			<p>{Str.LogOneInOneOfThese}</p>
			<div class="ways">{ways(s.experiment.value ?? 'first', url).map((w) => (
				<Card key={w.title} way={w} />))}</div>
			<p class="waiting" role="status"><i class="live" />{Str.WaitingForTheFirstRun}</p>
		</div>
	);
}

export function NoRuns() {
	const known = s.totalRuns.value;
	if (!s.view.value.filter) return <FirstRun title={Str.NoRunsYet} />;
	return (
		<Empty title={Str.NoRunMatchesTheFilter}>
			<p>{known > 0 && `${filled(Str.ThisExperimentHasXRuns, known)} `}
				{parts(Str.TheFilterIsX, <code>{s.view.value.filter}</code>)}</p>
			<p><button type="button" onClick={() => s.go({ filter: '' })}>{Str.ClearTheFilter}</button></p>
		</Empty>
	);
}
