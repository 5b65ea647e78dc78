// Charts that the reader puts together: several metrics, or all whose names match a pattern, over the view's axis or
// over another metric.
import type { Series } from './types.ts';
import { valueAt } from './series.ts';

export interface Panel {
	/** Names with commas between them, /a pattern/, or = and a formula over metrics and params. */
	metrics: string;
	/** The metric that x stands for; '' is the view's axis. */
	x: string;
}

const METRICS_MAX = 12;

/** The pattern that the words of a panel are; null where they are names; '' where the pattern cannot be read. */
export function patternOf(metrics: string): RegExp | '' | null {
	const m = /^\/(.+)\/$/.exec(metrics);
	if (!m) return null;
	try {
		return new RegExp(m[1]!, 'i');
	} catch {
		return '';
	}
}

/** What the key of a series begins with that a formula makes of others. */
export const FORMULA = '=';

/** What the reader wrote as a panel says it: a formula, else a pattern. */
export function panelWords(text: string): string {
	const words = text.trim();
	return words === '' || words.startsWith(FORMULA) ? words : `/${words}/`;
}

/** The metrics of a panel among those that there are, and how many more a pattern matches. */
export function panelMetrics(p: Panel, keys: readonly string[]): { keys: string[]; more: number } {
	if (p.metrics.startsWith(FORMULA)) return { keys: p.metrics.length > 1 ? [p.metrics] : [], more: 0 };
	const pattern = patternOf(p.metrics);
	const found = pattern === null ? p.metrics.split(',').filter((k) => keys.includes(k))
		: pattern === '' ? [] : keys.filter((k) => pattern.test(k));
	return { keys: found.slice(0, METRICS_MAX), more: Math.max(0, found.length - METRICS_MAX) };
}

/** The points of y over what x says at the same place, in the order of x; places where either says nothing are left
 * out. */
export function over(x: Series, y: Pick<Series, 'xs' | 'ys'>): { xs: number[]; ys: number[] } {
	const pairs = y.xs.map((at, i) => [valueAt(x, at) ?? NaN, y.ys[i]!] as const)
		.filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b)).sort((a, b) => a[0] - b[0]);
	return { xs: pairs.map(([a]) => a), ys: pairs.map(([, b]) => b) };
}
