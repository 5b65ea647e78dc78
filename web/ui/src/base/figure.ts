// SPDX-License-Identifier: Apache-2.0
// Figures in Plotly's JSON: what of them can be drawn (points, lines, bars, histograms, heat maps) as numbers. Needs no
// browser. Format: https://plotly.com/chart-studio-help/json-chart-schema

type FigureMark = 'line' | 'points' | 'bar' | 'cells';

export interface FigureTrace {
	name: string;
	mark: FigureMark;
	/** Also dots at the points of a line. */
	dots: boolean;
	xs: number[];
	ys: number[];
	/** Rows of a heat map, at ys; else empty. */
	cells: number[][];
	/** Plotly's colour if it is a plain one. */
	colour: string | null;
}

export interface Figure {
	title: string;
	x: string;
	y: string;
	/** Categories of an axis, in the order of their numbers; empty for numbers and dates. */
	names: { x: string[]; y: string[] };
	/** x is a time in milliseconds. */
	dates: boolean;
	traces: FigureTrace[];
	/** Types of traces that are left out. */
	left: string[];
}

type Json = Record<string, unknown>;

const BINS = 30;
const COLOUR = /^(#[0-9a-f]{3,8}|rgba?\([\d.,\s%]+\)|[a-z]+)$/i;
const TYPES: Record<string, [number, (v: DataView, at: number) => number]> = {
	f8: [8, (v, at) => v.getFloat64(at, true)], f4: [4, (v, at) => v.getFloat32(at, true)],
	i4: [4, (v, at) => v.getInt32(at, true)], u4: [4, (v, at) => v.getUint32(at, true)],
	i2: [2, (v, at) => v.getInt16(at, true)], u2: [2, (v, at) => v.getUint16(at, true)],
	i1: [1, (v, at) => v.getInt8(at)], u1: [1, (v, at) => v.getUint8(at)],
};

const isJson = (v: unknown): v is Json => typeof v === 'object' && v !== null && !Array.isArray(v);

/** A list, which newer versions write as bytes in base64; rows of them for two dimensions. */
function listOf(v: unknown): unknown[] {
	if (Array.isArray(v)) return v;
	if (!isJson(v) || typeof v.bdata !== 'string' || !TYPES[String(v.dtype)]) return [];
	const [size, read] = TYPES[String(v.dtype)]!;
	const bytes = Uint8Array.from(atob(v.bdata), (c) => c.charCodeAt(0));
	const view = new DataView(bytes.buffer);
	const all = Array.from({ length: Math.floor(bytes.length / size) }, (_, i) => read(view, i * size));
	const columns = Number(String(v.shape ?? '').split(',')[1]);
	if (!(columns > 0)) return all;
	return Array.from({ length: all.length / columns }, (_, r) => all.slice(r * columns, (r + 1) * columns));
}

function textOf(v: unknown): string {
	return typeof v === 'string' ? v.replace(/<[^>]*>/g, '') : isJson(v) ? textOf(v.text) : '';
}

/** Numbers of an axis: as they are, dates in milliseconds, else the positions of names. */
class Axis {
	readonly names: string[] = [];
	dates = false;

	place(list: readonly unknown[]): number[] {
		const numbers = list.map((v) => (typeof v === 'number' ? v : v === null || v === '' ? NaN : Number(v)));
		if (numbers.every((n, i) => Number.isFinite(n) || list[i] === null)) return numbers;
		const dates = list.map((v) => (/^\d{4}-\d\d/.test(String(v)) ? Date.parse(String(v)) : NaN));
		if (dates.every(Number.isFinite)) {
			this.dates = true;
			return dates;
		}
		return list.map((v) => {
			const at = this.names.indexOf(String(v));
			return at < 0 ? this.names.push(String(v)) - 1 : at;
		});
	}
}

function binned(values: readonly number[]): { xs: number[]; ys: number[] } {
	const finite = values.filter(Number.isFinite);
	const [lo, hi] = [Math.min(...finite), Math.max(...finite)];
	if (!(lo < hi)) return { xs: finite.slice(0, 1), ys: finite.length ? [finite.length] : [] };
	const ys = new Array<number>(BINS).fill(0);
	for (const v of finite) ys[Math.min(BINS - 1, Math.floor(((v - lo) / (hi - lo)) * BINS))]!++;
	return { xs: ys.map((_, i) => lo + ((i + 0.5) / BINS) * (hi - lo)), ys };
}

function colourIn(t: Json): string | null {
	for (const part of [t.line, t.marker])
		if (isJson(part) && typeof part.color === 'string' && COLOUR.test(part.color)) return part.color;
	return null;
}

/** One trace; null if its type is not drawn. */
function traceOf(t: Json, at: number, x: Axis, y: Axis): FigureTrace | null {
	const type = String(t.type ?? 'scatter');
	const base = { name: textOf(t.name) || `trace ${at}`, dots: false, cells: [], colour: colourIn(t) };
	const values = listOf(t.y);
	const along = t.x === undefined ? values.map((_, i) => i) : listOf(t.x);
	if (type === 'scatter' || type === 'scattergl') {
		const mode = String(t.mode ?? 'lines');
		return { ...base, mark: mode.includes('lines') ? 'line' : 'points', dots: mode.includes('markers'),
			xs: x.place(along), ys: y.place(values) };
	}
	if (type === 'bar' && t.orientation !== 'h')
		return { ...base, mark: 'bar', xs: x.place(along), ys: y.place(values) };
	if (type === 'histogram' && t.x !== undefined) return { ...base, mark: 'bar', ...binned(x.place(listOf(t.x))) };
	if (type !== 'heatmap') return null;
	const cells = listOf(t.z).map((row) => listOf(row).map(Number));
	const places = (list: unknown, n: number) =>
		(list === undefined ? Array.from({ length: n }, (_, i) => i) : listOf(list));
	return { ...base, mark: 'cells', cells, xs: x.place(places(t.x, cells[0]?.length ?? 0)),
		ys: y.place(places(t.y, cells.length)) };
}

/** The figure in a text; null if the text has no figure. */
export function figureOf(text: string): Figure | null {
	if (!/^\s*\{/.test(text)) return null;
	let json: unknown;
	try {
		json = JSON.parse(text);
	} catch {
		return null;
	}
	if (!isJson(json) || !Array.isArray(json.data) || !json.data.every(isJson)) return null;
	const layout = isJson(json.layout) ? json.layout : {};
	const [x, y] = [new Axis(), new Axis()];
	const all = json.data.map((t, i) => traceOf(t, i, x, y));
	const left = json.data.filter((_, i) => !all[i]).map((t) => String(t.type));
	const axisTitle = (a: unknown) => (isJson(a) ? textOf(a.title) : '');
	return { title: textOf(layout.title), x: axisTitle(layout.xaxis), y: axisTitle(layout.yaxis),
		names: { x: x.names, y: y.names }, dates: x.dates, left: [...new Set(left)],
		traces: all.filter((t): t is FigureTrace => t !== null) };
}
