// SPDX-License-Identifier: Apache-2.0
// Extremely randomised regression trees over numeric columns. Deterministic for a given seed.

/** Random numbers in [0, 1) by mulberry32. */
export function random(seed: number): () => number {
	let a = seed >>> 0;
	return () => {
		a = (a + 0x6d2b79f5) >>> 0;
		let t = Math.imul(a ^ (a >>> 15), a | 1);
		t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
	};
}

export interface Tree {
	/** Split column of each node, -1 for a leaf. */
	column: Int16Array;
	/** Threshold, or the value of a leaf. */
	at: Float64Array;
	/** Index of the left child; the right one follows it. */
	left: Int32Array;
}

interface TreeOptions {
	columns: readonly Float32Array[];
	y: Float64Array;
	/** Training rows, with repetitions. */
	rows: Int32Array;
	/** Columns tried per node. */
	tries: number;
	leaf: number;
	next: () => number;
}

/** State of a tree under construction. */
class Grower {
	readonly column: Int16Array;
	readonly at: Float64Array;
	readonly left: Int32Array;
	private used = 1;
	private readonly order: Int16Array;
	/** Values of a column and of y for the rows of a node, contiguous for speed. */
	private readonly xs: Float64Array;
	private readonly ys: Float64Array;
	/** The last drawn threshold, and that of the best split. */
	private drawn = 0;
	private split = 0;

	constructor(private readonly o: TreeOptions) {
		const most = 2 * o.rows.length + 1;
		this.column = new Int16Array(most).fill(-1);
		this.at = new Float64Array(most);
		this.left = new Int32Array(most);
		this.order = Int16Array.from(o.columns.keys());
		this.xs = new Float64Array(o.rows.length);
		this.ys = new Float64Array(o.rows.length);
	}

	grow(): Tree {
		const open: [number, number, number][] = [[0, 0, this.o.rows.length]];
		for (let top = open.pop(); top; top = open.pop()) {
			const [node, from, to] = top;
			const column = to - from >= 2 * this.o.leaf ? this.best(from, to) : -1;
			if (column < 0) {
				this.at[node] = this.mean(from, to);
				continue;
			}
			const middle = this.part(column, this.split, from, to);
			this.column[node] = column;
			this.at[node] = this.split;
			this.left[node] = this.used;
			open.push([this.used, from, middle], [this.used + 1, middle, to]);
			this.used += 2;
		}
		return { column: this.column.slice(0, this.used), at: this.at.slice(0, this.used),
			left: this.left.slice(0, this.used) };
	}

	private mean(from: number, to: number): number {
		let sum = 0;
		for (let i = from; i < to; i++) sum += this.o.y[this.o.rows[i]!]!;
		return sum / (to - from);
	}

	/** Finds the best of random thresholds over some columns in random order. Returns its column and sets split; -1
	 * if nothing splits the rows. */
	private best(from: number, to: number): number {
		const { columns, tries, next, rows, y } = this.o;
		const n = to - from;
		let all = 0;
		for (let i = 0; i < n; i++) {
			const v = y[rows[from + i]!]!;
			this.ys[i] = v;
			all += v;
		}
		let [column, most, tried] = [-1, 0, 0];
		for (let i = 0; i < columns.length && tried < tries; i++) {
			const k = i + Math.floor(next() * (columns.length - i));
			const c = this.order[k]!;
			this.order[k] = this.order[i]!;
			this.order[i] = c;
			if (!this.draw(columns[c]!, from, n)) continue;
			tried++;
			const gain = this.gain(n, all);
			if (gain <= most) continue;
			[column, most, this.split] = [c, gain, this.drawn];
		}
		return column;
	}

	/** Draws a threshold between the values of the rows; false if all are equal. */
	private draw(x: Float32Array, from: number, n: number): boolean {
		const { rows } = this.o;
		const { xs } = this;
		let lo = Infinity;
		let hi = -Infinity;
		for (let i = 0; i < n; i++) {
			const v = x[rows[from + i]!]!;
			xs[i] = v;
			if (v < lo) lo = v;
			if (v > hi) hi = v;
		}
		if (!(lo < hi)) return false;
		this.drawn = lo + this.o.next() * (hi - lo);
		return true;
	}

	/** Reduction of the squared error by the split; 0 if a part is too small. */
	private gain(all: number, sumOfAll: number): number {
		const { xs, ys, drawn } = this;
		let n = 0;
		let sum = 0;
		for (let i = 0; i < all; i++) {
			const below = +(xs[i]! <= drawn); // branchless: the branch would be mispredicted half the time
			n += below;
			sum += ys[i]! * below;
		}
		const rest = all - n;
		if (n < this.o.leaf || rest < this.o.leaf) return 0;
		return sum * sum / n + (sumOfAll - sum) ** 2 / rest - sumOfAll * sumOfAll / all;
	}

	/** Partitions the rows by the threshold; returns the first index of the upper part. */
	private part(column: number, at: number, from: number, to: number): number {
		const { rows } = this.o;
		const x = this.o.columns[column]!;
		let middle = from;
		for (let i = from; i < to; i++) {
			if (x[rows[i]!]! > at) continue;
			[rows[i], rows[middle]] = [rows[middle]!, rows[i]!];
			middle++;
		}
		return middle;
	}
}

export function growTree(o: TreeOptions): Tree {
	return new Grower(o).grow();
}

/** Predictions, and their changes by column: changes[column][row]. */
export interface Predictions {
	still: Float64Array;
	changes: Float64Array[];
}

/** A row, with the value of one column taken from another row (-1: none). */
interface Place {
	row: number;
	moved: number;
	from: number;
}

/** The leaf of a row, starting from a node. */
function leafOf({ column, at, left }: Tree, columns: readonly Float32Array[], node: number, p: Place): number {
	for (let c = column[node]!; c >= 0; c = column[node]!) {
		const v = columns[c]![c === p.moved ? p.from : p.row]!;
		node = left[node]! + (v > at[node]! ? 1 : 0);
	}
	return at[node]!;
}

/** Mean prediction of the trees, and its changes (changes[column][row]) when a column's values come from other rows,
 * others[column]. Only columns on a row's path are evaluated again, from there on. */
export function predictions(trees: readonly Tree[], columns: readonly Float32Array[], rows: Int32Array,
	others: readonly Int32Array[]): Predictions {
	const still = new Float64Array(rows.length);
	const changes = columns.map(() => new Float64Array(rows.length));
	const place: Place = { row: 0, moved: -1, from: 0 };
	/** For each column, the last path (tree and row) that used it. */
	const asked = new Int32Array(columns.length).fill(-1);
	const first = new Int32Array(columns.length);
	const seen: number[] = [];
	trees.forEach((tree, t) => rows.forEach((row, i) => {
		const way = t * rows.length + i;
		let node = 0;
		seen.length = 0;
		for (let c = tree.column[0]!; c >= 0; c = tree.column[node]!) {
			if (asked[c] !== way) {
				asked[c] = way;
				first[c] = node;
				seen.push(c);
			}
			node = tree.left[node]! + (columns[c]![row]! > tree.at[node]! ? 1 : 0);
		}
		const said = tree.at[node]!;
		still[i]! += said / trees.length;
		place.row = row;
		for (const c of seen) {
			place.moved = c;
			place.from = others[c]![i]!;
			changes[c]![i]! += (leafOf(tree, columns, first[c]!, place) - said) / trees.length;
		}
	}));
	return { still, changes };
}
