// SPDX-License-Identifier: Apache-2.0
// Step time by rank: a bar each on one scale, and the slow rank in words.
import { stack } from '../../charts/stack.ts';
import { count, seconds } from '../../base/format.ts';
import { ownSeconds, stragglerOf } from '../../base/heat.ts';
import { PHASE_KEYS, type RankPhases } from '../../state/index.ts';
import { Bar, PhaseLegend, shares } from '../base/phases.tsx';

const BARS_MAX = 16;

/** Phases in which a rank works rather than waits. */
const OWN = PHASE_KEYS.filter((k) => k !== 'comm_exposed' && k !== 'allreduce');

const own = (r: RankPhases) => ownSeconds(r, OWN);

export function RankBars({ ranks }: { ranks: readonly RankPhases[] }) {
	const total = (r: RankPhases) => PHASE_KEYS.reduce((a, k) => a + (r.seconds[k] ?? 0), 0);
	const whole = Math.max(...ranks.map(total));
	const slow = stragglerOf(ranks, OWN);
	const list = ranks.length <= BARS_MAX ? ranks : [...ranks].sort((a, b) => own(b) - own(a)).slice(0, BARS_MAX);
	return (
		<div class="rankbars">
			{slow && <p class="warn">Rank {slow.rank} is {Math.round(slow.more * 100)} % slower than the
				usual rank, mostly in {slow.phase}; the others wait for it.</p>}
			{list.map((r) => {
				const segs = stack(Object.entries(r.seconds).filter(([k]) => PHASE_KEYS.includes(k))
					.map(([name, value]) => ({ name, value })), whole);
				return (
					<div class="rankbar" key={r.rank}>
						<span>{r.rank < 0 ? 'run' : `rank ${r.rank}`}</span>
						<Bar segments={segs} label={shares(segs)} />
						<span class="num">{seconds(total(r))}</span>
					</div>
				);
			})}
			{list.length < ranks.length
				&& <p class="dim">The slowest {BARS_MAX} of {count(ranks.length, 'rank')}</p>}
			<PhaseLegend names={PHASE_KEYS.filter((k) => ranks.some((r) => (r.seconds[k] ?? 0) > 0))} />
		</div>
	);
}
