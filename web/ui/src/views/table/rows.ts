// SPDX-License-Identifier: Apache-2.0
// Order of the rows: by the state, or nested.
import { computed, signal } from '@preact/signals';
import type { Run } from '../../base/types.ts';
import { nest, type Nested } from '../../base/nest.ts';
import * as s from '../../state/index.ts';

/** Pixels of indent per level, limited, because names need the room. */
export const INDENT = 14;
export const DEEPEST = 6;

/** Folded parents. */
const folded = signal<ReadonlySet<string>>(new Set());

export function toggleFold(id: string): void {
	const set = new Set(folded.value);
	if (!set.delete(id)) set.add(id);
	folded.value = set;
}

export function isFolded(id: string): boolean {
	return folded.value.has(id);
}

/** Nesting by run id; null for a flat list. */
export const nesting = computed<ReadonlyMap<string, Nested> | null>(() => {
	if (s.view.value.flat || !s.haveParents.value) return null;
	const above = new Set(pinned.value);
	return new Map(nest(s.rows.value.filter((r) => !above.has(r)), folded.value).map((n) => [n.run.id, n]));
});

/** Open groups by name. */
export const openGroups = signal<ReadonlySet<string>>(new Set());

/** Rows of the table: runs, or groups with the runs of open ones. */
export const rowCount = computed(() => (s.isGrouped.value
	? s.runGroups.value.reduce((n, g) => n + 1 + (openGroups.value.has(g.name) ? g.all.length : 0), 0)
	: visibleRows.value.length));

/** Pinned rows. */
const pinned = computed<readonly Run[]>(() => {
	const base = s.baseline.value;
	return s.rows.value.filter((r) => r.id === base?.id || s.isPinned(r));
});

export const pinCount = computed(() => pinned.value.length);

/** Index of the first excluded run in the table. */
export const fallenAt = computed(() => {
	const from = s.fallenFrom.value;
	const above = new Set(pinned.value);
	return from + pinned.value.length - s.rows.value.slice(0, from).filter((r) => above.has(r)).length;
});

export const visibleRows = computed<Run[]>(() => {
	const above = new Set(pinned.value);
	if (nesting.value) return [...above, ...[...nesting.value.values()].map((n) => n.run)];
	return above.size ? [...above, ...s.rows.value.filter((r) => !above.has(r))] : s.rows.value;
});
