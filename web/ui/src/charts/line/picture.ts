// SPDX-License-Identifier: Apache-2.0
// Saves a chart as PNG, or as SVG by recording the canvas calls. Loaded on demand.
import { blank, FONT } from '../base/ink.ts';
import type { LineChart } from './line.ts';
import type { Pane } from './pane.ts';

/** Title above the chart. */
const TITLE_PX = 24;
const MARGIN = 8;

const above = (title: string): number => (title ? TITLE_PX : 0);
const size = (p: Pane, title: string): [number, number] => [p.width, p.height + above(title)];

/** Paints background, title and chart; null before the chart is drawn. */
function paint(chart: LineChart, g: CanvasRenderingContext2D, p: Pane, title: string): void {
	const [width, height] = size(p, title);
	g.fillStyle = p.theme.back;
	g.fillRect(0, 0, width, height);
	g.fillStyle = p.theme.text;
	g.font = 'bold ' + FONT;
	g.fillText(title, MARGIN, TITLE_PX / 2 + 2);
	g.font = FONT;
	g.save();
	g.translate(0, above(title));
	chart.paint(g);
	g.restore();
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
		const bold = this.font.startsWith('bold ') ? ' font-weight="bold"' : '';
		this.parts.push(`<text x="${round(x)}" y="${round(y)}" dominant-baseline="central"${bold} ${ink}>`
			+ `${escaped(text)}</text>`);
	}
}

/** Title '': none, as on a card. */
export function svgOf(chart: LineChart, p: Pane, title: string): string {
	const ruler = document.createElement('canvas').getContext('2d')!;
	const g = new SvgCanvas((text, font) => {
		ruler.font = font;
		return ruler.measureText(text);
	});
	paint(chart, g as unknown as CanvasRenderingContext2D, p, title);
	const [width, height] = size(p, title);
	const [, px = '11', family = 'sans-serif'] = /^(\d+)px (.*)$/.exec(FONT) ?? [];
	return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" `
		+ `viewBox="0 0 ${width} ${height}" font-size="${px}" font-family="${escaped(family)}">`
		+ `<title>${escaped(title)}</title>${g.parts.join('\n')}</svg>\n`;
}

/** Returns null before the chart is drawn. */
export function pictureOf(chart: LineChart, title: string, kind: 'png' | 'svg'): Promise<Blob | null> {
	const p = chart.paint(blank(document.createElement('canvas'), 1, 1));
	if (!p) return Promise.resolve(null);
	if (kind === 'svg') return Promise.resolve(new Blob([svgOf(chart, p, title)], { type: 'image/svg+xml' }));
	const c = document.createElement('canvas');
	paint(chart, blank(c, ...size(p, title)), p, title);
	return new Promise((done) => c.toBlob(done));
}
