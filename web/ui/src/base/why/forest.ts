// Extremely randomised regression trees over columns of numbers: small, fast, and repeatable by their seed.

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
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
	/** Of each node the column that is asked, -1 at a leaf. */
	column: Int16Array;
	/** Its threshold, or what a leaf says. */
	at: Float64Array;
	/** Its left child; the right one stands behind that. */
	left: Int32Array;
}

interface TreeOptions {
	columns: readonly Float64Array[];
	y: Float64Array;
	/** Rows that the tree is made from, repeats included. */
	rows: Int32Array;
	/** Columns tried at a node. */
	tries: number;
	leaf: number;
	next: () => number;
}

interface Split {
	column: number;
	at: number;
	gain: number;
}

/** A tree while it grows. */
class Grower {
	readonly column: Int16Array;
	readonly at: Float64Array;
	readonly left: Int32Array;
	private used = 1;
	private readonly order: Int16Array;

	constructor(private readonly o: TreeOptions) {
		const most = 2 * o.rows.length + 1;
		this.column = new Int16Array(most).fill(-1);
		this.at = new Float64Array(most);
		this.left = new Int32Array(most);
		this.order = Int16Array.from(o.columns.keys());
	}

	grow(): Tree {
		const open: [number, number, number][] = [[0, 0, this.o.rows.length]];
		for (let top = open.pop(); top; top = open.pop()) {
			const [node, from, to] = top;
			const split = to - from >= 2 * this.o.leaf ? this.best(from, to) : null;
			if (!split) {
				this.at[node] = this.mean(from, to);
				continue;
			}
			const middle = this.part(split, from, to);
			this.column[node] = split.column;
			this.at[node] = split.at;
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

	/** The best of random thresholds over some columns, in a random order; null where nothing parts the rows. */
	private best(from: number, to: number): Split | null {
		const { columns, tries, next } = this.o;
		let best: Split | null = null;
		let tried = 0;
		for (let i = 0; i < columns.length && tried < tries; i++) {
			const k = i + Math.floor(next() * (columns.length - i));
			[this.order[i], this.order[k]] = [this.order[k]!, this.order[i]!];
			const split = this.draw(this.order[i]!, from, to);
			if (!split) continue;
			tried++;
			if (!best || split.gain > best.gain) best = split;
		}
		return best && best.gain > 0 ? best : null;
	}

	private draw(column: number, from: number, to: number): Split | null {
		const x = this.o.columns[column]!;
		let [lo, hi] = [Infinity, -Infinity];
		for (let i = from; i < to; i++) {
			const v = x[this.o.rows[i]!]!;
			if (v < lo) lo = v;
			if (v > hi) hi = v;
		}
		if (!(lo < hi)) return null;
		const at = lo + this.o.next() * (hi - lo);
		return { column, at, gain: this.gain(x, at, from, to) };
	}

	/** How much less the squares around the parts' means are; 0 where a part is too small. */
	private gain(x: Float64Array, at: number, from: number, to: number): number {
		const { rows, y, leaf } = this.o;
		let [n, sum, all] = [0, 0, 0];
		for (let i = from; i < to; i++) {
			const v = y[rows[i]!]!;
			all += v;
			if (x[rows[i]!]! > at) continue;
			n++;
			sum += v;
		}
		const rest = to - from - n;
		if (n < leaf || rest < leaf) return 0;
		return sum * sum / n + (all - sum) ** 2 / rest - all * all / (to - from);
	}

	/** Moves the rows up to the threshold in front; returns where the others begin. */
	private part({ column, at }: Split, from: number, to: number): number {
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

/** What the trees say of a row on average; one column may be read from another row. */
export function predict(trees: readonly Tree[], columns: readonly Float64Array[], row: number, moved = -1,
	from = row): number {
	let sum = 0;
	for (const { column, at, left } of trees) {
		let node = 0;
		for (let c = column[0]!; c >= 0; c = column[node]!) {
			const v = columns[c]![c === moved ? from : row]!;
			node = left[node]! + (v > at[node]! ? 1 : 0);
		}
		sum += at[node]!;
	}
	return sum / trees.length;
}
