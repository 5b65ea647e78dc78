// SPDX-License-Identifier: Apache-2.0
// Parent and children of a run, as MLflow's clients nest runs.
import type { Run } from '../../base/types.ts';
import { short } from '../../base/format.ts';
import { bestOf } from '../../base/goal.ts';
import { PARENT_TAG, parentOf } from '../../base/nest.ts';
import * as s from '../../state/index.ts';
import { followed, Key, Name, Shape, useAsked } from '../base/bits.tsx';
import { statements } from '../base/says.ts';

const AT_MOST = 100;

function RunLink({ r }: { r: Run }) {
	return (
		<a href={s.runAddress(r.id)}
			onClick={followed(() => s.openRun(r.id))}><Name text={s.nameOf(r.id, r)} /></a>
	);
}

function Child({ r }: { r: Run }) {
	const g = s.goal.value;
	const v = g ? bestOf(r.metrics[g.key], g.dir) : null;
	const [first] = statements(r);
	return (
		<li>
			<Key look={s.looks.value.byRun.get(r.id)} on /> <RunLink r={r} />
			<span class="grow" />
			{v !== null && <span class="num">{short(v)}</span>}
			{first && (
				<span class={'say ' + first.kind} title={first.text}><Shape kind={first.kind} /></span>
			)}
		</li>
	);
}

/** Filter for a run's children. */
const childrenOf = (id: string) => `tags."${PARENT_TAG}" = '${id}'`;

function Parent({ id }: { id: string }) {
	const found = useAsked(() => s.getRuns({ ids: [id], limit: 1, metrics: [''] }).then((l) => l.runs, () => []),
		[id, s.liveRev.value]);
	if (found?.[0]) return <RunLink r={found[0]} />;
	return <span class="dim">{id.slice(0, 8)}{found && ' (not found)'}</span>;
}

/** Link to a comparison of a run's children. */
function CompareThem({ r, count, more }: { r: Run; count: number; more: boolean }) {
	const to = { page: 'compare', run: null, filter: childrenOf(r.id) } as const;
	return (
		<p><a href={s.addressOf(to)} onClick={followed(() => s.go(to, true))}>
			Compare {more ? 'all of them' : count === 1 ? 'it' : `these ${count}`}</a></p>
	);
}

export function Family({ r }: { r: Run }) {
	const g = s.goal.value;
	const found = useAsked(() => s.getRuns({ filter: childrenOf(r.id), limit: AT_MOST, metrics: [g?.key ?? ''] }),
		[r.id, s.liveRev.value, g?.key], s.report);
	const children = found?.runs ?? [];
	const up = parentOf(r);
	const any = children.length > 0;
	if (up === null && !any) return null;
	return (
		<section class="box family">
			<h2>Nested runs {any && g && <span class="dim">by {g.key}</span>}</h2>
			{up !== null && <p>Belongs to <Parent id={up} /></p>}
			{any && (
				<ul class="files">{[...children].sort(byGoal).map((c) => <Child key={c.id} r={c} />)}
				</ul>
			)}
			{any && <CompareThem r={r} count={children.length} more={found?.next !== null} />}
		</section>
	);
}

function byGoal(a: Run, b: Run): number {
	const g = s.goal.value;
	const value = (r: Run) => {
		const v = g ? bestOf(r.metrics[g.key], g.dir) : null;
		return v === null || Number.isNaN(v) ? Infinity : g!.dir === 'max' ? -v : v;
	};
	const [x, y] = [value(a), value(b)];
	return x === y ? (b.start_time ?? 0) - (a.start_time ?? 0) : x - y;
}
