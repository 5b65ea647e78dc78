// SPDX-License-Identifier: Apache-2.0
// Metrics with one value a run as bars from 0, in the order of the table. Loaded on demand.
import type { ChartLine } from '../../charts/line/index.ts';
import * as s from '../../state/index.ts';
import '../base/later.ts';

interface Options {
	/** Of one point each. */
	lines: readonly ChartLine[];
	text: (v: number) => string;
}

export function Bars({ lines, text }: Options) {
	const values = lines.map((l) => l.ys[0]!);
	const [lo, hi] = [Math.min(0, ...values), Math.max(0, ...values)];
	const share = (v: number) => `${(100 * v) / (hi - lo || 1)}%`;
	return (
		<ol class="runbars">{lines.map((l, i) => (
			<li key={l.id} class={s.lit.value === l.id ? 'lit' : ''}
				onMouseEnter={() => (s.lit.value = l.id)}
				onMouseLeave={() => (s.lit.value = null)} onClick={() => s.openRun(l.id)}>
				<span title={l.name}>{l.name}</span>
				<span><i style={{ background: l.colour, width: share(Math.abs(values[i]!)),
					marginLeft: share(Math.min(0, values[i]!) - lo) }} /></span>
				<b>{text(values[i]!)}</b>
			</li>
		))}</ol>
	);
}
