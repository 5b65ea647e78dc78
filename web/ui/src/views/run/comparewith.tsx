// SPDX-License-Identifier: Apache-2.0
// Tab that puts a run side by side with others, and compares its speed with one of them.
import { useSignal } from '@preact/signals';
import { bestOf } from '../../base/goal.ts';
import { count, short } from '../../base/format.ts';
import type { Run, RunDetail } from '../../base/types.ts';
import { matchesWords } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { Key } from '../base/bits.tsx';
import { Versus } from './versus.tsx';

const LISTED = 100;

function Line({ o, on, toggle }: { o: Run; on: boolean; toggle: () => void }) {
	const g = s.goal.value;
	const v = g ? bestOf(o.metrics[g.key], g.dir) : null;
	return (
		<li><label class="choice"><input type="checkbox" checked={on} onChange={toggle} />
			<Key look={s.looks.value.byRun.get(o.id)} on /> {s.nameOf(o.id, o)}
			{s.best.value?.id === o.id && <span class="dim">best</span>}
			<span class="grow" />{v !== null && <span class="num">{short(v)}</span>}</label></li>
	);
}

export function CompareWith({ r }: { r: RunDetail }) {
	const words = useSignal('');
	const chosen = useSignal<readonly string[]>([]);
	const others = s.rows.value.filter((o) => o.id !== r.id);
	const found = others.filter((o) => matchesWords(words.value, [o.name]));
	const toggle = (id: string) => (chosen.value = chosen.value.includes(id)
		? chosen.value.filter((c) => c !== id) : [...chosen.value, id]);
	const begin = () => s.compareRuns([r, ...others.filter((o) => chosen.value.includes(o.id))]);
	if (!others.length) return <p class="nothing">The experiment has no other run.</p>;
	return (
		<div class="parts">
			<section class="box comparewith">
				<h2>Compare with</h2>
				<input type="search" placeholder={`Find among ${count(others.length, 'run')}`}
					aria-label="Find a run"
					value={words.value} onInput={(e) => (words.value = e.currentTarget.value)} />
				<ul class="files">{found.slice(0, LISTED).map((o) => <Line key={o.id} o={o}
					on={chosen.value.includes(o.id)} toggle={() => toggle(o.id)} />)}</ul>
				{found.length > LISTED && <p class="dim">
					{found.length - LISTED} more: search to find them.</p>}
				<p><button type="button" class="primary" onClick={begin}
					disabled={!chosen.value.length || chosen.value.length >= s.COMPARED_MAX}>
					{!chosen.value.length ? 'Compare'
						: `Compare ${chosen.value.length + 1} runs`}</button></p>
			</section>
			<section class="box"><h2>Speed</h2><Versus r={r} /></section>
		</div>
	);
}
