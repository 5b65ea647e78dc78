// SPDX-License-Identifier: Apache-2.0
// A smooth sparse model for few runs, where trees are weak: params with wave-like effects or interactions. A sparse
// polynomial chaos expansion (Blatman and Sudret, 2011, J. Comput. Phys. 230, 2345): Legendre polynomials of single
// columns and products of two, selected by orthogonal matching pursuit (Pati et al., 1993). The number of terms
// minimises the leave-one-out error, which for least squares follows from the hat matrix (Allen's PRESS, 1974).
import type { Predictions } from './forest.ts';

/** A polynomial of one column or two (b is -1 for one), by degrees. */
interface Term {
	a: number;
	i: number;
	b: number;
	k: number;
	/** Its values on the training rows, centred and normalised. */
	values: Float64Array;
	mean: number;
	length: number;
}

export interface Smooth {
	basis: Basis;
	mean: number;
	terms: Term[];
	weights: number[];
}

/** basis[column][degree - 1][row]. */
type Basis = Float64Array[][];

const DEGREE_MAX = 8;
/** Total degree of a product. */
const PRODUCT_MAX = 7;
/** Maximum number of terms as a share of the rows. */
const TERMS_SHARE = 0.25;
/** Terms without improvement before the search stops. */
const PATIENCE = 4;
/** Maximum number of columns that are paired with all others. */
const MET_MAX = 5;
/** Residual norm of a term below which it is redundant. */
const NEW_MIN = 1e-3;

/** Legendre polynomials (Bonnet's recursion) of a column over its range; at most as many as it has distinct values. */
function legendre(x: Float32Array): Float64Array[] {
	let [lo, hi] = [Infinity, -Infinity];
	for (const v of x) [lo, hi] = [Math.min(lo, v), Math.max(hi, v)];
	const u = Float64Array.from(x, (v) => (hi > lo ? (2 * (v - lo)) / (hi - lo) - 1 : 0));
	const out = [u.map(() => 1), u];
	const most = Math.min(DEGREE_MAX, new Set(x).size - 1);
	for (let k = 1; k < most; k++) {
		const [last, before] = [out[k]!, out[k - 1]!];
		out.push(u.map((v, i) => ((2 * k + 1) * v * last[i]! - k * before[i]!) / (k + 1)));
	}
	return out.slice(1, most + 1);
}

function dot(a: Float64Array, b: Float64Array, n: number): number {
	let sum = 0;
	for (let i = 0; i < n; i++) sum += a[i]! * b[i]!;
	return sum;
}

function product(a: Float64Array, b: Float64Array): Float64Array {
	const out = a.slice();
	for (let i = 0; i < out.length; i++) out[i]! *= b[i]!;
	return out;
}

/** Removes the projection of a on b, a unit vector; returns the coefficient. */
function without(a: Float64Array, b: Float64Array, n: number): number {
	const f = dot(a, b, n);
	for (let i = 0; i < n; i++) a[i]! -= f * b[i]!;
	return f;
}

/** State of the selection. */
class Pursuit {
	readonly taken: Term[] = [];
	private readonly free = new Set<Term>();
	private readonly met = new Set<number>();
	/** Orthogonalised terms, and their coefficients for the terms and y: R and Q'y of the QR decomposition. */
	private readonly q: Float64Array[] = [];
	private readonly r: number[][] = [];
	private readonly said: number[] = [];
	private readonly hat: Float64Array;

	constructor(private readonly basis: Basis, private readonly rest: Float64Array, private readonly n: number) {
		this.hat = new Float64Array(n).fill(1 / n);
		basis.forEach((of, a) => of.forEach((x, i) => this.offer(a, i, -1, -1, x)));
	}

	/** Leave-one-out mean squared error. */
	error(): number {
		let sum = 0;
		for (let i = 0; i < this.n; i++) sum += (this.rest[i]! / Math.max(1e-9, 1 - this.hat[i]!)) ** 2;
		return sum / this.n;
	}

	/** Adds the term that explains most of the residual; false without any. */
	take(): boolean {
		for (let best = this.best(); best; best = this.best()) {
			this.free.delete(best);
			const q = best.values.slice();
			const r = this.q.map((of) => without(q, of, this.n));
			const length = Math.sqrt(dot(q, q, this.n));
			if (length < NEW_MIN) continue;
			this.add(best, q.map((v) => v / length), [...r, length]);
			return true;
		}
		return false;
	}

	/** Weights of the first terms, by back substitution. */
	weights(count: number): number[] {
		const out = new Array<number>(count).fill(0);
		for (let i = count - 1; i >= 0; i--) {
			let v = this.said[i]!;
			for (let k = i + 1; k < count; k++) v -= this.r[k]![i]! * out[k]!;
			out[i] = v / this.r[i]![i]!;
		}
		return out;
	}

	private best(): Term | null {
		let [found, most]: [Term | null, number] = [null, 0];
		for (const t of this.free) {
			const v = Math.abs(dot(t.values, this.rest, this.n));
			if (v > most) [found, most] = [t, v];
		}
		return found;
	}

	private add(t: Term, q: Float64Array, r: number[]): void {
		this.taken.push(t);
		this.q.push(q);
		this.r.push(r);
		this.said.push(without(this.rest, q, this.n));
		q.forEach((v, i) => {
			this.hat[i]! += v * v;
		});
		for (const c of t.b < 0 ? [t.a] : [t.a, t.b]) this.meet(c);
	}

	/** Pairs a selected column with each other one. */
	private meet(a: number): void {
		if (this.met.has(a) || this.met.size >= MET_MAX) return;
		this.basis.forEach((of, b) => b !== a && !this.met.has(b) && of.forEach((y, k) => {
			this.basis[a]!.forEach((x, i) => {
				if (i + k + 2 <= PRODUCT_MAX) this.offer(a, i, b, k, product(x, y));
			});
		}));
		this.met.add(a);
	}

	/** A term by its values, centred and normalised. */
	private offer(a: number, i: number, b: number, k: number, x: Float64Array): void {
		const { n } = this;
		const values = x.slice();
		let mean = 0;
		for (let row = 0; row < n; row++) mean += x[row]! / n;
		for (let row = 0; row < n; row++) values[row]! -= mean;
		const length = Math.sqrt(dot(values, values, n));
		if (!(length > 0)) return;
		for (let row = 0; row < n; row++) values[row]! /= length;
		this.free.add({ a, i, b, k, values, mean, length });
	}
}

/** Fits y on the first n rows. */
export function growSmooth(columns: readonly Float32Array[], y: Float64Array, n: number): Smooth {
	const basis = columns.map(legendre);
	const mean = y.slice(0, n).reduce((sum, v) => sum + v, 0) / n;
	const seen = basis.map((of) => of.map((x) => x.slice(0, n)));
	const pursuit = new Pursuit(seen, y.slice(0, n).map((v) => v - mean), n);
	let [count, least] = [0, pursuit.error()];
	const most = Math.floor(n * TERMS_SHARE);
	while (pursuit.taken.length < Math.min(most, count + PATIENCE) && pursuit.take()) {
		const error = pursuit.error();
		if (error < least) [count, least] = [pursuit.taken.length, error];
	}
	const terms = pursuit.taken.slice(0, count);
	return { basis, mean, terms, weights: pursuit.weights(count).map((w, i) => w / terms[i]!.length) };
}

/**
 * Predictions, and their changes (changes[column][row]) when a column's values come from other rows, others[column].
 */
export function smoothPredictions({ basis, mean, terms, weights }: Smooth, rows: Int32Array,
	others: readonly Int32Array[]): Predictions {
	const still = new Float64Array(rows.length).fill(mean);
	const changes = basis.map(() => new Float64Array(rows.length));
	terms.forEach((t, at) => rows.forEach((row, i) => {
		const [x, y] = [basis[t.a]![t.i]!, t.b < 0 ? null : basis[t.b]![t.k]!];
		const value = x[row]! * (y ? y[row]! : 1);
		const w = weights[at]!;
		still[i]! += w * (value - t.mean);
		changes[t.a]![i]! += w * (x[others[t.a]![i]!]! * (y ? y[row]! : 1) - value);
		if (y) changes[t.b]![i]! += w * (x[row]! * y[others[t.b]![i]!]! - value);
	}));
	return { still, changes };
}
