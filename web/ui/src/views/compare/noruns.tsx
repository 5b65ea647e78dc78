// Empty state: how to start a run, or how to clear a filter without matches.
import * as s from '../../state/index.ts';
import { Empty } from '../base/bits.tsx';

function HowToStart({ name }: { name: string }) {
	return (
		<>
			<p>Start one beside the served folder; it appears here by itself:</p>
			<pre>dptrain --experiment {name} --model resnet20 --data-path DATA</pre>
			<p>Event files that TensorBoard reads can be put below the served folder too.</p>
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
