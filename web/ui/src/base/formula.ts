// SPDX-License-Identifier: Apache-2.0
// Arithmetic over params and metrics of a run: `params.lr * params.batch_size`, `val/loss.min - train/loss.min`, `"a
// name" / 3`. The grammar equals that of the server's formulas over points (web/api/native/formula), but a metric is
// one number: its last value, or the one selected by .first, .min or .max.

/** A param or a number of a metric. */
interface FormulaName {
	key: string;
	/** Which value of a metric; null for a param. */
	what: 'first' | 'last' | 'min' | 'max' | null;
}

type Value = (of: (n: FormulaName) => number) => number;

interface Formula {
	names: readonly FormulaName[];
	/** IEEE arithmetic without errors; a missing number is NaN. */
	value: Value;
}

const ONE: Record<string, (a: number) => number> = { abs: Math.abs, exp: Math.exp, log: Math.log, log2: Math.log2,
	log10: Math.log10, sqrt: Math.sqrt };
/** As fmin in C and NumPy: NaN is ignored if the other value is a number. */
const TWO: Record<string, (a: number, b: number) => number> = {
	min: (a, b) => (a < b || Number.isNaN(b) ? a : b),
	max: (a, b) => (a > b || Number.isNaN(b) ? a : b),
};
const PARAM = 'params.';
const NAME = /(?:[A-Za-z_]|[^\0-\x7f])(?:[\w./:@-]|[^\0-\x7f])*/y;
const NUMBER = /(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/y;
const WHAT = /\.(first|last|min|max)$/;
const NESTED_MAX = 64;

/** Recursive-descent parser; throws a SyntaxError with the problem and its position. */
class Parser {
	at = 0;
	nested = 0;
	names: FormulaName[] = [];

	constructor(readonly text: string) {}

	fail(what: string): never {
		throw new SyntaxError(`${what} at character ${this.at + 1}`);
	}

	/** Skips blanks and returns the next character. */
	next(): string {
		while (/\s/.test(this.text[this.at] ?? '')) this.at++;
		return this.text[this.at] ?? '';
	}

	take(pattern: RegExp): string | null {
		pattern.lastIndex = this.at;
		const found = pattern.exec(this.text)?.[0] ?? null;
		if (found !== null) this.at += found.length;
		return found;
	}

	expect(c: string, what: string): void {
		if (this.next() !== c) this.fail(what);
		this.at++;
	}

	named(name: FormulaName): Value {
		this.names.push(name);
		return (of) => of(name);
	}

	quoted(param: boolean): Value {
		const end = this.text.indexOf('"', this.at + 1);
		if (end <= this.at + 1) this.fail(end < 0 ? 'A quote is not closed' : 'A name is empty');
		const key = this.text.slice(this.at + 1, end);
		this.at = end + 1;
		const what = param ? null : this.take(/\.(?:first|last|min|max)\b/y)?.slice(1) ?? 'last';
		return this.named({ key, what: what as FormulaName['what'] });
	}

	call(name: string): Value {
		this.at++;
		const a = this.sum();
		const one = ONE[name];
		if (one) {
			this.expect(')', 'Expected )');
			return (of) => one(a(of));
		}
		this.expect(',', 'Expected a comma: this function takes two values');
		const b = this.sum();
		this.expect(')', 'Expected )');
		return (of) => TWO[name]!(a(of), b(of));
	}

	nameOrCall(): Value {
		const name = this.take(NAME) ?? this.fail(this.text[this.at] === undefined
			? 'The formula is incomplete: expected a name or a number'
			: 'Expected a name or a number');
		if (this.next() === '(') {
			const known = { ...ONE, ...TWO };
			if (!(name in known))
				this.fail(`Unknown function: expected one of ${Object.keys(known).join(', ')}`);
			return this.call(name);
		}
		if (name === PARAM && this.text[this.at] === '"') return this.quoted(true);
		if (name.startsWith(PARAM) && name !== PARAM)
			return this.named({ key: name.slice(PARAM.length), what: null });
		const what = WHAT.exec(name)?.[1] ?? 'last';
		return this.named({ key: name.replace(WHAT, ''), what: what as FormulaName['what'] });
	}

	operand(): Value {
		const c = this.next();
		if (c === '(') {
			this.at++;
			const inner = this.sum();
			this.expect(')', 'Expected )');
			return inner;
		}
		if (c === '"') return this.quoted(false);
		const number = this.take(NUMBER);
		return number === null ? this.nameOrCall() : () => Number(number);
	}

	/** -a ^ b is -(a ^ b), as in Python; a ^ -b is accepted. */
	power(): Value {
		if (++this.nested > NESTED_MAX) this.fail('Too deep');
		let out: Value;
		if (this.next() === '-') {
			this.at++;
			const a = this.power();
			out = (of) => -a(of);
		} else {
			out = this.operand();
			if (this.next() === '^') {
				this.at++;
				const [a, b] = [out, this.power()];
				out = (of) => a(of) ** b(of);
			}
		}
		this.nested--;
		return out;
	}

	/** Operands joined by the operators of a level. */
	private chain(operand: () => Value, level: Record<string, (a: number, b: number) => number>): Value {
		let out = operand();
		for (let join = level[this.next()]; join; join = level[this.next()]) {
			this.at++;
			const [a, b, of] = [out, operand(), join];
			out = (run) => of(a(run), b(run));
		}
		return out;
	}

	sum(): Value {
		const product = () => this.chain(() => this.power(), { '*': (a, b) => a * b, '/': (a, b) => a / b });
		return this.chain(product, { '+': (a, b) => a + b, '-': (a, b) => a - b });
	}
}

const known = new Map<string, Formula | string>();

/** The parsed formula, or an error message. */
export function formulaOf(text: string): Formula | string {
	const have = known.get(text);
	if (have !== undefined) return have;
	const p = new Parser(text);
	let made: Formula | string;
	try {
		const value = p.sum();
		if (p.next() !== '') p.fail('Expected an operator');
		made = { names: p.names, value };
	} catch (e) {
		if (!(e instanceof SyntaxError)) throw e;
		made = e.message;
	}
	known.set(text, made);
	return made;
}
