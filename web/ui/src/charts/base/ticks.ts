// SPDX-License-Identifier: Apache-2.0
// Positions and labels of axis ticks. Needs no canvas.

const LOG_STEPS = [1, 2, 5];
const TICKS_MAX = 50;

/** About `most` round, evenly spaced values from lo to hi; whole: integers only. */
export function evenTicks(lo: number, hi: number, most: number, whole = false): number[] {
	const raw = (hi - lo) / Math.max(1, most);
	if (!(raw > 0) || !Number.isFinite(raw)) return [];
	const mag = 10 ** Math.floor(Math.log10(raw));
	const steps = whole ? [1, 2, 5] : [1, 2, 2.5, 5];
	const step = Math.max(whole ? 1 : 0, mag * (steps.find((m) => m * mag >= raw) ?? 10));
	const out: number[] = [];
	const end = hi + step * 1e-9;
	for (let k = Math.ceil(lo / step - 1e-9), v = k * step; v <= end && out.length < TICKS_MAX; v = ++k * step)
		out.push(Number(v.toPrecision(12)) || 0);
	return out;
}

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;
const TIME_STEPS = [1, 2, 5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR,
	2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 5 * DAY, 10 * DAY, 20 * DAY, 50 * DAY, 100 * DAY,
	200 * DAY];

/** Ticks of a time axis at whole minutes, hours and days; before: offset of midnight in seconds. */
export function timeTicks(lo: number, hi: number, most: number, before = 0): number[] {
	const raw = (hi - lo) / Math.max(1, most);
	const step = TIME_STEPS.find((t) => t >= raw);
	if (raw < 1 || step === undefined) return evenTicks(lo, hi, most);
	const out: number[] = [];
	const first = Math.ceil((lo + before) / step) * step - before;
	for (let v = first; v <= hi && out.length < TICKS_MAX; v += step) out.push(v);
	return out;
}

/** Ticks of a log axis: powers of ten, with 2 and 5 if they fit; linear within one decade. */
export function logTicks(lo: number, hi: number, most: number): number[] {
	const decades = Math.log10(hi) - Math.log10(lo);
	if (decades < 0.9) return evenTicks(lo, hi, most);
	const steps = decades * 3 <= most ? LOG_STEPS : [1];
	const jump = Math.max(1, Math.ceil(decades / Math.max(1, most)));
	const out: number[] = [];
	for (let e = Math.floor(Math.log10(lo)); e <= Math.log10(hi); e += jump)
		for (const s of steps)
			if (s * 10 ** e >= lo && s * 10 ** e <= hi) out.push(Number((s * 10 ** e).toPrecision(12)));
	return out;
}

/** Number of decimals of a formatted number. */
const digitsAfter = (v: number): number => (String(v).split('.')[1] ?? '').length;

/** Labels of a value axis with equal decimals. Values that would look equal are labelled by their difference to the
 * lowest. Exponents and log axes over decades use format. */
export function tickTexts(ticks: readonly number[], log: boolean, format: (v: number) => string): string[] {
	const step = ticks.length > 1 ? ticks[1]! - ticks[0]! : 1;
	const decade = log && Math.max(...ticks) < 10 * Math.min(...ticks);
	const own = log ? !decade : step < 1e-6;
	const digits = Math.max(0, ...ticks.map(digitsAfter));
	const out = ticks.map((v) =>
		(own || Math.abs(v) >= 1e6 ? format(v) : v.toFixed(Math.min(20, digits)).replace('-', '−')));
	if (new Set(out).size === ticks.length) return out;
	return ticks.map((v) => (v === ticks[0] ? format(v) : '+' + format(v - ticks[0]!)));
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** The largest unit that is at most a number of bytes: its index. */
function byteUnit(v: number): number {
	return Math.max(0, Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log2(Math.abs(v) || 1) / 10)));
}

/** About `most` ticks at round multiples of the unit of the largest value. */
export function byteTicks(lo: number, hi: number, most: number): number[] {
	const per = 1024 ** byteUnit(Math.max(Math.abs(lo), Math.abs(hi)));
	return evenTicks(lo / per, hi / per, most).map((v) => v * per);
}

/** Labels of byteTicks, all in one unit and with as many decimals as make them distinct. */
export function byteTexts(ticks: readonly number[]): string[] {
	const unit = byteUnit(Math.max(0, ...ticks.map(Math.abs)));
	const values = ticks.map((v) => Number((v / 1024 ** unit).toPrecision(12)));
	const digits = Math.max(0, ...values.map(digitsAfter));
	return values.map((v) => v.toFixed(Math.min(20, digits)).replace('-', '−') + ' ' + BYTE_UNITS[unit]!);
}
