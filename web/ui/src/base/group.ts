// SPDX-License-Identifier: Apache-2.0
// Groups runs with equal values.
import { natural } from './format.ts';
import type { Run } from './types.ts';

/** A field to group by: a param, or "t:" and a tag. */
export const TAG_FIELD = 't:';

export interface RunGroup {
	/** The shared values in words, which identify the group. */
	name: string;
	/** By field; null if its runs lack the field. */
	values: Record<string, string | null>;
	runs: Run[];
}

/** The field without the prefix for tags, for display. */
export function fieldText(field: string): string {
	return (field.startsWith(TAG_FIELD) ? field.slice(TAG_FIELD.length) : field).replace(/_/g, ' ');
}

/** The field in the server's syntax. */
export function fieldAddress(field: string): string {
	return field.startsWith(TAG_FIELD) ? 'tags.' + field.slice(TAG_FIELD.length) : 'params.' + field;
}

/** Up to this many fields are named next to their values; with more, only values are shown. */
const NAMED = 2;

export function groupName(values: Readonly<Record<string, string | null>>): string {
	const list = Object.entries(values);
	if (list.length > NAMED) return list.map(([, v]) => v ?? '–').join(' · ');
	return list.map(([k, v]) => `${fieldText(k)} ${v ?? '–'}`).join(', ');
}

/** Returns true if the run failed or was killed before its end: no mean counts it. */
export function endedEarly(r: Pick<Run, 'status'>): boolean {
	return r.status === 'failed' || r.status === 'killed';
}

/** What ± after a mean is. */
export const PLUS_MINUS = '± is the sample standard deviation of the runs that the mean counts. '
	+ 'Runs that failed or were killed are left out.';

/** "; 1 failed left out; 1 diverged", of which the mean counts the last; '' if there is neither. */
export function leftOut(n: number, diverged = 0): string {
	return (n ? `; ${n} failed left out` : '') + (diverged ? `; ${diverged} diverged` : '');
}

/** Which runs a mean counts: "mean of 3; 1 failed left out"; '' if all of them, and none diverged. */
export function meanOf(n: number, left: number, diverged = 0): string {
	return left || diverged ? `mean of ${n}` + leftOut(left, diverged) : '';
}

/** Groups sorted by name; runs keep the order of the list. */
export function groupRuns(list: readonly Run[], by: readonly string[],
	tagsOf: (r: Run) => Record<string, string>): RunGroup[] {
	const known = new Map<string, RunGroup>();
	for (const r of list) {
		const values = Object.fromEntries(by.map((k) => [k,
			(k.startsWith(TAG_FIELD) ? tagsOf(r)[k.slice(TAG_FIELD.length)] : r.params[k]) ?? null]));
		const sign = JSON.stringify(Object.values(values));
		const own = known.get(sign) ?? { name: groupName(values), values, runs: [] };
		own.runs.push(r);
		known.set(sign, own);
	}
	return [...known.values()].sort((a, b) => natural(a.name, b.name));
}
