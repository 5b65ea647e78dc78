// SPDX-License-Identifier: Apache-2.0
// Best run of an experiment, loaded when its row becomes visible.
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { fixed } from '../../base/format.ts';
import type { Experiment } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { bestOfExperiment, type Best } from '../../state/saved/experiments.ts';
import { Breaking, followed } from '../base/bits.tsx';

/** By experiment and its last change; null: none, or loading. */
const known = signal<ReadonlyMap<string, Best | null>>(new Map());

/** One request at a time: rows of a long list may scroll away first. */
const waiting: { key: string; e: Experiment }[] = [];
let asking = false;

async function askOn(): Promise<void> {
	if (asking) return;
	asking = true;
	for (let w = waiting.pop(); w; w = waiting.pop()) {
		const best = await bestOfExperiment(w.e).catch(() => null);
		known.value = new Map(known.value).set(w.key, best);
	}
	asking = false;
}

export function BestCell({ e }: { e: Experiment }) {
	const box = useRef<HTMLSpanElement>(null);
	const key = `${e.id} ${e.name} ${e.last_time} ${e.run_count}`;
	useEffect(() => {
		if (known.value.has(key) || !e.run_count) return undefined;
		const drop = () => {
			const at = waiting.findIndex((w) => w.key === key);
			if (at >= 0) waiting.splice(at, 1);
		};
		const watch = new IntersectionObserver(([seen]) => {
			drop();
			if (!seen!.isIntersecting || known.value.has(key)) return;
			waiting.push({ key, e });
			void askOn();
		});
		watch.observe(box.current!);
		return () => {
			drop();
			watch.disconnect();
		};
	}, [key]);
	const b = known.value.get(key);
	const at = (run: string) => s.addressOf({ page: 'run', experiment: e.name, run: run.slice(0, 12) });
	return (
		<span ref={box}>{b && <a href={at(b.run.id)}
			title={`${b.goal.key}, ${b.goal.dir === 'max' ? 'highest' : 'lowest'}: ${b.run.name}`}
			onClick={followed(() => s.openRun(b.run.id))}><small class="dim"><Breaking
				text={b.goal.key} /></small> {fixed(b.value, 4)}</a>}</span>
	);
}
