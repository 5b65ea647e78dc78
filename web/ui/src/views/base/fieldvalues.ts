// SPDX-License-Identifier: Apache-2.0
// The values that a param, tag or attribute has in the runs that the page has held.
import { natural } from '../../base/format.ts';
import * as s from '../../state/index.ts';

/** Numbers of runs by the value of a field, most frequent first for texts, in order for numbers. */
export function valuesOf(id: string): [string, number][] {
	const key = id.slice(2);
	const by = new Map<string, number>();
	for (const r of s.knownRuns.value) {
		const v = id.startsWith('p:') ? r.params[key] : id.startsWith('t:') ? s.tagsOf(r)[key]
			: key === 'status' ? r.status : key === 'name' ? r.name : undefined;
		if (v !== undefined && v !== '') by.set(v, (by.get(v) ?? 0) + 1);
	}
	const numeric = [...by.keys()].every((v) => !Number.isNaN(Number(v)));
	return [...by].sort((a, b) => (numeric ? Number(a[0]) - Number(b[0]) : b[1] - a[1] || natural(a[0], b[0])));
}
