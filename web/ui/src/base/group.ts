// SPDX-License-Identifier: Apache-2.0
// Groups runs with equal values.
import { natural, paramTexts } from './format.ts';
import { fellOut } from './goal.ts';
import type { Run } from './types.ts';

/** A field to group by: a param, "t:" and a tag, or the experiment. */
export const TAG_FIELD = 't:';
export const EXPERIMENT = 'e:experiment';

export interface RunGroup {
	/** The shared values in words, which identify the group. */
	name: string;
	/** By field; null if its runs lack the field. */
	values: Record<string, string | null>;
	runs: Run[];
}

/** The field without the prefix for tags, for display. */
export function fieldText(field: string): string {
	return (field.startsWith(TAG_FIELD) || field === EXPERIMENT ? field.slice(TAG_FIELD.length) : field)
		.replace(/_/g, ' ');
}

/** The field in the server's syntax. */
export function fieldAddress(field: string): string {
	if (field === EXPERIMENT) return 'experiment';
	return field.startsWith(TAG_FIELD) ? 'tags.' + field.slice(TAG_FIELD.length) : 'params.' + field;
}

/** Up to this many fields are named next to their values; with more, only values are shown. */
const NAMED = 2;

/** text: how the value of a field is written. */
export function groupName(values: Readonly<Record<string, string | null>>, text = (v: string, _: string) => v): string {
	const list = Object.entries(values).map(([k, v]): [string, string] => [k, v === null ? '–' : text(v, k)]);
	if (list.length > NAMED) return list.map(([, v]) => v).join(' · ');
	return list.map(([k, v]) => `${fieldText(k)} ${v}`).join(', ');
}

/** The names of groups with their numbers as columns write them. */
export function groupTitles(list: readonly Pick<RunGroup, 'values'>[]): string[] {
	const fields = Object.keys(list[0]?.values ?? {});
	const by = new Map(fields.map((k) => [k, paramTexts(list.map((g) => g.values[k] ?? ''))]));
	return list.map((g) => groupName(g.values, (v, k) => by.get(k)!(v)));
}

/** Returns true if the run failed or was killed before its end. */
export function endedEarly(r: Pick<Run, 'status'>): boolean {
	return r.status === 'failed' || r.status === 'killed';
}

/** Returns true for a run that means leave out, unless the view counts all: it failed, was killed or diverged. */
export function isFallen(r: Pick<Run, 'status' | 'alerts'>): boolean {
	return endedEarly(r) || fellOut(r);
}

/** What ± after a mean is. */
export const PLUS_MINUS = '± is the sample standard deviation of the runs that the mean counts.';

/** The fallen runs of a list in words: "; 1 failed, 1 diverged left out", or "; with …" if means count them. */
export function fallenText(runs: readonly Pick<Run, 'status' | 'alerts'>[], counted = false): string {
	const [early, all] = [runs.filter(endedEarly).length, runs.filter(isFallen).length];
	const text = [early && `${early} failed`, all - early && `${all - early} diverged`].filter(Boolean).join(', ');
	return !text ? '' : counted ? `; with ${text}` : `; ${text} left out`;
}

/** Groups sorted by name; runs keep the order of the list. */
export function groupRuns(list: readonly Run[], by: readonly string[],
	tagsOf: (r: Run) => Record<string, string>): RunGroup[] {
	const known = new Map<string, RunGroup>();
	for (const r of list) {
		const values = Object.fromEntries(by.map((k) => [k, (k === EXPERIMENT ? r.experiment
			: k.startsWith(TAG_FIELD) ? tagsOf(r)[k.slice(TAG_FIELD.length)] : r.params[k]) ?? null]));
		const sign = JSON.stringify(Object.values(values));
		const own = known.get(sign) ?? { name: groupName(values), values, runs: [] };
		own.runs.push(r);
		known.set(sign, own);
	}
	return [...known.values()].sort((a, b) => natural(a.name, b.name));
}
