// SPDX-License-Identifier: Apache-2.0
// Speed-up over another run of the experiment, as a sentence and as bars of phases.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Run, RunDetail } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { changeAddress, getChange } from '../../state/insight.ts';
import { Str } from '../../strings/en.ts';

/** Runs to choose from, most recently ended first. */
const AT_MOST = 200;

function choices(r: Run): Run[] {
	const others = s.runs.value.filter((o) => o.id !== r.id && o.experiment === r.experiment);
	return others.sort((a, b) => (b.start_time ?? 0) - (a.start_time ?? 0)).slice(0, AT_MOST);
}

/** The sentence for a pair; undefined while loading, null if unknown. */
function useChange(from: string, to: string): string | null | undefined {
	const told = useSignal<string | null | undefined>(undefined);
	useEffect(() => {
		let here = true;
		told.value = undefined;
		if (from) getChange(from, to).then((t) => here && (told.value = t), s.report);
		return () => void (here = false);
	}, [from, to]);
	return told.value;
}

export function Versus({ r }: { r: RunDetail }) {
	const from = useSignal('');
	const told = useChange(from.value, r.id);
	const runs = choices(r);
	const picture = changeAddress(from.value, r.id);
	if (!runs.length) return null;
	return (
		<>
			<p><label>{Str.ComparedWith} <select value={from.value}
				onChange={(e) => (from.value = e.currentTarget.value)}>
				<option value="">…</option>
				{runs.map((o) => <option key={o.id} value={o.id}>{s.nameOf(o.id, o)}</option>)}
			</select></label></p>
			{from.value && told !== undefined && <p class="told" role="status">
				{told ?? Str.CannotCompareOneOfThe}</p>}
			{from.value && told && <a href={picture} target="_blank" rel="noreferrer">
				<img src={picture} alt={told} /></a>}
		</>
	);
}
