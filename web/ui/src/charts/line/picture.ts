// SPDX-License-Identifier: Apache-2.0
// Saves a chart as PNG, or as SVG by recording the canvas calls. Loaded on demand.
import { blank, FONT, segment } from '../base/ink.ts';
import type { Paintable, Painted } from '../base/chart.ts';

const TITLE_PX = 24;
const MARGIN = 8;
/** Height of the name of an axis, and of a row of the legend. */
const NAME_PX = 18;
const ROW_PX = 15;
/** Width of a line in the legend, and the room on both sides of its name. */
const KEY_PX = 22;
const KEY_GAP = 5;
const ITEM_GAP = 14;

/** A line of the legend. */
interface LegendItem {
	name: string;
	colour: string;
	dash: readonly number[];
}

/** What surrounds a chart in its picture; '' and no rows: nothing. */
export interface Surround {
	title: string;
	/** Names of the axes. */
	x: string;
	y: string;
	/** Below the chart, in rows that fit (rowsOf). */
	legend: readonly (readonly LegendItem[])[];
	/** '': transparent. */
	back: string;
}

export interface Output {
	/** What is seen of the chart, in its pixels; the default is all. */
	view?: [number, number];
	/** Lengths of an SVG with their unit; the default is that of the chart in px. */
	size?: [string, string];
	/** Pixels of a PNG for each of the chart; the default is the screen's. */
	scale?: number;
}

let ruler: CanvasRenderingContext2D | null = null;

function measured(text: string, font: string): TextMetrics {
	ruler ??= document.createElement('canvas').getContext('2d')!;
	ruler.font = font;
	return ruler.measureText(text);
}

const widthOf = (text: string): number => measured(text, FONT).width;

const itemWidth = (i: LegendItem): number => KEY_PX + KEY_GAP + widthOf(i.name) + ITEM_GAP;

/** Breaks a legend into rows of a width. */
export function rowsOf(items: readonly LegendItem[], width: number): LegendItem[][] {
	const rows: LegendItem[][] = [];
	let room = 0;
	for (const i of items) {
		const own = itemWidth(i);
		if (own > room) {
			rows.push([]);
			room = width - 2 * MARGIN;
		}
		room -= own;
		rows.at(-1)!.push(i);
	}
	return rows;
}

/** Pixels around the chart. */
export function padsOf(s: Surround): { left: number; top: number; bottom: number } {
	const rows = s.legend.length * ROW_PX;
	return { left: s.y ? NAME_PX : 0, top: s.title ? TITLE_PX : 0,
		bottom: (s.x ? NAME_PX : 0) + (rows && rows + KEY_GAP) };
}

/** The surround of a chart on a card. */
const plain = (p: Painted, title: string): Surround => ({ title, x: '', y: '', legend: [], back: p.theme.back });

function size(p: Painted, s: Surround): [number, number] {
	const { left, top, bottom } = padsOf(s);
	return [p.width + left, p.height + top + bottom];
}

/** Draws the names of the axes at the middles of the plot area. */
function nameAxes(g: CanvasRenderingContext2D, p: Painted, s: Surround): void {
	const { left, top } = padsOf(s);
	const middle = left + p.box.left + p.box.width / 2;
	g.fillStyle = p.theme.text;
	if (s.x) g.fillText(s.x, middle - widthOf(s.x) / 2, top + p.height + NAME_PX / 2 - 4);
	if (!s.y) return;
	g.save();
	g.translate(NAME_PX / 2 + 2, top + p.box.top + p.box.height / 2);
	g.rotate(-Math.PI / 2);
	g.fillText(s.y, -widthOf(s.y) / 2, 0);
	g.restore();
}

function drawLegend(g: CanvasRenderingContext2D, p: Painted, s: Surround): void {
	const { top } = padsOf(s);
	s.legend.forEach((row, n) => {
		const y = top + p.height + (s.x ? NAME_PX : 0) + (n + 0.5) * ROW_PX;
		let x = MARGIN;
		for (const i of row) {
			g.strokeStyle = i.colour;
			g.lineWidth = 1.8;
			segment(g, [x, y], [x + KEY_PX, y], [...i.dash]);
			g.fillStyle = p.theme.text;
			g.fillText(i.name, x + KEY_PX + KEY_GAP, y);
			x += itemWidth(i);
		}
	});
}

/** Paints background, title, chart and the names around it. */
function paint(chart: Paintable, g: CanvasRenderingContext2D, p: Painted, s: Surround): void {
	const [width, height] = size(p, s);
	const { left, top } = padsOf(s);
	if (s.back) {
		g.fillStyle = s.back;
		g.fillRect(0, 0, width, height);
	}
	g.fillStyle = p.theme.text;
	g.font = 'bold ' + FONT;
	if (s.title) g.fillText(s.title, MARGIN, TITLE_PX / 2 + 2);
	g.font = FONT;
	g.save();
	g.translate(left, top);
	chart.paint(g);
	g.restore();
	nameAxes(g, p, s);
	drawLegend(g, p, s);
}

const escaped = (text: string) =>
	text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]!);
const round = (v: number) => Number(v.toFixed(2));

interface Ink {
	fillStyle: string;
	strokeStyle: string;
	lineWidth: number;
	globalAlpha: number;
	font: string;
	dash: readonly number[];
	/** Attributes of the group of everything that follows. */
	groups: readonly string[];
}

/** Number of clip paths, whose names are unique in a page of several pictures. */
let clips = 0;

/** The subset of the canvas API that charts use, writing SVG. Text is measured with a real canvas in the same font. */
export class SvgCanvas {
	fillStyle = '#000';
	strokeStyle = '#000';
	lineWidth = 1;
	globalAlpha = 1;
	font = FONT;
	textAlign: 'left' | 'center' | 'right' = 'left';
	readonly parts: string[] = [];
	private readonly kept: Ink[] = [];
	private dash: readonly number[] = [];
	private groups: readonly string[] = [];
	private path = '';

	constructor(private readonly measure: (text: string, font: string) => TextMetrics) {}

	measureText(text: string): TextMetrics {
		return this.measure(text, this.font);
	}

	save(): void {
		const { fillStyle, strokeStyle, lineWidth, globalAlpha, font, dash, groups } = this;
		this.kept.push({ fillStyle, strokeStyle, lineWidth, globalAlpha, font, dash, groups });
	}

	restore(): void {
		const was = this.kept.pop();
		if (!was) return;
		for (let n = this.groups.length; n > was.groups.length; n--) this.parts.push('</g>');
		Object.assign(this, was);
	}

	translate(x: number, y: number): void {
		this.within(`transform="translate(${round(x)} ${round(y)})"`);
	}

	rotate(angle: number): void {
		this.within(`transform="rotate(${round((angle * 180) / Math.PI)})"`);
	}

	clip(): void {
		const id = 'clip' + ++clips;
		this.parts.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath>`);
		this.within(`clip-path="url(#${id})"`);
	}

	setLineDash(dash: readonly number[]): void {
		this.dash = dash;
	}

	beginPath(): void {
		this.path = '';
	}

	moveTo(x: number, y: number): void {
		this.path += `M${round(x)} ${round(y)}`;
	}

	lineTo(x: number, y: number): void {
		this.path += `${this.path ? 'L' : 'M'}${round(x)} ${round(y)}`;
	}

	rect(x: number, y: number, width: number, height: number): void {
		this.path += `M${round(x)} ${round(y)}h${round(width)}v${round(height)}h${round(-width)}z`;
	}

	/** Charts draw only full circles. */
	arc(x: number, y: number, radius: number): void {
		const r = round(radius);
		this.path += `M${round(x - radius)} ${round(y)}a${r} ${r} 0 1 0 ${round(2 * radius)} 0`
			+ `a${r} ${r} 0 1 0 ${round(-2 * radius)} 0`;
	}

	fill(): void {
		if (this.path)
			this.parts.push(`<path d="${this.path}" fill="${this.fillStyle}"${this.alpha('fill')}/>`);
	}

	stroke(): void {
		if (this.path) this.parts.push(`<path d="${this.path}" fill="none"${this.pen()}/>`);
	}

	fillRect(x: number, y: number, width: number, height: number): void {
		this.parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(width)}"`
			+ ` height="${round(height)}" fill="${this.fillStyle}"${this.alpha('fill')}/>`);
	}

	fillText(text: string, x: number, y: number): void {
		this.word(text, x, y, `fill="${this.fillStyle}"${this.alpha('fill')}`);
	}

	strokeText(text: string, x: number, y: number): void {
		this.word(text, x, y, 'fill="none"' + this.pen());
	}

	private within(attributes: string): void {
		this.groups = [...this.groups, attributes];
		this.parts.push(`<g ${attributes}>`);
	}

	private alpha(of: 'fill' | 'stroke'): string {
		return this.globalAlpha < 1 ? ` ${of}-opacity="${round(this.globalAlpha)}"` : '';
	}

	private pen(): string {
		const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(' ')}"` : '';
		return ` stroke="${this.strokeStyle}" stroke-width="${round(this.lineWidth)}"`
			+ ` stroke-linejoin="round"${dash}` + this.alpha('stroke');
	}

	private word(text: string, x: number, y: number, ink: string): void {
		if (!text) return;
		const bold = this.font.startsWith('bold ') ? ' font-weight="bold"' : '';
		const side = { left: '', center: ' text-anchor="middle"', right: ' text-anchor="end"' }[this.textAlign];
		this.parts.push(`<text x="${round(x)}" y="${round(y)}" dominant-baseline="central"${side}${bold}`
			+ ` ${ink}>${escaped(text)}</text>`);
	}
}

/** A title alone: as on a card, with '' for none. */
export function svgOf(chart: Paintable, p: Painted, around: Surround | string, o: Output = {}): string {
	const g = new SvgCanvas(measured);
	const s = typeof around === 'string' ? plain(p, around) : around;
	paint(chart, g as unknown as CanvasRenderingContext2D, p, s);
	const [width, height] = (o.view ?? size(p, s)).map(round) as [number, number];
	const [long, high] = o.size ?? [width, height];
	const [, px = '11', family = 'sans-serif'] = /^(\d+)px (.*)$/.exec(FONT) ?? [];
	return `<svg xmlns="http://www.w3.org/2000/svg" width="${long}" height="${high}" `
		+ `viewBox="0 0 ${width} ${height}" font-size="${px}" font-family="${escaped(family)}">`
		+ `<title>${escaped(s.title)}</title>${g.parts.join('\n')}</svg>\n`;
}

/** Returns null before the chart is drawn. */
export function pictureOf(chart: Paintable, around: Surround | string, kind: 'png' | 'svg', o: Output = {}):
	Promise<Blob | null> {
	const p = chart.paint(blank(document.createElement('canvas'), 1, 1));
	if (!p) return Promise.resolve(null);
	if (kind === 'svg') return Promise.resolve(new Blob([svgOf(chart, p, around, o)], { type: 'image/svg+xml' }));
	const s = typeof around === 'string' ? plain(p, around) : around;
	const c = document.createElement('canvas');
	const scale = o.scale ?? (devicePixelRatio || 1);
	const [width, height] = o.view ?? size(p, s);
	const g = blank(c, 1, 1);
	[c.width, c.height] = [Math.round(width * scale), Math.round(height * scale)];
	Object.assign(g, { font: FONT, lineJoin: 'round', textBaseline: 'middle' }); // a new size has reset them
	g.setTransform(scale, 0, 0, scale, 0, 0);
	paint(chart, g, p, s);
	return new Promise((done) => c.toBlob(done));
}
