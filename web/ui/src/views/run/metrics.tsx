// SPDX-License-Identifier: Apache-2.0
// Metrics of a run in a table: best and last value with their steps. The goal is first; inner series are folded.
import { useSignal } from '@preact/signals';
import { byName, valueText } from '../../base/format.ts';
import { bestOf, bestStep } from '../../base/goal.ts';
import type { Metric, Run } from '../../base/types.ts';
import { matchesWords } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { Breaking, GroupHead } from '../base/bits.tsx';
import { isInner } from './tabs.ts';

const FIRST = 40;
/** With more metrics, a search field is shown. */
const SEARCHED_FROM = 8;

const text = (key: string, v: number | null): string => v === null ? '–' : valueText(key)(v);

const exact = (v: number | null) => (v === null ? undefined : String(v));

function Line({ k, m }: { k: string; m: Metric }) {
	const dir = s.dirOf(k);
	return (
		<tr>
			<td><Breaking text={k} /></td><td class="num"
				title={dir ? exact(bestOf(m, dir)) : undefined}>{dir && text(k, bestOf(m, dir))}</td>
			<td class="num dim">{dir && bestStep(m, dir)}</td>
			<td class={'num' + (Number.isNaN(m.last) ? ' bad' : '')}
				title={exact(m.last)}>{text(k, m.last)}</td>
			<td class="num dim">{m.last_step}</td><td class="num dim">{m.count}</td>
		</tr>
	);
}

/** The goal and the training curve first, then alphabetically. */
function ordered(keys: readonly string[]): string[] {
	const front = [s.goal.value?.key, s.curve.value].filter((k): k is string => !!k && keys.includes(k));
	return [...new Set([...front, ...[...keys].sort(byName)])];
}

function Rows({ name, r, keys }: { name: string; r: Run; keys: readonly string[] }) {
	const all = useSignal(keys.length <= FIRST);
	const list = all.value ? keys : keys.slice(0, FIRST);
	return (
		<>
			<div class="long" tabIndex={0} role="group" aria-label={name}><table>
				<thead><tr><th>Metric</th><th>Best</th><th>Step</th>
					<th>Last</th><th>Step</th><th>Points</th></tr></thead>
				<tbody>{list.map((k) => <Line key={k} k={k} m={r.metrics[k]!} />)}</tbody>
			</table></div>
			{list.length < keys.length
				&& <button type="button" onClick={() => (all.value = true)}>Show all {keys.length}
					</button>}
		</>
	);
}

/** Series of layers and of the system, folded by their prefix. */
function Inner({ name, r, keys }: { name: string; r: Run; keys: readonly string[] }) {
	const open = useSignal(false);
	return (
		<>
			<GroupHead open={open.value} toggle={() => (open.value = !open.value)} name={name}
				count={keys.length} />
			{open.value && <Rows name={name} r={r} keys={keys} />}
		</>
	);
}

export function Metrics({ r }: { r: Run }) {
	const words = useSignal('');
	const keys = Object.keys(r.metrics);
	if (!keys.length) return null;
	const found = keys.filter((k) => matchesWords(words.value, [k]));
	const main = ordered(words.value ? found : found.filter((k) => !isInner(k)));
	const prefixes = words.value ? [] : [...new Set(found.filter(isInner).map((k) => k.slice(0, k.indexOf('/'))))];
	return (
		<section class="box metrics">
			<h2>Metrics {keys.length > SEARCHED_FROM && <input type="search" aria-label="Find a metric"
				placeholder={`Find among ${keys.length}`} value={words.value}
				onInput={(e) => (words.value = e.currentTarget.value)} />}</h2>
			{main.length > 0 && <Rows name="Metrics" r={r} keys={main} key={words.value} />}
			{prefixes.sort(byName).map((p) => <Inner key={p} name={p} r={r}
				keys={found.filter((k) => k.startsWith(p + '/')).sort(byName)} />)}
			{!found.length && <p class="dim">No metric contains “{words.value}”.</p>}
		</section>
	);
}
