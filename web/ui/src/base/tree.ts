// SPDX-License-Identifier: Apache-2.0
// Tree of experiments by the slashes in their names.
import { natural } from './format.ts';
import type { Experiment } from './types.ts';

export interface Branch {
	/** Full path, which identifies a folded folder. */
	path: string;
	/** The last part, or the full name if it is alone in its folder. */
	name: string;
	depth: number;
	/** null for a plain folder. */
	experiment: Experiment | null;
	/** Experiments in it; 0 for a leaf. */
	below: number;
	/** Total over its experiments. */
	runs: number;
	running: number;
	failed: number;
	last: number | null;
}

interface Node {
	experiment: Experiment | null;
	children: Map<string, Node>;
}

function grow(list: readonly Experiment[]): Node {
	const root: Node = { experiment: null, children: new Map() };
	for (const e of list) {
		let at = root;
		for (const part of e.name.split('/')) {
			const next = at.children.get(part) ?? { experiment: null, children: new Map() };
			at.children.set(part, next);
			at = next;
		}
		at.experiment = e;
	}
	return root;
}

function all(n: Node): Experiment[] {
	return [...n.experiment ? [n.experiment] : [], ...[...n.children.values()].flatMap(all)];
}

/** Merges a folder with a single child into that child. */
function inOne(name: string, node: Node): [string, Node] {
	while (!node.experiment && node.children.size === 1) {
		const [part, child] = [...node.children][0]!;
		[name, node] = [`${name}/${part}`, child];
	}
	return [name, node];
}

function branchOf(path: string, name: string, depth: number, node: Node): Branch {
	const list = all(node);
	const times = list.map((e) => e.last_time ?? 0);
	return {
		path, name, depth, experiment: node.experiment, below: list.length - (node.experiment ? 1 : 0),
		runs: list.reduce((n, e) => n + e.run_count, 0), running: list.reduce((n, e) => n + e.running_count, 0),
		failed: list.reduce((n, e) => n + e.failed_count, 0),
		last: Math.max(...times) || null,
	};
}

/** Visible branches, most recently written first. */
export function treeOf(list: readonly Experiment[], folded: ReadonlySet<string>): Branch[] {
	const walk = (node: Node, prefix: string, depth: number): Branch[] => {
		const own = [...node.children].map(([part, child]) => inOne(part, child)).map(([name, child]) =>
			({ child, branch: branchOf(prefix + name, name, depth, child) }));
		own.sort((a, b) => (b.branch.last ?? 0) - (a.branch.last ?? 0) || natural(a.branch.name,
			b.branch.name));
		return own.flatMap(({ child, branch }) => [branch,
			...folded.has(branch.path) ? [] : walk(child, branch.path + '/', depth + 1)]);
	};
	return walk(grow(list), '', 0);
}
