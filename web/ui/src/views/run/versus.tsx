// SPDX-License-Identifier: Apache-2.0
// Speed-up over another run of the experiment, as a sentence and as bars of phases.
import { useSignal } from '@preact/signals';
import type { Run, RunDetail } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { changeAddress, getChange } from '../../state/insight.ts';
import { useAsked } from '../base/bits.tsx';

/** Runs to choose from, most recently ended first. */
const AT_MOST = 200;

function choices(r: Run): Run[] {
	const others = s.runs.value.filter((o) => o.id !== r.id && o.experiment === r.experiment);
	return others.sort((a, b) => (b.start_time ?? 0) - (a.start_time ?? 0)).slice(0, AT_MOST);
}

/** The sentence and the picture of a pair of runs. */
function Change({ from, to }: { from: string; to: string }) {
	const change = useAsked(() => getChange(from, to).then((text) => ({ text })), [from, to], s.report);
	const picture = changeAddress(from, to);
	return change && <>
		<p class="told" role="status">{change.text ?? 'Cannot compare: one of the runs has no timed steps.'}</p>
		{change.text && <a href={picture} target="_blank" rel="noreferrer">
			<img src={picture} alt={change.text} /></a>}</>;
}

export function Versus({ r }: { r: RunDetail }) {
	const from = useSignal('');
	const runs = choices(r);
	if (!runs.length) return null;
	return (
		<>
			<p><label>Compared with <select value={from.value}
				onChange={(e) => (from.value = e.currentTarget.value)}>
				<option value="">…</option>
				{runs.map((o) => <option key={o.id} value={o.id}>{s.nameOf(o.id, o)}</option>)}
			</select></label></p>
			{from.value && <Change key={from.value + r.id} from={from.value} to={r.id} />}
		</>
	);
}
