// SPDX-License-Identifier: Apache-2.0
// Names at the ends of the lines, in place of a legend.
import { spreadLabels, yAt } from './geometry.ts';
import { cut, FONT, inkOf, segment } from '../base/ink.ts';
import type { Pane } from './pane.ts';

export interface Label {
	id: string;
	/** End of the line, and position of its name. */
	x: number;
	y: number;
	at: number;
	text: string;
	colour: string;
}

const LABELS_MAX = 24;
/** Pixels between names. */
export const NAME_APART = 13;
/** A line that ends before this share of the axis and has a flag is named by the flag, not at the right edge. */
const EARLY = 0.96;
/** Minimum pixels between a line's end and the edge for a dotted leader. */
const LONG = 24;

/** Pixels in the gutter next to a name. */
export const NAME_MARGIN = 16;

const ruler = document.createElement('canvas').getContext('2d')!;

/** Width in pixels of the widest name; it is bold when highlighted. */
export function nameWidth(names: readonly string[]): number {
	ruler.font = 'bold ' + FONT;
	return Math.max(0, ...names.map((n) => ruler.measureText(n).width));
}

/** Shortens names if one is too wide: as much as needed of the beginning that all lines share, in whole words, or the
 * details in their parentheses, then both, then in the middle. */
function shortened(g: CanvasRenderingContext2D, names: readonly string[], all: readonly string[], width: number):
	readonly string[] {
	const first = all[0] ?? '';
	let n = 0;
	while (n < first.length && all.every((x) => x.length > n + 1 && x[n] === first[n])) n++;
	const brief = names.map((x) => x.replace(/;[^()]*\)$/, '…)'));
	const starts = [...first.slice(0, n).matchAll(/[-_/. ]/g)].map((m) => m.index + 1);
	const cuts = n > 2 && all.length > 1 ? [...starts, n] : [];
	const ways = [names, brief].flatMap((list) => [list, ...cuts.map((k) => list.map((x) => '…' + x.slice(k)))]);
	g.font = 'bold ' + FONT;
	const fits = ways.find((list) => list.every((x) => g.measureText(x).width <= width));
	const out = fits ?? ways.at(-1)!.map((x) => cut(g, x, width));
	g.font = FONT;
	return out;
}

/** Spreads the names so that none overlap; empty if there is no room. */
export function labelsOf(g: CanvasRenderingContext2D, p: Pane): Label[] {
	const { d, box: b } = p;
	if (d.gutter < 40) return [];
	const want: Label[] = [];
	for (const l of d.lines) {
		if (l.label === '') continue;
		const { xs, ys } = l.smooth ?? l;
		let i = ys.length - 1;
		while (i >= 0 && (!Number.isFinite(ys[i]!) || xs[i]! > d.to)) i--;
		if (i < 0) continue;
		if (l.flags.length && xs[i]! < d.from + (d.to - d.from) * EARLY) continue;
		const edge = xs[ys.length - 1]! > d.to ? yAt(xs, ys, d.to) : null;
		if (edge === null && xs[i]! < d.from) continue;
		const y = Math.min(b.top + b.height, Math.max(b.top, p.y(edge ?? ys[i]!)));
		if (Number.isFinite(y)) want.push({ id: l.id, x: Math.min(b.left + b.width, p.x(xs[i]!)), y, at: y,
			text: l.label ?? l.name, colour: l.colour });
	}
	const shown = want.slice(0, Math.min(LABELS_MAX, Math.floor(b.height / 11) + 1));
	const at = spreadLabels(shown.map((l) => l.y), NAME_APART, b.top + 2, b.top + b.height - 4);
	const all = d.lines.map((l) => l.label ?? l.name).filter(Boolean);
	const texts = shortened(g, shown.map((l) => l.text), all, d.gutter - NAME_MARGIN);
	return shown.map((l, i) => ({ ...l, at: at[i]!, text: texts[i]! }));
}

export function drawLabel(g: CanvasRenderingContext2D, p: Pane, l: Label, strong: boolean): void {
	const x = p.box.left + p.box.width;
	g.strokeStyle = l.colour;
	g.globalAlpha = strong ? 1 : 0.5;
	g.lineWidth = 1;
	if (l.x < x - LONG) segment(g, [l.x + 6, l.y], [x, l.y], [1, 4]);
	segment(g, [x + 2, l.y], [x + 10, l.at]);
	g.globalAlpha = 1;
	g.font = strong ? 'bold ' + FONT : FONT;
	g.fillStyle = p.theme.back; // over the same name of the layer below
	if (strong) g.fillRect(x + 12, l.at - NAME_APART / 2, p.d.gutter - 12, NAME_APART - 1);
	g.fillStyle = inkOf(p.theme, l.colour);
	g.fillText(l.text, x + 13, l.at);
	g.font = FONT;
}
