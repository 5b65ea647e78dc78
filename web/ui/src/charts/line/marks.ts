// SPDX-License-Identifier: Apache-2.0
// Marks of a chart: arrows at the edge for clipped values, and flags, the labels above the plot area for places on a
// line.
import { packRows, type ChartLine, type Outside } from './geometry.ts';
import { FONT, halo, segment } from '../base/ink.ts';
import { isInside, type LineData, type Mark, type Pane } from './pane.ts';

const LANES = 3;
export const LANE = 14;

interface Taken {
	left: number;
	right: number;
	side: Outside['side'];
}

function drawArrow(g: CanvasRenderingContext2D, p: Pane, o: Outside, colour: string): Taken {
	const b = p.box;
	const x = Math.min(b.left + b.width - 6, Math.max(b.left + 6, p.x(o.x)));
	const up = o.side === 'top';
	const y = up ? b.top : b.top + b.height;
	const s = up ? 1 : -1;
	g.fillStyle = colour;
	g.beginPath();
	g.moveTo(x, y);
	g.lineTo(x - 5, y + s * 8);
	g.lineTo(x + 5, y + s * 8);
	g.fill();
	const text = p.formatY(o.y);
	const width = g.measureText(text).width;
	const at = x + 8 + width > b.left + b.width ? x - 8 - width : x + 8;
	halo(g, p.theme, text, { x: at, y: y + s * 6, colour });
	return { left: Math.min(x - 5, at), right: Math.max(x + 5, at + width), side: o.side };
}

/** Draws how many runs are clipped, at the edge near the first of them and clear of the arrows. */
function sayOutside(g: CanvasRenderingContext2D, p: Pane, taken: Taken[]): Mark {
	const b = p.box;
	const n = new Set(p.range.outside.map((o) => o.id)).size;
	const text = n === 1 ? '1 run outside' : `${n} runs outside`;
	const side = p.range.outside[0]!.side;
	const width = g.measureText(text).width;
	let x = b.left + 6;
	for (const t of taken.filter((o) => o.side === side).sort((a, c) => a.left - c.left))
		if (t.left < x + width + 6 && t.right > x) x = t.right + 6;
	if (x + width > b.left + b.width) x = b.left + 6;
	halo(g, p.theme, text, { x, y: side === 'top' ? b.top + 7 : b.top + b.height - 7, colour: p.theme.text });
	return { id: '', kind: 'outside', x: p.d.from, y: null, text };
}

export function drawOutside(g: CanvasRenderingContext2D, p: Pane): Mark[] {
	const out = p.range.outside;
	if (!out.length) return [];
	const colours = new Map(p.d.lines.map((l) => [l.id, l.colour]));
	const taken = out.map((o) => drawArrow(g, p, o, colours.get(o.id)!));
	return [...out.map((o) => ({ id: o.id, kind: 'arrow-' + o.side, x: o.x, y: o.y, text: p.formatY(o.y) })),
		sayOutside(g, p, taken)];
}

/** Reports how many points a log axis cannot show (0 and below). */
export function drawNotOnLog(g: CanvasRenderingContext2D, p: Pane): Mark[] {
	if (!p.d.log) return [];
	let n = 0;
	for (const l of p.d.lines)
		l.ys.forEach((y, i) => (n += Number(y <= 0 && l.xs[i]! >= p.d.from && l.xs[i]! <= p.d.to)));
	if (!n) return [];
	const text = `${n === 1 ? '1 point is' : `${n} points are`} not above 0`;
	const b = p.box;
	halo(g, p.theme, text,
		{ x: b.left + b.width - g.measureText(text).width - 6, y: b.top + 7, colour: p.theme.text });
	return [{ id: '', kind: 'not-on-log', x: p.d.from, y: null, text }];
}

interface FlagWords {
	line: ChartLine;
	flag: ChartLine['flags'][number];
	words: string;
	width: number;
}

function flagsOf(g: CanvasRenderingContext2D, d: LineData): FlagWords[] {
	g.font = FONT;
	return d.lines.flatMap((line) => line.flags.filter((f) => f.x >= d.from && f.x <= d.to).map((flag) => {
		const words = d.lines.length > 1 ? line.name + ' ' + flag.text : flag.text;
		return { line, flag, words, width: g.measureText(words).width + 4 };
	}));
}

/** Number of rows for the flags, at most three; width is that of the element. */
export function flagRows(g: CanvasRenderingContext2D, d: LineData, width: number): number {
	const room = width - 56 - d.gutter;
	const boxes = flagsOf(g, d).map((f) => ({
		left: Math.max(0, Math.min(((f.flag.x - d.from) / (d.to - d.from)) * room, width - 60 - f.width)),
		width: f.width,
	}));
	return Math.min(LANES, new Set(packRows(boxes, LANES)).size);
}

interface PlacedFlag extends FlagWords {
	left: number;
	/** Middle of its words; null: there is no room for them. */
	top: number | null;
}

/** Places the words of the flags in rows above the plot area. */
function placeFlags(g: CanvasRenderingContext2D, p: Pane, rows: number): PlacedFlag[] {
	const b = p.box;
	const list = flagsOf(g, p.d).map((f) =>
		({ ...f, left: Math.max(b.left, Math.min(p.x(f.flag.x) - 4, p.width - f.width - 2)) }));
	const row = packRows(list, Math.max(1, rows));
	return list.map((f, i) => ({ ...f, top: row[i]! < 0 ? null : b.top - 8 - row[i]! * LANE }));
}

/** The flag whose words are at a pixel; null: none. */
export function flagAt(g: CanvasRenderingContext2D, p: Pane, rows: number, [px, py]: readonly [number, number]):
	Pick<FlagWords, 'line' | 'flag'> | null {
	return placeFlags(g, p, rows).reverse().find((f) => f.top !== null && Math.abs(py - f.top) <= LANE / 2
		&& px >= f.left && px <= f.left + f.width) ?? null;
}

/** Draws the flags with a thin dotted line to their place; only: flags of one line. */
export function drawFlags(g: CanvasRenderingContext2D, p: Pane, rows: number, only: string | null): Mark[] {
	const b = p.box;
	const list = placeFlags(g, p, rows).filter((f) => only === null || f.line.id === only);
	for (const { line, flag, top } of list) {
		const x = p.x(flag.x);
		const down = flag.y !== null && isInside(p, flag.x, flag.y) ? p.y(flag.y) : b.top + b.height;
		g.strokeStyle = line.colour;
		g.lineWidth = 1;
		segment(g, [x, top === null ? b.top : top + 6], [x, down], [1, 3]);
	}
	// the words cover the dotted lines of other flags
	for (const { line, words, left, top } of list)
		if (top !== null) halo(g, p.theme, words, { x: left, y: top, colour: line.colour });
	return list.map(({ line, flag }) =>
		({ id: line.id, kind: 'flag-' + flag.kind, x: flag.x, y: flag.y, text: flag.text }));
}
