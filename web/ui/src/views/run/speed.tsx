// SPDX-License-Identifier: Apache-2.0
// Diagnosis of a run's speed with recommendations, from the server; link to its trace.
import { useSignal } from '@preact/signals';
import { count } from '../../base/format.ts';
import type { RunDetail } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { getDiagnosis, traceAddress, type Diagnosis, type Leaf } from '../../state/insight.ts';
import { useAsked } from '../base/bits.tsx';
import { lazy } from '../base/lazy.tsx';
import { Versus } from './versus.tsx';

const TraceView = lazy(() => import('../insight/trace.tsx').then((m) => m.TraceView));

/** The finding in words: what its sentence begins with. */
const titleOf = (leaf: Leaf) => leaf.sentence.split(':', 1)[0] ?? '';

function LeafRow({ leaf }: { leaf: Leaf }) {
	const title = titleOf(leaf);
	return (
		<li>
			<p><b>{title}</b>{leaf.sentence.slice(title.length)}</p>
			<meter value={leaf.share} aria-label={`${title}, share of the time`} />
			<dl class="pairs">
				<div><dt>Found</dt><dd>{leaf.evidence}</dd></div>
				<div><dt>Usual</dt><dd>{leaf.usual}</dd></div>
				<div><dt>Next</dt><dd>{leaf.action}</dd></div>
			</dl>
		</li>
	);
}

function Verdict({ d }: { d: Diagnosis }) {
	return (
		<>
			{d.leaves.length > 0
				? <ol class="leaves">{d.leaves.map((l) => <LeafRow key={l.leaf} leaf={l} />)}</ol>
				: <p>{d.sentence}</p>}
			<p class="dim">Bound by {d.bound}
				. Based on {count(d.steps, 'step')} after {d.warmup} warm-up steps.</p>
		</>
	);
}

function TraceLink({ r }: { r: RunDetail }) {
	if (!r.params.trace_steps) return null;
	return (
		<p><a href={traceAddress(r.id)} download={`${r.name}.trace.json`}>
			Trace of steps {r.params.trace_steps}</a> <span class="dim">for ui.perfetto.dev</span></p>
	);
}

/** Timeline of a traced run, loaded on demand. */
export function Traced({ r }: { r: RunDetail }) {
	const open = useSignal(false);
	if (!r.params.trace_steps) return null;
	return (
		<section class="box traced">
			<h2>Steps {r.params.trace_steps} <button type="button" aria-expanded={open.value}
				onClick={() => (open.value = !open.value)}>Timeline</button></h2>
			{open.value && <TraceView run={r.id} />}
		</section>
	);
}

/** Diagnosis of speed and losses. */
export function Speed({ r }: { r: RunDetail }) {
	const d = useAsked(() => getDiagnosis(r.id), [r.id, s.liveRev.value], s.report);
	if (!d) return null;
	return (
		<>
			{d.verdict && (
				<section class="box speed">
					<h2>Speed{d.leaves[0] ? `: ${titleOf(d.leaves[0])}` : ''}</h2>
					<Verdict d={d} />
					<TraceLink r={r} />
					<Versus r={r} />
				</section>
			)}
			{d.overfitting && (
				<section class="box learning">
					<h2>Learning</h2>
					<p>{d.overfitting}</p>
				</section>
			)}
		</>
	);
}
