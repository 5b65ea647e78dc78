// Experiments as a tree by the slashes in their names, each folder with what lies in it.
import { natural } from './format.ts';
import type { Experiment } from './types.ts';

export interface Branch {
	/** From the root on; what folding goes by. */
	path: string;
	/** Its last part, or the whole name where nothing else shares its folder. */
	name: string;
	depth: number;
	/** null: a folder alone. */
	experiment: Experiment | null;
	/** Experiments in it; 0: it is no folder. */
	below: number;
	/** Of all that lie in it. */
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

/** A folder with one thing in it is no folder: its name goes to what it holds. */
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

/** The branches that are not folded away, in the order of what was written last in each. */
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
