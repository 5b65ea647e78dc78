// One axis for values of a kind: numbers, evenly or by their logarithm, or words, one place each. No canvas, no DOM.
import { evenTicks, logTicks, tickTexts } from './base/ticks.ts';

export type Value = number | string | null;

export interface Scale {
	log: boolean;
	/** Every value has its own tick, so lines that share one may lie side by side. */
	discrete: boolean;
	/** Places from 0, the bottom, to 1. */
	ticks: { at: number; text: string }[];
	/** Where a value stands; numbers beyond the ends stand at them. null for what has no place. */
	at(v: Value): number | null;
}

interface ScaleOptions {
	format(v: number): string;
	/** The smallest number is at the top. */
	flip?: boolean;
	/** By factors or evenly, where somebody wants it so; else as the values ask for. */
	log?: boolean | null;
	/** Some have no value: they get a place at the bottom. */
	missing?: boolean;
}

/** Distinct numbers up to this many, and no closer than this, are ticks themselves. */
const OWN_TICKS = 7;
const APART = 0.06;
const TICKS = 6;
const WORDS = 14;
/** Numbers that span at least this factor are spread by their logarithm. */
const LOG_FROM = 10;
const EDGE = 0.04;
const MISSING = { at: 0.02, text: '–' };
const ABOVE_MISSING = 0.13;

function wordScale(words: readonly string[], floor: number): Omit<Scale, 'at'> & { place: Map<string, number> } {
	const place = new Map(words.map((w, i) => [w, floor + (1 - floor) * ((i + 0.5) / words.length)]));
	const jump = Math.ceil(words.length / WORDS);
	return { log: false, discrete: true, place,
		ticks: words.filter((_, i) => i % jump === 0).map((text) => ({ at: place.get(text)!, text })) };
}

function numberScale(numbers: readonly number[], floor: number, o: ScaleOptions): Scale {
	const [lo, hi] = [numbers[0] ?? 0, numbers[numbers.length - 1] ?? 0];
	const log = lo > 0 && (o.log ?? hi / lo >= LOG_FROM);
	const t = log ? Math.log : (v: number) => v / 2; // halves: the whole range of doubles has no difference
	const width = t(hi) - t(lo);
	const at = (v: Value): number | null => {
		if (typeof v !== 'number' || !Number.isFinite(v)) return null;
		const share = !(width > 0) ? 0.5 : log && v <= 0 ? 0 : Math.min(1, Math.max(0, (t(v) - t(lo)) / width));
		return floor + EDGE + (o.flip ? 1 - share : share) * (1 - floor - 2 * EDGE);
	};
	const apart = numbers.every((v, i) => i === 0 || Math.abs(at(v)! - at(numbers[i - 1]!)!) >= APART);
	const discrete = numbers.length <= OWN_TICKS && apart;
	const ticks = discrete ? numbers : log ? logTicks(lo, hi, TICKS) : evenTicks(lo, hi, TICKS);
	const texts = discrete ? ticks.map((v) => o.format(v)) : tickTexts(ticks, log, o.format);
	return { log, discrete, at, ticks: ticks.map((v, i) => ({ at: at(v)!, text: texts[i]! })) };
}

/** values: what the axis is made for, words in their order. */
export function scaleOf(values: readonly Value[], o: ScaleOptions): Scale {
	const there = [...new Set(values.filter((v): v is number | string => v !== null))];
	const floor = o.missing ? ABOVE_MISSING : 0;
	const words = there.some((v) => typeof v === 'string') ? wordScale(there.map(String), floor) : null;
	const own = words ? { ...words, at: (v: Value) => words.place.get(String(v)) ?? null }
		: numberScale((there as number[]).filter(Number.isFinite).sort((a, b) => a - b), floor, o);
	return {
		log: own.log, discrete: own.discrete, ticks: o.missing ? [MISSING, ...own.ticks] : own.ticks,
		at: (v) => (v === null || (typeof v === 'number' && !Number.isFinite(v))
			? (o.missing ? MISSING.at : null) : own.at(v)),
	};
}
