// Runs that belong to another run, as MLflow's clients say it: with a tag that names the parent.
import type { Run } from './types.ts';

export const PARENT_TAG = 'mlflow.parentRunId';

export function parentOf(r: Run): string | null {
	return r.tags[PARENT_TAG] || null;
}

export interface Nested {
	run: Run;
	/** Parents above it in the list. */
	depth: number;
	/** Runs below it in the list, at any depth. */
	below: number;
}

/** The parent under which each run of the list is drawn, null at the top; parents come before their children. */
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

/**
 * The list with every run below its parent. The order stays that of the list: a tree stands where its first run stood,
 * and so do the branches within it. A parent that is not in the list counts for nothing, and a circle of parents is
 * cut. Runs below one whose id is in closed are left out.
 */
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
