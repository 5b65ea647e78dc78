// SPDX-License-Identifier: Apache-2.0
// User-defined panels: several metrics, or all that match a pattern, over the view's axis or another metric.
import type { Series } from './types.ts';
import { valueAt } from './series.ts';

export interface Panel {
	/** Comma-separated names, /a pattern/, or = and a formula over metrics and params. */
	metrics: string;
	/** Metric of the x axis; '' is the view's axis. */
	x: string;
}

const METRICS_MAX = 12;

/** The pattern of a panel; null for plain names; '' if it is invalid. */
export function patternOf(metrics: string): RegExp | '' | null {
	const m = /^\/(.+)\/$/.exec(metrics);
	if (!m) return null;
	try {
		return new RegExp(m[1]!, 'i');
	} catch {
		return '';
	}
}

/** Prefix of the series keys of formulas. */
export const FORMULA = '=';

/** Converts user input to a panel's text: a formula, else a pattern. */
export function panelWords(text: string): string {
	const words = text.trim();
	return words === '' || words.startsWith(FORMULA) ? words : `/${words}/`;
}

/** The available metrics of the panel, and how many more a pattern matches. */
export function panelMetrics(p: Panel, keys: readonly string[]): { keys: string[]; more: number } {
	if (p.metrics.startsWith(FORMULA)) return { keys: p.metrics.length > 1 ? [p.metrics] : [], more: 0 };
	const pattern = patternOf(p.metrics);
	const found = pattern === null ? p.metrics.split(',').filter((k) => keys.includes(k))
		: pattern === '' ? [] : keys.filter((k) => pattern.test(k));
	return { keys: found.slice(0, METRICS_MAX), more: Math.max(0, found.length - METRICS_MAX) };
}

/** Joins two series by position: points of y over the values of x, sorted by x. Unpaired points are left out. */
export function over(x: Series, y: Pick<Series, 'xs' | 'ys'>): { xs: number[]; ys: number[] } {
	const pairs = y.xs.map((at, i) => [valueAt(x, at) ?? NaN, y.ys[i]!] as const)
		.filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b)).sort((a, b) => a[0] - b[0]);
	return { xs: pairs.map(([a]) => a), ys: pairs.map(([, b]) => b) };
}
