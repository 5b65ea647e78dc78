// SPDX-License-Identifier: Apache-2.0
// Empty state: how to start a run, or how to clear a filter without matches.
import * as s from '../../state/index.ts';
import { Empty } from '../base/bits.tsx';

function HowToStart({ name }: { name: string }) {
	return (
		<>
			<p>Start one next to the served folder; it appears here automatically:</p>
			<pre>dptrain --experiment {name} --model resnet20 --data-path DATA</pre>
			<p>TensorBoard event files below the served folder are shown too.</p>
		</>
	);
}

export function NoRuns() {
	return (
		<Empty title={s.view.value.filter ? 'No run matches the filter' : 'No runs yet'}>
			{s.view.value.filter
				? <button type="button" onClick={() => s.go({ filter: '' })}>clear the filter</button>
				: <HowToStart name={s.experiment.value ?? 'first'} />}
		</Empty>
	);
}
