// SPDX-License-Identifier: Apache-2.0
// Importance of each param for the goal, with intervals, and the best run's nearest neighbours in words.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { count } from '../../base/format.ts';
import { bestOf, fellOut } from '../../base/goal.ts';
import { importanceOf, RUNS_MIN, type Importance as Found } from '../../base/why/importance.ts';
import { neighbours } from '../../base/why/neighbour.ts';
import { tellingParams } from '../../base/params.ts';
import * as s from '../../state/index.ts';

const WIDTH = 300;
/** Maximum time without a response of the page, in ms. */
const BREATH_MS = 30;
const PARAMS_MAX = 60;

interface Question {
	sign: string;
	names: string[];
	params: Record<string, (string | undefined)[]>;
	target: number[];
}

/** The input: runs that have the goal and are not excluded. */
function question(): Question {
	const g = s.goal.value!;
	const runs = s.rows.value.filter((r) => !fellOut(r) && Number.isFinite(bestOf(r.metrics[g.key], g.dir) ?? NaN))
		.sort((a, b) => (a.id < b.id ? -1 : 1));
	const names = tellingParams(s.split.value, PARAMS_MAX)
		.filter((k) => new Set(runs.map((r) => r.params[k])).size > 1);
	return {
		names, params: Object.fromEntries(names.map((k) => [k, runs.map((r) => r.params[k])])),
		target: runs.map((r) => bestOf(r.metrics[g.key], g.dir)!),
		sign: JSON.stringify([g, names, runs.map((r) => [r.id, r.metrics[g.key]?.count])]),
	};
}

/** Computes in slices, so that the page stays responsive; null until the first result. */
function useImportance(q: Question): { list: Found[] | null; share: number } {
	const list = useSignal<Found[] | null>(null);
	const share = useSignal(0);
	useEffect(() => {
		let here = true;
		const work = importanceOf(q.params, q.target);
		const step = () => {
			if (!here) return;
			const end = performance.now() + BREATH_MS;
			while (performance.now() < end) {
				const got = work.next();
				if (got.done) return void (list.value = got.value);
				share.value = got.value;
			}
			setTimeout(step);
		};
		step();
		return () => void (here = false);
	}, [q.sign]);
	return { list: list.value, share: share.value };
}

function Bar({ f, top }: { f: Found; top: number }) {
	const x = (v: number) => (Math.max(0, v) / top) * (WIDTH - 4);
	return (
		<svg viewBox={`0 0 ${WIDTH} 16`} preserveAspectRatio="none" aria-hidden="true">
			<rect class="share" x="0" y="3" width={x(f.share)} height="10" />
			<path class="reach" d={`M${x(f.low)} 8H${x(f.high)}M${x(f.low)} 5v6M${x(f.high)} 5v6`} />
		</svg>
	);
}

const percent = (v: number) => Math.round(Math.max(0, v) * 100) + ' %';

function Table({ list }: { list: readonly Found[] }) {
	const top = Math.max(0.05, ...list.map((f) => f.high));
	return (
		<table>
			<thead><tr><th>Param</th><th>Share of the variance</th><th>90 % interval</th><th>
				<span class="unseen">As a bar</span></th></tr></thead>
			<tbody>{list.map((f) => (
				<tr key={f.name} class={f.sure ? '' : 'unsure'}>
					<td>{f.name}</td>
					<td class="num">{f.sure ? percent(f.share) : <span
						class="dim">cannot tell</span>}</td>
					<td class="num">{percent(f.low)} to {percent(f.high)}</td>
					<td class="bar"><Bar f={f} top={top} /></td>
				</tr>
			))}</tbody>
		</table>
	);
}

/** Neighbours of the best run, and whether their difference exceeds that of repeats. */
function Neighbours() {
	const list = s.best.value && s.goal.value
		? neighbours(s.best.value, s.rows.value, s.goal.value, tellingParams(s.split.value, PARAMS_MAX)) : [];
	if (!list.length) return null;
	return (
		<>
			<h2>Next to the best run, {s.nameOf(s.best.value!.id, s.best.value!)}</h2>
			<ul>{list.map((n) => (
				<li key={n.run.id}><a href={s.runAddress(n.run.id)}>
					{s.nameOf(n.run.id, n.run)}</a>: {n.text}</li>
			))}</ul>
		</>
	);
}

function explanation(n: number): string {
	return `Share of the variance of ${s.goal.value!.key} over ${count(n, 'run')} that is lost when a param's `
		+ 'values are permuted, by models on runs they have not seen. “Cannot tell”: a permuted copy of a '
		+ 'param does as well. Importance is correlation, not causation.';
}

export function Importance() {
	const q = question();
	const { list, share } = useImportance(q);
	const few = q.target.length < RUNS_MIN || !q.names.length;
	return (
		<div class="card importance">
			{few ? <p>{q.names.length
				? `Needs ${RUNS_MIN} runs (${q.target.length} now).`
				: 'No param differs between the runs that have a value.'}</p>
				: !list ? <p class="dim" role="status">Looking: {Math.round(share * 100)} %</p> : <>
					<p class="dim">{explanation(q.target.length)}</p>
					<Table list={list} /></>}
			<Neighbours />
		</div>
	);
}
