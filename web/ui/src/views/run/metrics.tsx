// SPDX-License-Identifier: Apache-2.0
// All metrics of a run in a table: best and last value with their steps.
import { useSignal } from '@preact/signals';
import { byName, valueText } from '../../base/format.ts';
import { bestOf, bestStep, directionOf } from '../../base/goal.ts';
import type { Metric, Run } from '../../base/types.ts';

const FIRST = 40;
/** From this number of rows the table scrolls. */
const LONG = 12;

function text(key: string, v: number | null): string {
	return v === null ? '–' : valueText(key)(v);
}

function Line({ k, m }: { k: string; m: Metric }) {
	const dir = directionOf(k);
	return (
		<tr>
			<td>{k}</td><td class="num">{text(k, bestOf(m, dir))}</td>
			<td class="num dim">{bestStep(m, dir) ?? ''}</td>
			<td class={'num' + (Number.isNaN(m.last) ? ' bad' : '')}>{text(k, m.last)}</td>
			<td class="num dim">{m.last_step}</td><td class="num dim">{m.count}</td>
		</tr>
	);
}

export function Metrics({ r }: { r: Run }) {
	const keys = Object.keys(r.metrics).sort(byName);
	const all = useSignal(keys.length <= FIRST);
	const words = useSignal('');
	if (!keys.length) return null;
	const found = keys.filter((k) => k.toLowerCase().includes(words.value.toLowerCase()));
	const list = all.value ? found : found.slice(0, FIRST);
	return (
		<section class="box metrics">
			<h2>Metrics {keys.length > FIRST && <input type="search" aria-label="Find a metric"
				placeholder={`find among ${keys.length}`} value={words.value}
				onInput={(e) => (words.value = e.currentTarget.value)} />}</h2>
			<div class="long" tabIndex={keys.length > LONG ? 0 : undefined} role="group"
				aria-label="Metrics"><table>
				<thead><tr><th>metric</th><th>best</th><th>at</th><th>last</th><th>at</th>
					<th>points</th></tr></thead>
				<tbody>{list.map((k) => <Line key={k} k={k} m={r.metrics[k]!} />)}</tbody>
			</table></div>
			{list.length < found.length
				&& <button type="button" onClick={() => (all.value = true)}>all {found.length}</button>}
		</section>
	);
}
