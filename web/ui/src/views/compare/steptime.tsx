// SPDX-License-Identifier: Apache-2.0
// Step time of the charted runs by phase, on one scale.
import { useSignal } from '@preact/signals';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { count, seconds } from '../../base/format.ts';
import { stack, type Segment } from '../../charts/stack.ts';
import { GroupHead, Key, Name } from '../base/bits.tsx';
import { Bar, phasesOf, PhaseLegend, shares } from '../base/phases.tsx';
import '../base/later.ts';

const FIRST = 24;

interface RunTime {
	r: Run;
	/** In seconds. */
	parts: Segment[];
}

const samplesOf = (r: Run) => Number(r.params.global_batch_size) || null;

/** A run's bar, where whole is the full length; its seconds are divided by per. */
function RunBar({ of: { r, parts }, per, whole }: { of: RunTime; per: number; whole: number }) {
	const segments = stack(parts.map((p) => ({ name: p.name, value: p.value / per })), whole);
	return (
		<div class={'rankbar' + (s.lit.value === r.id ? ' lit' : '')} onMouseEnter={() => (s.lit.value = r.id)}
			onMouseLeave={() => (s.lit.value = null)}>
			<span class="name"><Key look={s.looks.value.byRun.get(r.id)} on /><Name text={r.name} /></span>
			<Bar segments={segments} label={`${r.name}: ${shares(parts)}`} />
			<span class="num">{seconds(total(parts) / per)}</span>
		</div>
	);
}

const total = (parts: readonly Segment[]): number => parts.reduce((a, p) => a + p.value, 0);

export function StepTime() {
	const open = useSignal(true);
	const each = useSignal(false);
	const all = s.shown.value.map((r): RunTime => ({ r, parts: phasesOf(r) ?? [] })).filter((x) => x.parts.length);
	if (!all.length) return null;
	const list = all.slice(0, FIRST);
	const bySample = list.every((x) => samplesOf(x.r) !== null);
	const per = (r: Run) => (each.value && bySample ? samplesOf(r)! : 1);
	const whole = Math.max(...list.map((x) => total(x.parts) / per(x.r)));
	return (
		<section class="group" aria-label="Time by phase">
			<GroupHead open={open.value} toggle={() => (open.value = !open.value)} name="Time by phase"
				count={all.length} />
			{open.value && (
				<div class="card steptime">
					{bySample && <label><input type="checkbox" checked={each.value}
						onChange={() => (each.value = !each.value)} /> Per sample</label>}
					{list.map((x) => <RunBar key={x.r.id} of={x} per={per(x.r)} whole={whole} />)}
					{all.length > FIRST && <p class="dim">
						{count(all.length - FIRST, 'more run')} shown in the charts</p>}
					<PhaseLegend
						names={[...new Set(list.flatMap((x) => x.parts.map((p) => p.name)))]} />
				</div>
			)}
		</section>
	);
}
