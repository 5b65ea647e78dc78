// SPDX-License-Identifier: Apache-2.0
// Assigns a look (colour and dash) to each run: hue by one param, dash by another, shades within. A chosen numeric
// param is a colour scale. Looks are assigned in run order from all runs of an experiment, so neither a new run nor
// what is charted changes an existing look. The first 64 are distinct as far as the hues of their values have room,
// later runs take the looks of the earlier ones of the same values in turn.
import type { Run } from './types.ts';
import { natural } from './format.ts';
import { splitParams } from './params.ts';

export interface Look {
	/** sRGB as #rrggbb for a light and a dark background. */
	light: string;
	dark: string;
	/** Canvas dash pattern in CSS pixels; empty is a solid line. */
	dash: number[];
}

interface Looks {
	byRun: Map<string, Look>;
	hueParam: string | null;
	dashParam: string | null;
	/** The hue shows the magnitude of a numeric param. */
	scale: boolean;
}

/** The params that the user chose for colour and dash; null: chosen automatically. */
interface LookChoice {
	hue: string | null;
	dash: string | null;
	/** Params considered when neither is chosen. */
	among?: ReadonlySet<string> | null;
}

type Lab = [number, number, number];

const DASHES: number[][] = [[], [7, 3], [2, 2.5], [10, 3, 2, 3], [14, 6], [10, 3, 2, 3, 2, 3]];
/** Most values of a param that is chosen for dashes automatically. */
const DASHED_MOST = 4;

/** Hues in degrees: blue, orange, green, magenta, gold, violet, cyan, red; a colour-blind safe order. */
const HUES = [255, 52, 160, 345, 92, 300, 215, 25];
/** Steps of lightness and hue within one base hue. With each hue and in both themes all are APART from each other and
 * have a contrast of at least 3 to the background. */
const SHADES: [number, number][] =
	[[0, 0], [0.09, 30], [-0.12, 2], [-0.06, -30], [0.08, -19], [-0.2, 28], [-0.05, 28], [-0.2, -29]];
const LIMIT = 64;
/** Minimum distance in Oklab between two lines with the same dash. */
export const APART = 0.075;

function lab(l: number, c: number, h: number): Lab {
	const a = (h * Math.PI) / 180;
	return [l, c * Math.cos(a), c * Math.sin(a)];
}

function labToRgb([L, a, b]: Lab): number[] {
	const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
	return [
		4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
		-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
		-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
	];
}

/** Nearest colour inside sRGB with the same lightness and hue. */
function toHex(l: number, c: number, h: number): string {
	let rgb = labToRgb(lab(l, c, h));
	while (c > 0 && rgb.some((v) => v < -0.0005 || v > 1.0005)) {
		c -= 0.005;
		rgb = labToRgb(lab(l, Math.max(0, c), h));
	}
	return '#' + rgb.map((v) => {
		const u = Math.min(1, Math.max(0, v));
		const g = u <= 0.0031308 ? 12.92 * u : 1.055 * u ** (1 / 2.4) - 0.055;
		return Math.round(g * 255).toString(16).padStart(2, '0');
	}).join('');
}

const labs = new Map<string, Lab>();

function hexToLab(hex: string): Lab {
	const known = labs.get(hex);
	if (known) return known;
	const made = toLab(hex);
	labs.set(hex, made);
	return made;
}

function toLab(hex: string): Lab {
	const [r, g, b] = [1, 3, 5].map((i) => {
		const u = parseInt(hex.slice(i, i + 2), 16) / 255;
		return u <= 0.04045 ? u / 12.92 : ((u + 0.055) / 1.055) ** 2.4;
	}) as Lab;
	const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
	const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
	const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
	return [
		0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
		1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
		0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
	];
}

function distance(a: string, b: string): number {
	const [p, q] = [hexToLab(a), hexToLab(b)];
	return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

const made = new Map<string, Look>();

function look(hue: number, shade: number, dash: number): Look {
	const name = [hue, shade % SHADES.length, dash % DASHES.length].join();
	const known = made.get(name);
	if (known) return known;
	const [dl, dh] = SHADES[shade % SHADES.length]!;
	const fresh = {
		light: toHex(0.57 + dl, 0.16, hue + dh),
		dark: toHex(0.71 + dl * 0.8, 0.145, hue + dh),
		dash: DASHES[dash % DASHES.length]!,
	};
	made.set(name, fresh);
	return fresh;
}

/** The look of the n-th line without params: hues first, then shades. */
export function lookAt(n: number): Look {
	return look(HUES[n % HUES.length]!, Math.floor(n / HUES.length), 0);
}

/** Whether pairs of looks are far apart: there are few looks and many runs. */
const apartness = new Map<string, boolean>();

function farApart(a: Look, b: Look): boolean {
	const pair = a.light + b.light + a.dark + b.dark;
	let far = apartness.get(pair);
	if (far === undefined) {
		far = distance(a.light, b.light) >= APART && distance(a.dark, b.dark) >= APART;
		apartness.set(pair, far);
	}
	return far;
}

/** Returns true if two looks can be distinguished: by dash, or by colour in both themes. */
export function differ(a: Look, b: Look): boolean {
	return a.dash.join() !== b.dash.join() || farApart(a, b);
}

const HUE_FIRST = ['model', 'arch', 'architecture', 'network', 'opt', 'optimizer', 'strategy'];
const DASH_FIRST = ['strategy', 'precision', 'opt', 'optimizer', 'world_size'];

/** The param of at least half of the runs that splits them into 2..max groups; preferred names first, seeds never. */
function splitter(runs: readonly Run[], differing: readonly string[], first: readonly string[], max: number,
	not: string | null): string | null {
	let best: string | null = null;
	let score = 0;
	for (const k of differing) {
		if (k === not || /seed/.test(k)) continue;
		const has = runs.filter((r) => r.params[k] !== undefined);
		const n = new Set(has.map((r) => r.params[k])).size;
		if (n < 2 || n > max || has.length * 2 < runs.length) continue;
		const s = (first.includes(k) ? 100 - first.indexOf(k) : 1) + (n <= 4 ? 0.5 : 0);
		if (s > score || (s === score && natural(k, best!) < 0)) {
			score = s;
			best = k;
		}
	}
	return best;
}

/** A fixed order that appends new runs at the end. */
function byStart(runs: readonly Run[]): Run[] {
	return [...runs].sort((a, b) => (a.start_time ?? 0) - (b.start_time ?? 0) || (a.id < b.id ? -1 : 1));
}

function indexOfValues(runs: readonly Run[], key: string | null): Map<string | undefined, number> {
	const seen = new Map<string | undefined, number>();
	if (key !== null) for (const r of runs) if (!seen.has(r.params[key])) seen.set(r.params[key], seen.size);
	return seen;
}

/** All looks of one hue and dash, in order of preference. */
function candidates(hueIndex: number, dash: number): Look[] {
	return SHADES.map((_, s) => look(HUES[hueIndex % HUES.length]!, s, dash));
}

/** In its own hue: a unique colour, one used with other dashes only, then any dash unless dashes have a meaning. */
function chooseOwn(used: readonly Look[], hue: number, dash: number, dashed: boolean): Look | undefined {
	const own = candidates(hue, dash);
	const free = (c: Look) => used.every((u) => differ(u, c));
	return own.find((c) => used.every((u) => farApart(u, c))) ?? own.find(free)
		?? (dashed ? [] : [1, 2, 3]).flatMap((d) => candidates(hue, (dash + d) % DASHED_MOST)).find(free);
}

/** A look unlike those used, in its own hue and dash if these have a meaning. */
function choose(used: readonly Look[], hue: number, dash: number, m: Meaning): Look | undefined {
	const other = () => HUES.flatMap((_, h) => candidates(h, dash)).find((c) => used.every((u) => differ(u, c)));
	return chooseOwn(used, hue, dash, m.dashParam !== null) ?? (m.hueParam !== null ? undefined : other());
}

/** From small (blue) over magenta to large (gold); lightness increases too. */
function shadeOf(part: number, dash: number): Look {
	const hue = (265 + 170 * part) % 360;
	return {
		light: toHex(0.38 + 0.3 * part, 0.17, hue), dark: toHex(0.55 + 0.3 * part, 0.15, hue),
		dash: DASHES[dash % DASHES.length]!,
	};
}

type Scale = (text: string | undefined) => number;

/** Maps a number to 0..1 between the smallest and the largest of the runs, logarithmically over large ranges. Null if
 * the param is not numeric or has few values. */
function scaleOf(runs: readonly Run[], key: string): Scale | null {
	const every = [...new Set(runs.map((r) => r.params[key]).filter((v): v is string => v !== undefined))];
	if (every.length < 3 || every.some((v) => v.trim() === '' || !Number.isFinite(Number(v)))) return null;
	const list = every.map(Number);
	const [low, high] = [Math.min(...list), Math.max(...list)];
	const place = low > 0 && high / low > 30 ? (v: number) => Math.log(Math.max(v, low)) : (v: number) => v;
	const whole = (place(high) - place(low)) || 1;
	return (text) => Math.min(1, Math.max(0, (place(Number(text)) - place(low)) / whole));
}

interface Meaning {
	hueParam: string | null;
	dashParam: string | null;
	hues: Map<string | undefined, number>;
	dashes: Map<string | undefined, number>;
	part: Scale | null;
	/** The user chose hue and dash. */
	chosen: boolean;
}

function meaningOf(runs: readonly Run[], choice: LookChoice): Meaning {
	const { among } = choice;
	const differing = splitParams(runs).differ.filter((k) => !among || among.has(k));
	const hueParam = choice.hue ?? splitter(runs, differing, HUE_FIRST, HUES.length, choice.dash);
	const dashParam = choice.dash ?? splitter(runs, differing, DASH_FIRST, DASHED_MOST, hueParam);
	return {
		hueParam, dashParam, hues: indexOfValues(runs, hueParam), dashes: indexOfValues(runs, dashParam),
		part: choice.hue === null ? null : scaleOf(runs, choice.hue),
		chosen: choice.hue !== null,
	};
}

/** all: the runs of an experiment. */
export function assignLooks(all: readonly Run[], choice: LookChoice = { hue: null, dash: null }): Looks {
	const runs = byStart(all);
	const m = meaningOf(runs, choice);
	const byRun = new Map<string, Look>();
	const used: Look[] = [];
	/** Looks of the first runs of each pair of values, and the number of its runs. */
	const classes = new Map<string, { looks: Look[]; n: number }>();
	runs.forEach((r, n) => {
		const hue = m.hueParam === null ? n : m.hues.get(r.params[m.hueParam])!;
		const dash = m.dashParam === null ? (m.hueParam === null ? Math.floor(n / 16) : 0)
			: m.dashes.get(r.params[m.dashParam])!;
		const value = m.hueParam === null ? undefined : r.params[m.hueParam];
		if (m.part && value !== undefined) return byRun.set(r.id, shadeOf(m.part(value), dash));
		if (m.chosen)
			return byRun.set(r.id, look(HUES[hue % HUES.length]!, Math.floor(hue / HUES.length), dash));
		const name = m.hueParam === null ? '' : hue + ' ' + dash;
		const own = classes.get(name) ?? { looks: [], n: 0 };
		classes.set(name, own);
		const got = n >= LIMIT ? undefined : choose(used, hue, dash, m);
		if (got) {
			used.push(got);
			own.looks.push(got);
			own.n = own.looks.length - 1;
		} else if (!own.looks.length) own.looks.push(candidates(hue, dash)[0]!);
		return byRun.set(r.id, own.looks[own.n++ % own.looks.length]!);
	});
	return { byRun, hueParam: m.hueParam, dashParam: m.dashParam, scale: m.part !== null };
}
