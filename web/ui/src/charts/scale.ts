// SPDX-License-Identifier: Apache-2.0
// An axis for values: numbers on a linear or log scale, or categories. Needs no canvas or DOM.
import { evenTicks, logTicks, tickTexts } from './base/ticks.ts';

export type Value = number | string | null;

export interface Scale {
	log: boolean;
	/** Positions are shares of the values that are smaller. */
	quantile: boolean;
	/** Every value has a tick, so lines with equal values may be spread. */
	discrete: boolean;
	/** Positions from 0 (bottom) to 1. */
	ticks: { at: number; text: string }[];
	/** Position of a value, clamped to the ends; null if it has none. */
	at(v: Value): number | null;
}

interface ScaleOptions {
	format(v: number): string;
	/** The smallest number is at the top. */
	flip?: boolean;
	/** Logarithmic or linear if set by the user; else automatic. */
	log?: boolean | null;
	/** Numbers are placed by their rank among all values, equal ones in the middle of theirs. */
	quantile?: boolean;
	/** Ends set by the user, beyond which values have no position; null: automatic. */
	ends?: readonly [number | null, number | null];
	/** Reserves a position at the bottom for missing values. */
	missing?: boolean;
}

/** Up to this many distinct numbers, no closer than this, are the ticks. */
const OWN_TICKS = 7;
const APART = 0.06;
const TICKS = 6;
const WORDS = 14;
/** Ratio of values from which the scale is logarithmic; of values at least twice the one before each, any. */
const LOG_FROM = 10;
const EDGE = 0.04;
const MISSING = { at: 0.02, text: '–' };
const ABOVE_MISSING = 0.13;

function wordScale(words: readonly string[], floor: number): Omit<Scale, 'at'> & { place: Map<string, number> } {
	const place = new Map(words.map((w, i) => [w, floor + (1 - floor) * ((i + 0.5) / words.length)]));
	const jump = Math.ceil(words.length / WORDS);
	return { log: false, quantile: false, discrete: true, place,
		ticks: words.filter((_, i) => i % jump === 0).map((text) => ({ at: place.get(text)!, text })) };
}

/** Ticks of a quantile scale: minimum, quartiles and maximum. */
const QUARTILES = [0, 0.25, 0.5, 0.75, 1];

/** all: sorted. */
function numberScale(all: readonly number[], floor: number, o: ScaleOptions): Scale {
	const [first = null, last = null] = o.ends ?? [];
	const isIn = (v: number) => !(v < (first ?? -Infinity) || v > (last ?? Infinity));
	const ranked = all.filter(isIn);
	const ranks = new Map<number, number>();
	ranked.forEach((v, i) => ranks.set(v, ranks.has(v) ? ranks.get(v)! + 0.5 : i));
	const numbers = [...ranks.keys()];
	const quantile = o.quantile === true && numbers.length > 1;
	const [lo, hi] = [first ?? numbers[0] ?? 0, last ?? numbers.at(-1) ?? 0];
	const doubled = numbers.length > 2 && numbers.every((v, i) => !i || v >= 2 * numbers[i - 1]!);
	const log = lo > 0 && !quantile && (o.log ?? (doubled || hi / lo >= LOG_FROM));
	const t = log ? Math.log : (v: number) => v / 2; // halves: the range of doubles overflows a difference
	const width = t(hi) - t(lo);
	const at = (v: Value): number | null => {
		if (typeof v !== 'number' || !Number.isFinite(v) || !isIn(v)) return null;
		const part = quantile ? (ranks.get(v) ?? ranked.filter((n) => n < v).length - 0.5) / (ranked.length - 1)
			: (t(v) - t(lo)) / width;
		const share = !(width > 0) ? 0.5 : log && v <= 0 ? 0 : Math.min(1, Math.max(0, part));
		return floor + EDGE + (o.flip ? 1 - share : share) * (1 - floor - 2 * EDGE);
	};
	const apart = numbers.every((v, i) => i === 0 || Math.abs(at(v)! - at(numbers[i - 1]!)!) >= APART);
	const discrete = numbers.length <= OWN_TICKS && apart;
	const quartile = (q: number) => ranked[Math.round(q * (ranked.length - 1))]!;
	const ticks = discrete ? numbers : quantile ? [...new Set(QUARTILES.map(quartile))]
		: log ? logTicks(lo, hi, TICKS) : evenTicks(lo, hi, TICKS);
	const texts = discrete ? ticks.map((v) => o.format(v)) : tickTexts(ticks, log, o.format);
	return { log, quantile, discrete, at, ticks: ticks.map((v, i) => ({ at: at(v)!, text: texts[i]! })) };
}

/** values: the values to fit, categories in order. */
export function scaleOf(values: readonly Value[], o: ScaleOptions): Scale {
	const there = values.filter((v): v is number | string => v !== null);
	const floor = o.missing ? ABOVE_MISSING : 0;
	const words = there.some((v) => typeof v === 'string')
		? wordScale([...new Set(there.map(String))], floor) : null;
	const own = words ? { ...words, at: (v: Value) => words.place.get(String(v)) ?? null }
		: numberScale((there as number[]).filter(Number.isFinite).sort((a, b) => a - b), floor, o);
	return {
		log: own.log, quantile: own.quantile, discrete: own.discrete,
		ticks: o.missing ? [MISSING, ...own.ticks] : own.ticks,
		at: (v) => (v === null || (typeof v === 'number' && !Number.isFinite(v))
			? (o.missing ? MISSING.at : null) : own.at(v)),
	};
}
