// What a run belongs to and what belongs to it, as MLflow's clients nest runs: links both ways.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import * as api from '../../state/api.ts';
import type { Run } from '../../base/types.ts';
import { short } from '../../base/format.ts';
import { bestOf } from '../../base/goal.ts';
import { PARENT_TAG, parentOf } from '../../base/nest.ts';
import * as s from '../../state/index.ts';
import { Key, Name, Shape, statements } from '../base/bits.tsx';

const AT_MOST = 100;

function RunLink({ r }: { r: Run }) {
	return (
		<a href={s.addressOf({ page: 'run', run: r.id.slice(0, 12) })} onClick={(e) => {
			if (e.ctrlKey || e.metaKey || e.shiftKey) return;
			e.preventDefault();
			s.openRun(r.id);
		}}><Name text={r.name || r.id.slice(0, 8)} /></a>
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
			{first && <span class={'say ' + first.kind} title={first.text}><Shape kind={first.kind} /></span>}
		</li>
	);
}

/** The filter that finds a run's children. */
const childrenOf = (id: string) => `tags."${PARENT_TAG}" = '${id}'`;

export function Family({ r }: { r: Run }) {
	const parent = useSignal<Run | null | undefined>(undefined);
	const children = useSignal<{ runs: Run[]; more: boolean } | null>(null);
	const up = parentOf(r);
	const rev = s.liveRev.value;
	useEffect(() => {
		let here = true;
		api.getRuns({ filter: childrenOf(r.id), limit: AT_MOST })
			.then((l) => here && (children.value = { runs: l.runs, more: l.next !== null }), s.report);
		if (up !== null) api.getRuns({ ids: [up], limit: 1 }).then((l) => here && (parent.value = l.runs[0] ?? null), () => here && (parent.value = null));
		return () => {
			here = false;
		};
	}, [r.id, up, rev]);
	const list = children.value?.runs ?? [];
	if (up === null && !list.length) return null;
	const g = s.goal.value;
	return (
		<section class="box family">
			<h2>Nested runs {list.length > 0 && g && <span class="dim">by {g.key}</span>}</h2>
			{up !== null && <p>belongs to {parent.value ? <RunLink r={parent.value} /> : <span class="dim">{up.slice(0, 8)}{parent.value === null && ', which is not here'}</span>}</p>}
			{list.length > 0 && <ul class="files">{[...list].sort(byGoal).map((c) => <Child key={c.id} r={c} />)}</ul>}
			{list.length > 0 && <p><a href={s.addressOf({ page: 'compare', run: null, filter: childrenOf(r.id) })} onClick={(e) => {
				if (e.ctrlKey || e.metaKey || e.shiftKey) return;
				e.preventDefault();
				s.go({ page: 'compare', run: null, filter: childrenOf(r.id) }, true);
			}}>compare {children.value!.more ? 'all of them' : list.length === 1 ? 'it' : `these ${list.length}`}</a></p>}
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
