// SPDX-License-Identifier: Apache-2.0
// Curves of one metric by rank: which ranks are drawn, and a summary of all.
import { count } from './format.ts';
import type { Series } from './types.ts';

/** Maximum of lines in a chart; beyond it, the ranks with the highest and some with the lowest means are drawn. */
export const HIGH = 12;
export const LOW = 4;
/** Maximum of ranks named in a sentence. */
const NAMED_MAX = 6;

/** Mean of all finite points; -Infinity without any. */
function meanOf(t: Series): number {
	const n = t.weight.reduce((a, w) => a + w, 0);
	return n ? t.mean.reduce((a, m, i) => a + m * t.weight[i]!, 0) / n : -Infinity;
}

/** Drawn ranks in ascending order. */
export function drawnRanks(list: readonly Series[]): Series[] {
	if (list.length <= HIGH + LOW) return [...list];
	const sorted = [...list].sort((a, b) => meanOf(b) - meanOf(a));
	return [...sorted.slice(0, HIGH), ...sorted.slice(-LOW)].sort((a, b) => a.rank - b.rank);
}

/** Names the outlier ranks. */
export function ranksSaid(list: readonly Series[], format: (v: number) => string): string {
	const means = list.map((t) => ({ rank: t.rank, mean: meanOf(t) })).filter((m) => m.mean > -Infinity);
	means.sort((a, b) => b.mean - a.mean || a.rank - b.rank);
	const [high, low] = [means[0], means.at(-1)];
	const bad = list.filter((t) => t.badX !== null).map((t) => `rank ${t.rank} from ${t.badX}`);
	const said = [`${count(list.length, 'rank')}.`];
	if (high && low && high.mean > low.mean)
		said.push(`Highest mean: rank ${high.rank}, ${format(high.mean)};`,
			`lowest: rank ${low.rank}, ${format(low.mean)}.`);
	else if (high) said.push(`${means.length > 1 ? 'Every mean' : 'Mean'}: ${format(high.mean)}.`);
	const more = bad.length > NAMED_MAX ? ` and ${bad.length - NAMED_MAX} more` : '';
	if (bad.length) said.push(`Not finite: ${bad.slice(0, NAMED_MAX).join(', ')}${more}.`);
	return said.join(' ');
}

/** Values of the lines at the cursor, highest first, non-finite last. With many lines, the highest and the lowest. */
export function ranksAt(values: readonly (readonly [string, number | null])[], format: (v: number) => string): string {
	const weight = (v: number) => (Number.isNaN(v) ? -Number.MAX_VALUE : v);
	const words = values.filter((v): v is readonly [string, number] => v[1] !== null)
		.sort((a, b) => weight(b[1]) - weight(a[1]) || 0)
		.map(([name, v]) => `${name} ${format(v)}`);
	if (words.length > NAMED_MAX) words.splice(NAMED_MAX - 2, words.length - NAMED_MAX + 1, '…');
	return words.join(', ');
}
