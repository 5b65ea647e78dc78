// SPDX-License-Identifier: Apache-2.0
// Formats numbers, times and names. Values of a column share one precision, so that digits line up.

/** Decimals for three significant digits of the largest value and two of the spread; null selects exponents. */
export function decimalsFor(values: readonly number[]): number | null {
	const finite = values.filter(Number.isFinite);
	if (!finite.length) return 0;
	const top = Math.max(...finite.map(Math.abs));
	if (top === 0 || finite.every(Number.isInteger) && top < 1e7) return 0;
	if (top >= 1e7 || top < 1e-4) return null;
	const sorted = [...finite].sort((a, b) => a - b);
	const at = (q: number) => sorted[Math.round(q * (sorted.length - 1))]!;
	const spread = at(0.9) - at(0.1);
	let d = 2 - Math.floor(Math.log10(top));
	if (spread > top * 1e-6) d = Math.max(d, 1 - Math.floor(Math.log10(spread)));
	return Math.min(6, Math.max(0, d));
}

/** Decimals of a value: the same for all, or by value; null selects exponents. */
export type Decimals = number | null | ((v: number) => number | null);

/** Decimals of the values of a column. Values up to 20 times apart share theirs: three significant digits of the
 * smallest and two of their spread. A value of another size, such as one that diverged, takes none from them. */
export function decimalsBy(values: readonly number[]): (v: number) => number | null {
	const groups: { least: number; decimals: number | null }[] = [];
	let rest = values.filter((v) => Number.isFinite(v) && v !== 0);
	while (rest.length) {
		const top = Math.max(...rest.map(Math.abs));
		const group = rest.filter((v) => Math.abs(v) >= top / 20);
		rest = rest.filter((v) => Math.abs(v) < top / 20);
		const least = Math.min(...group.map(Math.abs));
		const d = decimalsFor(group);
		groups.push({ least, decimals: d === null || group.every(Number.isInteger) ? d
			: least < 1e-4 ? null : Math.max(d, placesOf(least)) });
	}
	return (v) => {
		const a = Math.abs(v);
		if (!a || !Number.isFinite(a)) return groups[0]?.decimals ?? 0;
		const g = groups.find((o) => a >= o.least);
		const d = g ? g.decimals : decimalsFor([v]);
		return d === null || Number.isInteger(v) ? d : Math.max(d, placesOf(a));
	};
}

/** Decimals for three significant digits. */
const placesOf = (size: number): number => Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(size))));

/** A value that is not 0 does not show as 0: it takes the digits it needs. */
export function fixed(v: number | null | undefined, decimals: Decimals): string {
	if (v === null || v === undefined) return '';
	if (Number.isNaN(v)) return 'NaN';
	if (v === Infinity) return '∞';
	if (v === -Infinity) return '−∞';
	const d = typeof decimals === 'function' ? decimals(v) : decimals;
	const s = d === null || (v !== 0 && Number(v.toFixed(d)) === 0) ? short(v) : v.toFixed(d);
	return s.startsWith('-') ? '−' + s.slice(1) : s;
}

/** At most four significant digits, without trailing zeros; for axes, labels and alerts. */
export function short(v: number): string {
	if (Number.isNaN(v)) return 'NaN';
	if (!Number.isFinite(v)) return v > 0 ? '∞' : '−∞';
	if (v === 0) return '0';
	const a = Math.abs(v);
	if (a >= 1e6 || a < 1e-4) return v.toExponential(2).replace(/\.?0+e/, 'e').replace('e+', 'e');
	return String(Number(v.toPrecision(4)));
}

/** A param in a cell: long decimal fractions with six significant digits. */
export function paramText(v: string): string {
	return v.length > 9 && /^-?\d*\.\d+(e[-+]?\d+)?$/i.test(v) ? String(Number(Number(v).toPrecision(6))) : v;
}

/** Writes the params of a column in one notation: with exponents if a small one would be long. */
export function paramTexts(values: readonly string[]): (v: string) => string {
	const isSmall = (v: string) => Math.abs(Number(v)) < 1e-4 && Number(v) !== 0
		&& (/e/i.test(v) || paramText(v).length > 8);
	return !values.some(isSmall) ? paramText : (v) => (v.trim() === '' || !Number(v) ? v
		: Number(Number(v).toPrecision(6)).toExponential().replace('e+', 'e'));
}

/** A text of at most `most` characters. */
export const cut = (v: string, most = 24): string => (v.length > most ? v.slice(0, most - 1) + '…' : v);

/** With as many more decimals as tell the first few values apart. */
export function apart(few: readonly number[], by: (v: number) => number | null): (v: number) => number | null {
	const list = [...new Set(few.filter(Number.isFinite))];
	const more = (n: number) => (v: number) => {
		const d = by(v);
		return d === null || Number.isInteger(v) && d === 0 ? d : Math.min(6, d + n);
	};
	const n = [0, 1, 2].find((e) => new Set(list.map((v) => fixed(v, more(e)))).size === list.length);
	return more(n ?? 3);
}

export function signed(v: number, decimals: Decimals): string {
	const s = fixed(v, decimals);
	return v > 0 ? '+' + s : s;
}

/** "1 run", "2 runs". */
export function count(n: number, word: string): string {
	return `${n} ${word}${n === 1 ? '' : 's'}`;
}

/** "1st", "2nd", "13th". */
export function ordinal(n: number): string {
	const suffix = n % 100 >= 11 && n % 100 <= 13 ? 'th' : ['th', 'st', 'nd', 'rd'][n % 10] ?? 'th';
	return n + suffix;
}

/** Formats seconds with a unit from ns up. */
export function seconds(s: number): string {
	if (!(s < 1)) return duration(s * 1000);
	const [factor, unit] = s < 1e-6 && s > 0 ? [1e9, ' ns'] : s < 1e-3 ? [1e6, ' µs'] : [1e3, ' ms'];
	const v = s * factor;
	return v.toFixed(v < 10 ? 2 : v < 100 ? 1 : 0) + unit;
}

export function duration(ms: number): string {
	const s = Math.max(0, ms / 1000);
	if (s < 10) return s.toFixed(1) + ' s';
	if (s < 120) return Math.round(s) + ' s';
	if (s < 7200) return Math.round(s / 60) + ' min';
	if (s < 172800) return (s / 3600).toFixed(1) + ' h';
	return (s / 86400).toFixed(1) + ' d';
}

/** Formats seconds since a start in the two largest units, for axes. */
export function sinceStart(s: number): string {
	const of = (n: number, unit: string, rest: number, small: string) =>
		`${n} ${unit}${rest ? ` ${rest} ${small}` : ''}`;
	if (s < 120) return `${Number(s.toFixed(s < 10 ? 2 : 1))} s`;
	const min = Math.round(s / 60);
	if (s < 7200) return of(Math.floor(s / 60), 'min', Math.round(s % 60) % 60, 's');
	if (s < 172800) return of(Math.floor(min / 60), 'h', min % 60, 'min');
	const h = Math.round(s / 3600);
	return of(Math.floor(h / 24), 'd', h % 24, 'h');
}

const DAY = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric' });

/** Formats seconds since 1970 as time of day; midnight as the date. */
export function clockText(s: number): string {
	const d = new Date(Math.round(s) * 1000);
	const p = (n: number) => String(n).padStart(2, '0');
	if (!d.getHours() && !d.getMinutes() && !d.getSeconds()) return DAY.format(d);
	return `${p(d.getHours())}:${p(d.getMinutes())}${d.getSeconds() ? ':' + p(d.getSeconds()) : ''}`;
}

export function bytes(n: number): string {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let i = 0;
	while (n >= 1024 && i < units.length - 1) {
		n /= 1024;
		i++;
	}
	return (i ? n.toFixed(1) : String(n)) + ' ' + units[i];
}

/** Returns true if the metric counts bytes. */
export function isBytes(key: string): boolean {
	return /(^|[/_.])bytes$/.test(key);
}

/** Formats values of a metric that are read together: four significant digits, as far as the unit to which they are
 * exact allows, with common decimals for those of a size. */
export function valueTexts(key: string, values: readonly number[], units: readonly number[]): string[] {
	if (isBytes(key)) return values.map(valueText(key));
	const by = decimalsBy(values);
	return values.map((v, i) => fixed(v, (own) => {
		const d = by(own);
		return d === null || d === 0 ? d : Math.min(d + 1, knownDecimals(own, units[i] ?? 0));
	}));
}

/** Decimals to which a drawn value is known. The server rounds to the unit what that does not change much, and sends
 * other values below 100 units in full. */
function knownDecimals(v: number, unit: number): number {
	const n = Math.abs(v) / unit;
	const full = !(unit > 0) || (n < 100 && Math.abs(n - Math.round(n)) > 1e-6);
	return full ? Infinity : Math.max(0, Math.round(-Math.log10(unit)));
}

/** Returns a formatter for a metric: byte counts get units. */
export function valueText(key: string): (v: number) => string {
	return isBytes(key) ? (v) => (Number.isFinite(v) ? (v < 0 ? '−' : '') + bytes(Math.abs(v)) : short(v)) : short;
}

/** Formats a param or a fact of the environment: byte counts get units. */
export function pairText(key: string, v: string): string {
	return isBytes(key) && /^\d+$/.test(v) ? bytes(Number(v)) : v;
}

/** Local date and time without seconds. */
export function when(ms: number | null): string {
	if (ms === null) return '';
	const d = new Date(ms);
	const p = (n: number) => String(n).padStart(2, '0');
	return `${d.getFullYear()}-${p(d.getMonth() + 1)}-${p(d.getDate())} ${p(d.getHours())}:${p(d.getMinutes())}`;
}

/** Natural order of names. Created once because lists of thousands are sorted with it. */
export const byName = new Intl.Collator('en', { numeric: true }).compare;

/** Natural order: "ddp2" before "ddp10", numbers by value. */
export function natural(a: string, b: string): number {
	const x = Number(a);
	const y = Number(b);
	if (a !== '' && b !== '' && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
	return byName(a, b);
}

const NUMBER = /^[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|Infinity|NaN)$/;

/** A cell of CSV as the server writes it: a text that a spreadsheet would take for a formula gets a ' before it. */
export function csvCell(text: string): string {
	const safe = /^[=+\-@\t\r]/.test(text) && !NUMBER.test(text) ? "'" + text : text;
	return /[",\r\n]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
}
