// SPDX-License-Identifier: Apache-2.0
// Step time as a bar with a segment per phase.
import { phaseClass, stack, type Segment } from '../../charts/stack.ts';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';

/** Segments of the run's bar; null if it logs no phases or they are not loaded. */
export function phasesOf(r: Run): Segment[] | null {
	const seconds = s.phaseSeconds(r);
	return seconds && stack(Object.entries(seconds).map(([name, value]) => ({ name, value })));
}

export function shares(list: readonly Segment[]): string {
	return list.map((p) => `${p.name} ${Math.round(p.share * 100)} %`).join(', ');
}

export function Bar({ segments, label }: { segments: readonly Segment[]; label: string }) {
	return (
		<span class="phases" role="img" aria-label={label} title={label}>
			{segments.map((p) => (
				<span key={p.name} class={'ph ' + phaseClass(p.name)}
					style={{ width: (p.share * 100).toFixed(2) + '%' }} />
			))}
		</span>
	);
}

export function PhaseBar({ run }: { run: Run }) {
	const list = phasesOf(run);
	return list ? <Bar segments={list} label={shares(list)} /> : null;
}

export function PhaseLegend({ names }: { names: readonly string[] }) {
	const order = stack(names.map((name) => ({ name, value: 1 })));
	return (
		<p class="legend">
			{order.map((p) => <span key={p.name}><i class={'ph ' + phaseClass(p.name)} />
				{p.name.replace(/_/g, ' ')}</span>)}
		</p>
	);
}
