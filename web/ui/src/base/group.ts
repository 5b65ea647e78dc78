// Runs of the same values as one group.
import { natural } from './format.ts';
import type { Run } from './types.ts';

/** A field that groups are made by: a param's name, or "t:" and that of a tag. */
export const TAG_FIELD = 't:';

export interface RunGroup {
	/** The values that its runs share, in words; what the group is known by. */
	name: string;
	/** By field; null where its runs have none. */
	values: Record<string, string | null>;
	runs: Run[];
}

/** The field without what says that it is a tag, for people. */
export function fieldText(field: string): string {
	return (field.startsWith(TAG_FIELD) ? field.slice(TAG_FIELD.length) : field).replace(/_/g, ' ');
}

/** The field as the server's addresses say it. */
export function fieldAddress(field: string): string {
	return field.startsWith(TAG_FIELD) ? 'tags.' + field.slice(TAG_FIELD.length) : 'params.' + field;
}

/** Up to so many fields are named beside their values; of more the values alone tell groups apart. */
const NAMED = 2;

export function groupName(values: Readonly<Record<string, string | null>>): string {
	const list = Object.entries(values);
	if (list.length > NAMED) return list.map(([, v]) => v ?? '–').join(' · ');
	return list.map(([k, v]) => `${fieldText(k)} ${v ?? '–'}`).join(', ');
}

/** Groups in the order of their names; their runs as the list has them. */
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
