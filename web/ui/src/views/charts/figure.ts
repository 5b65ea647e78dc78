// SPDX-License-Identifier: Apache-2.0
// A chart as a figure for a paper or a slide: its settings, and the chart that draws them, in a hidden element of the
// figure's size. Text has the size of FONT there; the picture is scaled so that it is that of the settings.
import { paramTexts } from '../../base/format.ts';
import { smooth } from '../../base/series.ts';
import type { Run } from '../../base/types.ts';
import type { Paintable, Painted } from '../../charts/base/chart.ts';
import { LineChart, NAME_MARGIN, nameWidth, type ChartLine, type LineData, type LineEvents, type Pane }
	from '../../charts/line/index.ts';
import { padsOf, pictureOf, rowsOf, svgOf, type Output, type Surround } from '../../charts/line/picture.ts';
import { askExact } from '../../state/exact.ts';
import { view, zoomOf } from '../../state/index.ts';
import { GROUP } from './lines.ts';
import { setPrinted } from './paper.ts';

const PX_PER = { mm: 96 / 25.4, px: 1 };
const PX_PER_PT = 96 / 72;
/** Size of the text of charts (FONT). */
const TEXT_PX = 11;
/** The largest share of the width for names at the ends of lines, and of the height for a legend. */
const ENDS_SHARE = 0.34;
const LEGEND_SHARE = 0.5;
/** The least width of names that a chart draws, and the least side of a chart. */
const ENDS_LEAST = 44;
const SIDE_LEAST = 60;
/** Lines of a figure that has the words of alerts unless chosen. */
const FLAGGED_MOST = 4;
const BUCKETS = 1200;
const COLOURS = ['text', 'dim', 'grid', 'accent', 'panel'];
/** An empty title, name or number is that of the chart. */
export interface FigureSettings {
	title: string;
	x: string;
	y: string;
	from: number | null;
	to: number | null;
	low: number | null;
	high: number | null;
	logX: boolean;
	log: boolean;
	/** Names of runs: {name}, or a param in braces. */
	template: string;
	/** By the id of a line. */
	names: Readonly<Record<string, string>>;
	colours: Readonly<Record<string, string>>;
	hidden: readonly string[];
	/** Where the names are. */
	legend: 'auto' | 'ends' | 'below' | 'none';
	/** Draws ends of failed runs, and arrows of clipped values. */
	marks: boolean;
	/** Draws the words of alerts above the plot. */
	flags: boolean;
	clear: boolean;
	width: number;
	height: number;
	unit: 'mm' | 'px';
	/** In points. */
	font: number;
	/** PNG pixels for each CSS pixel. */
	times: number;
}

type Size = Pick<FigureSettings, 'width' | 'height' | 'unit' | 'font'>;

export const PRESETS: Record<'Paper column' | 'Slide', Size> = {
	'Paper column': { width: 84, height: 56, unit: 'mm', font: 8 },
	Slide: { width: 960, height: 540, unit: 'px', font: 16 },
};

/** A line or a point, as a legend names it. */
export type Item = Pick<ChartLine, 'id' | 'name' | 'colour' | 'dash'>;

/** A chart that draws a figure. */
export interface Plot {
	chart: Paintable;
	/** Sets what the settings ask for; gutter: the width of names at the ends of lines. */
	set(f: FigureSettings, items: readonly Item[], gutter: number): void;
	/** What is drawn, below the names of its columns. */
	rows(f: FigureSettings, items: readonly Item[]): unknown[][];
}

/** What a figure is made from: a chart as it was. */
export interface Source {
	kind: 'lines' | 'points' | 'axes';
	items: readonly Item[];
	/** What the settings begin with. */
	first: Partial<FigureSettings>;
	/** Ends of x; NaN: by the values. */
	range: readonly [number, number];
	/** Parallel axes, whose names the settings have among those of lines. */
	axes: readonly string[];
	/** Custom properties of the light theme. */
	style: Readonly<Record<string, string>>;
	plot(el: HTMLElement): Plot;
}

/** Points or lines without ends of a figure that has a legend unless chosen. */
const NAMED_MOST = 8;

/** Lines of a metric in full precision. */
async function exactly(lines: ChartLine[], metric: string): Promise<ChartLine[]> {
	const runs = lines.map((l) => l.id).filter((id) => !id.includes(':')); // a group, or what a restart hides
	const ask = { runs, keys: [metric], buckets: BUCKETS, zoom: zoomOf(metric) };
	const list = runs.length ? await askExact(ask) : [];
	const all = new Map(list.map((t) => [t.run, t]));
	return lines.map((l) => {
		const t = all.get(l.id);
		return !t?.xs.length ? l : { ...l, xs: t.xs, ys: t.ys, unit: undefined,
			smooth: l.smooth && (l.smooth.means ? { xs: t.mx, ys: t.mean, means: true }
				: smooth(t, view.value.smooth)) };
	});
}

/** The data of a chart in the light theme, as on paper, and the style. */
export async function onPaper<T>(chart: { data: T }): Promise<{ data: T } & Pick<Source, 'style'>> {
	await setPrinted(true);
	const { data } = chart;
	const css = getComputedStyle(document.documentElement);
	const style = Object.fromEntries(COLOURS.map((c) => ['--' + c, css.getPropertyValue('--' + c)]));
	await setPrinted(false);
	return { data, style };
}

/** A chart of lines; null before it is drawn. metric: what all its lines are of; '': other things, which are as
 * precise as they are drawn. name is that of its values. */
export async function sourceOf(chart: LineChart, metric: string, name: string): Promise<Source | null> {
	const { data: drawn, style } = await onPaper(chart);
	if (!drawn) return null;
	const data = metric ? { ...drawn, lines: await exactly(drawn.lines, metric) } : drawn;
	const [low, high] = data.limits ?? [null, null];
	return { kind: 'lines', items: data.lines, range: [data.from, data.to], axes: [], style,
		first: { x: data.xLabel, y: name, low, high, logX: data.logX ?? false, log: data.log,
			flags: data.lines.length <= FLAGGED_MOST },
		plot: (el) => plotLines(el, data, chart.ev) };
}

function plotLines(el: HTMLElement, data: LineData, events: LineEvents): Plot {
	const nothing = () => {};
	const chart = new LineChart(el, { ...events, near: undefined, onCursor: nothing, onHover: nothing,
		onZoom: nothing, onReset: nothing, onOpen: nothing });
	return { chart, rows: (f) => rowsOfLines(chart.data!, f), set: (f, items, gutter) =>
		chart.set({ ...dataOf(data, f, items as ChartLine[]), xLabel: '', gutter }) };
}

/** The drawn points of all lines. */
function rowsOfLines({ lines, from, to, log }: LineData, f: FigureSettings): unknown[][] {
	const banded = lines.some((l) => l.band);
	const isDrawn = (x: number, y: number) => x >= from && x <= to && Number.isFinite(y) && !(log && y <= 0);
	const rows = (name: string, { xs, ys }: Pick<ChartLine, 'xs' | 'ys'>, band?: ChartLine['band']) =>
		xs.flatMap((x, i) => (!isDrawn(x, ys[i]!) ? [] : [[name, x, ys[i],
			...banded ? [band?.low[i], band?.high[i]] : []]]));
	const all = lines.flatMap((l) => [...rows(l.name, l, l.band), ...l.smooth
		? rows(`${l.name} (${l.smooth.means ? 'means' : 'smoothed'})`, l.smooth) : []]);
	return [['line', f.x || 'x', f.y || 'y', ...banded ? ['low', 'high'] : []], ...all];
}

/** What a figure begins with. */
export function firstSettings({ first }: Source): FigureSettings {
	return { title: '', x: '', y: '', from: null, to: null, low: null, high: null, logX: false, log: false,
		template: '{name}', names: {}, colours: {}, hidden: [], legend: 'auto', marks: true, flags: false,
		clear: false, times: 2, ...PRESETS['Paper column'], ...first };
}

/** Width and height in CSS pixels. */
export const pixelsOf = (f: Size): [number, number] => [f.width * PX_PER[f.unit], f.height * PX_PER[f.unit]];

/** Names of lines by the template. */
export function templateNames(lines: readonly Item[], template: string, runs: ReadonlyMap<string, Run>):
	string[] {
	const runOf = (l: Item) => runs.get(l.id.split('\n')[0]!);
	const values = (key: string) => lines.flatMap((l) => runOf(l)?.params[key] ?? []);
	const texts = new Map([...template.matchAll(/\{([^{}]+)\}/g)].map(([, k]) => [k!, paramTexts(values(k!))]));
	return lines.map((l) => (l.id.startsWith(GROUP) || !runOf(l) ? l.name
		: template.replace(/\{([^{}]+)\}/g, (_, k: string) => {
			const value = runOf(l)!.params[k];
			return value !== undefined ? texts.get(k)!(value) : k === 'name' ? l.name : '–';
		})));
}

/** The lines as they are drawn, and the axis of x. */
function dataOf(data: LineData, f: FigureSettings, items: readonly ChartLine[]): LineData {
	const bare = { ...!f.flags && { flags: [] },
		...!f.marks && { end: 'none' as const, badX: null, badToEnd: false } };
	const lines = items.map((l) => ({ ...l, ...bare, label: undefined }));
	const xs = lines.flatMap((l) => l.xs.filter((x) => !f.logX || x > 0));
	const first = f.logX && data.from <= 0 ? xs.reduce((a, b) => Math.min(a, b), Infinity) : data.from;
	return { ...data, lines, from: f.from ?? first, to: f.to ?? data.to, logX: f.logX, log: f.log,
		limits: [f.low, f.high] };
}

/** Says what is wrong with settings; '' if nothing. */
export function problemOf(f: FigureSettings, { range, items }: Source): string {
	const [from, to] = [f.from ?? range[0], f.to ?? range[1]];
	if (from >= to) return 'X: the first value must be below the last.';
	if (f.low !== null && f.high !== null && f.low >= f.high) return 'Y: the first value must be below the last.';
	if (f.logX && (to <= 0 || (f.from ?? 1) <= 0)) return 'X: a log axis needs values above 0.';
	if (f.log && (f.low ?? 1) <= 0) return 'Y: a log axis needs values above 0.';
	if (f.hidden.length >= items.length) return 'All are hidden: show one.';
	return '';
}

export class Figure {
	private readonly plot: Plot;
	private items: readonly Item[] = [];
	private around: Surround = { title: '', x: '', y: '', legend: [], back: '' };
	private output: Output = {};
	/** Number of names for which a legend has no room. */
	lost = 0;

	constructor(private readonly el: HTMLElement, private readonly source: Source) {
		for (const [k, v] of Object.entries(source.style)) el.style.setProperty(k, v);
		this.plot = source.plot(el);
	}

	destroy(): void {
		this.plot.chart.destroy();
	}

	/** Draws; returns the picture as SVG, '' if the size is too small. */
	draw(f: FigureSettings, names: readonly string[]): string {
		const scale = (f.font * PX_PER_PT) / TEXT_PX;
		const view = pixelsOf(f).map((v) => v / scale) as [number, number];
		const [width, height] = view;
		const isLines = this.source.kind === 'lines';
		const items = this.items = this.source.items.map((l, i) => ({ ...l, name: f.names[l.id] || names[i]!,
			colour: f.colours[l.id] ?? l.colour })).filter((l) => !f.hidden.includes(l.id));
		const ends = Math.max(ENDS_LEAST, Math.ceil(nameWidth(items.map((l) => l.name)) + NAME_MARGIN));
		const where = f.legend !== 'auto' ? f.legend
			: items.length < 2 || !isLines && items.length > NAMED_MOST ? 'none'
			: isLines && ends <= width * ENDS_SHARE ? 'ends' : 'below';
		const rows = where === 'below' ? rowsOf(items, width) : [];
		const around = { title: f.title, x: isLines ? f.x : '', y: isLines ? f.y : '', legend: rows,
			back: f.clear ? '' : '#ffffff' };
		this.lost = 0;
		while (padsOf(around).bottom > height * LEGEND_SHARE && rows.length) this.lost += rows.pop()!.length;
		const { left, top, bottom } = padsOf(this.around = around);
		const [w, h] = [Math.ceil(width - left), Math.ceil(height - top - bottom)];
		if (w < SIDE_LEAST || h < SIDE_LEAST) return '';
		this.el.style.width = w + 'px';
		this.el.style.height = h + 'px';
		const { chart } = this.plot;
		this.plot.set(f, items, where === 'ends' ? Math.min(ends, w / 2) : 0);
		chart.redraw();
		const g = document.createElement('canvas').getContext('2d')!;
		const pane: (Painted & Partial<Pane>) | null = chart.paint(g);
		if (!pane) return '';
		if (!f.marks && pane.range) pane.range.outside.length = 0;
		this.output = { view, scale: scale * f.times, size: [f.width + f.unit, f.height + f.unit] };
		return svgOf(chart, pane, around, this.output);
	}

	/** null before it is drawn. */
	png(): Promise<Blob | null> {
		return pictureOf(this.plot.chart, this.around, 'png', this.output);
	}

	csv(f: FigureSettings): unknown[][] {
		return this.plot.rows(f, this.items);
	}
}

/** Prints a figure alone, on a page of its size. */
export function printFigure(svg: Element, f: FigureSettings): void {
	const sheet = new CSSStyleSheet();
	sheet.replaceSync(`@page { size: ${f.width}${f.unit} ${f.height}${f.unit}; margin: 0; }
@media print { html, body { height: auto; background: none; } body > :not(.printed) { display: none !important; } }
.printed { display: none; } @media print { .printed { display: block; } .printed > svg { display: block; } }`);
	const box = document.createElement('div');
	box.className = 'printed';
	box.append(svg);
	document.body.append(box);
	document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
	addEventListener('afterprint', () => {
		box.remove();
		document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => s !== sheet);
	}, { once: true });
	print();
}
