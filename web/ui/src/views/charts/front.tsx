// SPDX-License-Identifier: Apache-2.0
// The charts of the training curve and the goal alone.
import { defaultCurve } from '../../base/goal.ts';
import { frontKeys } from '../../base/order.ts';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { ChartGrid } from './grid.tsx';

/** Of runs that have them; of other runs, of the curve that is theirs. */
export function FrontCharts({ runs }: { runs: readonly Run[] }) {
	const all = new Set(runs.flatMap((r) => Object.keys(r.metrics)));
	const front = frontKeys(s.curve.value, s.goal.value?.key).filter((k): k is string => !!k && all.has(k));
	const own = defaultCurve([...all], null);
	const keys = front.length || own === null ? front : [own];
	return <section class="chartpart" aria-label="Charts"><ChartGrid keys={keys} only /></section>;
}
