// SPDX-License-Identifier: Apache-2.0
// Nested runs: a tag (as MLflow's clients set it) names the parent.
import type { Run } from './types.ts';

export const PARENT_TAG = 'mlflow.parentRunId';

export function parentOf(r: Run): string | null {
	return r.tags[PARENT_TAG] || null;
}

export interface Nested {
	run: Run;
	/** Number of ancestors in the list. */
	depth: number;
	/** Number of descendants in the list. */
	below: number;
}

/** The parent of each listed run, null at the top; parents come before their children. */
function parentsIn(list: readonly Run[]): Map<Run, Run | null> {
	const byId = new Map(list.map((r) => [r.id, r]));
	const under = new Map<Run, Run | null>();
	for (const r of list) {
		const path = new Set<Run>();
		let at: Run | undefined = r;
		while (at && !under.has(at) && !path.has(at)) {
			path.add(at);
			at = byId.get(parentOf(at) ?? '');
		}
		let parent = at && under.has(at) ? at : null;
		for (const one of [...path].reverse()) {
			under.set(one, parent);
			parent = one;
		}
	}
	return under;
}

/** Sorts every run below its parent. The order of the list is kept: a tree appears where its first run was, and so do
 * its branches. Parents outside the list are ignored and cycles are cut. Descendants of ids in closed are left out. */
export function nest(list: readonly Run[], closed: ReadonlySet<string>): Nested[] {
	const under = parentsIn(list);
	const children = new Map<Run | null, Run[]>();
	const below = new Map<Run, number>();
	for (const [r, parent] of under) {
		const brothers = children.get(parent);
		if (brothers) brothers.push(r);
		else children.set(parent, [r]);
	}
	for (const [r, parent] of [...under].reverse())
		if (parent) below.set(parent, (below.get(parent) ?? 0) + 1 + (below.get(r) ?? 0));
	const out: Nested[] = [];
	const stack: [Run, number][] = (children.get(null) ?? []).map((r): [Run, number] => [r, 0]).reverse();
	for (let top = stack.pop(); top; top = stack.pop()) {
		const [run, depth] = top;
		out.push({ run, depth, below: below.get(run) ?? 0 });
		if (!closed.has(run.id))
			for (const c of (children.get(run) ?? []).reverse()) stack.push([c, depth + 1]);
	}
	return out;
}
