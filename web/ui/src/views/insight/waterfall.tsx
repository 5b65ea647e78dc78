// SPDX-License-Identifier: Apache-2.0
// Speed by change: from run to run, seconds per sample by phase, the factor with its interval, the changed params and
// the effect on the goal. All numbers come from the server.
import { seconds, short } from '../../base/format.ts';
import { bestOf } from '../../base/goal.ts';
import { chosenParams } from '../../base/params.ts';
import type { Run } from '../../base/types.ts';
import { stack } from '../../charts/stack.ts';
import * as s from '../../state/index.ts';
import { getWhy, whyAddress, type Pair, type Why } from '../../state/insight.ts';
import { useAsked } from '../base/bits.tsx';
import { Bar, PhaseLegend } from '../base/phases.tsx';
import './styles.ts';

const FORMS: readonly [string, string][] = [['CSV', '.csv'], ['Markdown', '.md'], ['SVG', '.svg']];

/** Params of the work: the times of runs that differ in one say nothing about a change. */
const WORK = /^(model|arch|architecture|task|data|data_?set|data_path)$/;
/** The share of other from which it is explained. */
const UNNAMED = 0.05;

function Paces({ phases, whole }: { phases: Record<string, number>; whole: number }) {
	const list = stack(Object.entries(phases).map(([name, value]) => ({ name, value })), whole);
	return <Bar segments={list} label={list.map((p) => `${p.name} ${seconds(p.value)}`).join(', ')} />;
}

/** Phases with the largest differences. */
function mostOf(p: Pair): string {
	const least = 0.05 * Math.abs(p.difference);
	const all = Object.entries(p.phases).filter(([, v]) => Math.abs(v) >= least && v !== 0);
	return all.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]))
		.map(([k, v]) => `${k.replace(/_/g, ' ')} ${v > 0 ? '+' : '−'}${seconds(Math.abs(v))}`).join(', ');
}

/** Changed params, and the seed, which makes runs repeats of each other. */
function Changed({ p, runs }: { p: Pair; runs: readonly Run[] }) {
	const chosen = chosenParams(p.params.map((x) => x.key));
	const seedOf = (id: string) => runs.find((r) => r.id === id)?.params.seed ?? null;
	const seed = { key: 'seed', a: seedOf(p.a), b: seedOf(p.b) };
	const all = seed.a === seed.b ? p.params : [...p.params, seed];
	return (
		<td class="changed">{all.map((x) => <div key={x.key} class={chosen.includes(x.key) ? '' : 'dim'}>
			{x.key} {x.a ?? 'none'} → {x.b ?? 'none'}</div>)}
			{chosen.length > 1 && <div class="warn">{chosen.length} params changed at once</div>}</td>
	);
}

function Goal({ r, p }: { r: Run | undefined; p: Pair | undefined }) {
	const g = s.goal.value;
	const best = g && bestOf(r?.metrics[g.key], g.dir);
	if (!g || best === null) return <td />;
	const worse = p?.metric?.key === g.key && p.metric.worse;
	return <td class={'num' + (worse ? ' warn' : '')} title={g.key}>{short(best)}{worse && ' worse'}</td>;
}

function Factor({ p }: { p: Pair }) {
	const slower = p.factor < 1;
	const text = (f: number) => {
		const ratio = slower ? 1 / f : f;
		return ratio.toFixed(ratio < 10 ? 2 : 0);
	};
	const [low, high] = slower ? [p.high, p.low] : [p.low, p.high];
	const between = low === null || high === null ? '' : ` (${text(low)}–${text(high)})`;
	const ratio = text(p.factor);
	return <td class="num" title={p.sentence}>{ratio === '1.00' ? 'unchanged'
		: `${ratio}× ${slower ? 'slower' : 'faster'}`}{between}</td>;
}

function Steps({ why, runs }: { why: Why; runs: readonly Run[] }) {
	const whole = Math.max(...why.runs.map((r) => r.seconds));
	return (
		<table>
			<thead><tr><th>Run</th><th>Changed</th><th class="num">Per sample</th><th class="num">Speed</th>
				<th class="num">Total</th><th class="bar">By phase</th><th>Difference</th>
				<th class="num">Goal</th></tr></thead>
			<tbody>{why.runs.map((r, i) => {
				const p = why.pairs[i - 1];
				return (
					<tr key={r.id}><th scope="row">{r.name}</th>
						{p ? <Changed p={p} runs={runs} /> : <td />}
						<td class="num">{seconds(r.seconds)}</td>
						{p ? <Factor p={p} /> : <td />}
						<td class="num">{p ? p.product.toFixed(2) + '×' : ''}</td>
						<td class="bar"><Paces phases={r.phases} whole={whole} /></td>
						<td>{p ? mostOf(p) : ''}</td>
						<Goal r={runs.find((o) => o.id === r.id)} p={p} /></tr>
				);
			})}</tbody>
		</table>
	);
}

/** Sorts runs by start; requires two that share the work. */
export function Waterfall({ runs }: { runs: readonly Run[] }) {
	const ids = [...runs].sort((a, b) => (a.start_time ?? 0) - (b.start_time ?? 0)).map((r) => r.id);
	const isOther = (r: Run) => Object.entries(runs[0]!.params).some(([k, v]) => WORK.test(k) && r.params[k] !== v);
	const w = useAsked(() => (runs.some(isOther) ? null : getWhy(ids)), [ids.join(), s.liveRev.value], s.report);
	if (!w) return null;
	return (
		<section class="box bought">
			<h2>Speed by change <span class="dim">in order of start</span></h2>
			<div class="scroll" tabIndex={0} role="region" aria-label="Speed by change">
				<Steps why={w} runs={runs} /></div>
			{w.pairs.some((p) => chosenParams(p.params.map((x) => x.key)).length > 1) && <p class="dim">
				The effects of params that changed at once cannot be separated.</p>}
			<PhaseLegend names={[...new Set(w.runs.flatMap((r) => Object.keys(r.phases).filter((k) =>
				r.phases[k]! > 0)))]} />
			{w.runs.some((r) => r.phases.other! > UNNAMED * r.seconds) && <p class="dim">
				other: the time of a step outside the series phase/NAME, where NAME is one
					of {Object.keys(w.runs[0]!.phases)
					.filter((k) => !/^(?:other|between)$/.test(k)).join(', ')}
						. A phase that is logged at few steps, such as once per epoch, counts at
						these alone. Series of other names, such as time/forward, are not read
						as phases.</p>}
			<ul>{w.pairs.map((p) => <li key={p.b}>{p.sentence}</li>)}</ul>
			<p class="dim">Left out as warm-up: {w.rule}. Download as {FORMS.map(([name, ending]) => <><a
				href={whyAddress(ids, ending)}>
				{name}</a> </>)}</p>
		</section>
	);
}
