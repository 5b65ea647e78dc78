// SPDX-License-Identifier: Apache-2.0
// Further experiments in the table: which there are, one more, one less.
import * as s from '../../state/index.ts';
import '../base/later.ts';

export function Also() {
	const { also } = s.view.value;
	const shown = s.shownExperiments.value;
	const others = s.experiments.value?.filter((e) => e.run_count && !shown.includes(e.name));
	const show = (list: string[]) => s.go({ experiment: s.experiment.value, also: list }, true);
	return (
		<>
			{also.map((n) => <button key={n} type="button" class="also"
				title={`Leave out the runs of ${n}`} onClick={() => show(also.filter((o) => o !== n))}>
				+ {n} <span class="dim">✕</span></button>)}
			{!!others?.length && <select class="also" aria-label="Add an experiment"
				title="Add the runs of another experiment" value=""
				onChange={(e) => show([...also, e.currentTarget.value])}>
				<option value="">+</option>
				{others.map((e) => <option key={e.id} value={e.name}>{e.name}</option>)}
			</select>}
		</>
	);
}
