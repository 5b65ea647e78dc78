// Time of a step of the runs that the charts show, split by phase, on one scale.
import { useSignal } from '@preact/signals';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { count, seconds } from '../../base/format.ts';
import { stack, type Segment } from '../../charts/stack.ts';
import { Key, Name } from '../base/bits.tsx';
import { Bar, phasesOf, PhaseLegend, shares } from '../base/phases.tsx';

const FIRST = 24;

const samplesOf = (r: Run) => Number(r.params.global_batch_size) || null;

export function StepTime() {
	const open = useSignal(true);
	const each = useSignal(false);
	const all = s.shown.value.map((r) => ({ r, parts: phasesOf(r) })).filter((x): x is { r: Run; parts: Segment[] } => !!x.parts?.length);
	if (!all.length) return null;
	const list = all.slice(0, FIRST);
	const bySample = list.every((x) => samplesOf(x.r) !== null);
	const per = (r: Run) => (each.value && bySample ? samplesOf(r)! : 1);
	const total = (x: { r: Run; parts: Segment[] }) => x.parts.reduce((a, p) => a + p.value, 0) / per(x.r);
	const whole = Math.max(...list.map(total));
	return (
		<section class="group" aria-label="Time by phase">
			<h2>
				<button type="button" class="quiet" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
					<span aria-hidden="true">{open.value ? '▾' : '▸'}</span> time by phase <span class="dim">{all.length}</span>
				</button>
			</h2>
			{open.value && (
				<div class="card steptime">
					{bySample && <label><input type="checkbox" checked={each.value} onChange={() => (each.value = !each.value)} /> per sample</label>}
					{list.map((x) => {
						const parts = stack(x.parts.map((p) => ({ name: p.name, value: p.value / per(x.r) })), whole);
						return (
							<div class={'rankbar' + (s.lit.value === x.r.id ? ' lit' : '')} key={x.r.id} onMouseEnter={() => (s.lit.value = x.r.id)}
								onMouseLeave={() => (s.lit.value = null)}>
								<span class="name"><Key look={s.looks.value.byRun.get(x.r.id)} on /><Name text={x.r.name} /></span>
								<Bar segments={parts} label={`${x.r.name}: ${shares(x.parts)}`} />
								<span class="num">{seconds(total(x))}</span>
							</div>
						);
					})}
					{all.length > FIRST && <p class="dim">{count(all.length - FIRST, 'more run')} shown in the charts</p>}
					<PhaseLegend names={[...new Set(list.flatMap((x) => x.parts.map((p) => p.name)))]} />
				</div>
			)}
		</section>
	);
}
