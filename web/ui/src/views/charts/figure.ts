// SPDX-License-Identifier: Apache-2.0
// A chart as a figure for a paper or a slide: its settings, and the chart that draws them, in a hidden element of the
// figure's size. Text has the size of FONT there; the picture is scaled so that it is that of the settings.
import { csvCell, paramTexts } from '../../base/format.ts';
import { smooth } from '../../base/series.ts';
import type { Run } from '../../base/types.ts';
import { LineChart, NAME_MARGIN, nameWidth, type ChartLine, type LineData, type LineEvents }
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

/** What a figure is made from: a chart as it was. */
export interface Source {
	data: LineData;
	events: LineEvents;
	/** Custom properties of the light theme. */
	style: Readonly<Record<string, string>>;
}

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

/** The chart in the light theme, as on paper; null before it is drawn. metric: what all its lines are of; '': other
 * things, which are as precise as they are drawn. */
export async function sourceOf(chart: LineChart, metric: string): Promise<Source | null> {
	await setPrinted(true);
	const { data, ev: events } = chart;
	const css = getComputedStyle(document.documentElement);
	const style = Object.fromEntries(COLOURS.map((c) => ['--' + c, css.getPropertyValue('--' + c)]));
	await setPrinted(false);
	if (!data || !metric) return data && { data, events, style };
	return { data: { ...data, lines: await exactly(data.lines, metric) }, events, style };
}

/** What a chart begins with; name is that of its values. */
export function firstSettings({ data }: Source, name: string): FigureSettings {
	return { title: '', x: data.xLabel, y: name, from: null, to: null, low: data.limits?.[0] ?? null,
		high: data.limits?.[1] ?? null, logX: data.logX ?? false, log: data.log, template: '{name}', names: {},
		colours: {}, hidden: [], legend: 'auto', marks: true,
		flags: data.lines.length <= FLAGGED_MOST, clear: false, times: 2, ...PRESETS['Paper column'] };
}

/** Width and height in CSS pixels. */
export const pixelsOf = (f: Size): [number, number] => [f.width * PX_PER[f.unit], f.height * PX_PER[f.unit]];

/** Names of lines by the template. */
export function templateNames(lines: readonly ChartLine[], template: string, runs: ReadonlyMap<string, Run>):
	string[] {
	const runOf = (l: ChartLine) => runs.get(l.id.split('\n')[0]!);
	const values = (key: string) => lines.flatMap((l) => runOf(l)?.params[key] ?? []);
	const texts = new Map([...template.matchAll(/\{([^{}]+)\}/g)].map(([, k]) => [k!, paramTexts(values(k!))]));
	return lines.map((l) => (l.id.startsWith(GROUP) || !runOf(l) ? l.name
		: template.replace(/\{([^{}]+)\}/g, (_, k: string) => {
			const value = runOf(l)!.params[k];
			return value !== undefined ? texts.get(k)!(value) : k === 'name' ? l.name : '–';
		})));
}

/** The lines as they are drawn, and the axis of x. */
function dataOf({ data }: Source, f: FigureSettings, names: readonly string[]): LineData {
	const bare = { ...!f.flags && { flags: [] },
		...!f.marks && { end: 'none' as const, badX: null, badToEnd: false } };
	const lines = data.lines.map((l, i) => ({ ...l, ...bare, name: f.names[l.id] || names[i]!, label: undefined,
		colour: f.colours[l.id] ?? l.colour })).filter((l) => !f.hidden.includes(l.id));
	const xs = lines.flatMap((l) => l.xs.filter((x) => !f.logX || x > 0));
	const first = f.logX && data.from <= 0 ? xs.reduce((a, b) => Math.min(a, b), Infinity) : data.from;
	return { ...data, lines, from: f.from ?? first, to: f.to ?? data.to, logX: f.logX, log: f.log,
		limits: [f.low, f.high] };
}

/** Says what is wrong with settings; '' if nothing. */
export function problemOf(f: FigureSettings, { data }: Source): string {
	const [from, to] = [f.from ?? data.from, f.to ?? data.to];
	if (!(from < to)) return 'X: the first value must be below the last.';
	if (f.low !== null && f.high !== null && f.low >= f.high) return 'Y: the first value must be below the last.';
	if (f.logX && (to <= 0 || (f.from ?? 1) <= 0)) return 'X: a log axis needs values above 0.';
	if (f.log && (f.low ?? 1) <= 0) return 'Y: a log axis needs values above 0.';
	if (f.hidden.length >= data.lines.length) return 'All lines are hidden: show one.';
	return '';
}

export class Figure {
	private readonly chart: LineChart;
	private around: Surround = { title: '', x: '', y: '', legend: [], back: '' };
	private output: Output = {};
	/** Number of names for which a legend has no room. */
	lost = 0;

	constructor(private readonly el: HTMLElement, private readonly source: Source) {
		for (const [k, v] of Object.entries(source.style)) el.style.setProperty(k, v);
		const nothing = () => {};
		this.chart = new LineChart(el, { ...source.events, near: undefined, onCursor: nothing, onHover: nothing,
			onZoom: nothing, onReset: nothing, onOpen: nothing });
	}

	destroy(): void {
		this.chart.destroy();
	}

	/** Draws; returns the picture as SVG, '' if the size is too small. */
	draw(f: FigureSettings, names: readonly string[]): string {
		const scale = (f.font * PX_PER_PT) / TEXT_PX;
		const view = pixelsOf(f).map((v) => v / scale) as [number, number];
		const [width, height] = view;
		const data = dataOf(this.source, f, names);
		const ends = Math.max(ENDS_LEAST, Math.ceil(nameWidth(data.lines.map((l) => l.name)) + NAME_MARGIN));
		const where = f.legend !== 'auto' ? f.legend : data.lines.length < 2 ? 'none'
			: ends <= width * ENDS_SHARE ? 'ends' : 'below';
		const rows = where === 'below' ? rowsOf(data.lines, width) : [];
		const around = { title: f.title, x: f.x, y: f.y, legend: rows, back: f.clear ? '' : '#ffffff' };
		this.lost = 0;
		while (padsOf(around).bottom > height * LEGEND_SHARE && rows.length) this.lost += rows.pop()!.length;
		const { left, top, bottom } = padsOf(this.around = around);
		const [w, h] = [Math.ceil(width - left), Math.ceil(height - top - bottom)];
		if (w < SIDE_LEAST || h < SIDE_LEAST) return '';
		this.el.style.width = w + 'px';
		this.el.style.height = h + 'px';
		this.chart.set({ ...data, xLabel: '', gutter: where === 'ends' ? Math.min(ends, w / 2) : 0 });
		this.chart.redraw();
		const pane = this.chart.paint(document.createElement('canvas').getContext('2d')!);
		if (!pane) return '';
		if (!f.marks) pane.range.outside.length = 0;
		this.output = { view, scale: scale * f.times, size: [f.width + f.unit, f.height + f.unit] };
		return svgOf(this.chart, pane, around, this.output);
	}

	/** null before it is drawn. */
	png(): Promise<Blob | null> {
		return pictureOf(this.chart, this.around, 'png', this.output);
	}

	/** The drawn points of all lines. */
	csv(): string {
		const { lines, from, to, log } = this.chart.data!;
		const banded = lines.some((l) => l.band);
		const isDrawn = (x: number, y: number) =>
			x >= from && x <= to && Number.isFinite(y) && !(log && y <= 0);
		const rows = (name: string, { xs, ys }: Pick<ChartLine, 'xs' | 'ys'>, band?: ChartLine['band']) =>
			xs.flatMap((x, i) => (!isDrawn(x, ys[i]!) ? [] : [[csvCell(name), x, ys[i],
				...banded ? [band?.low[i] ?? '', band?.high[i] ?? ''] : []].join()]));
		const all = lines.flatMap((l) => [...rows(l.name, l, l.band), ...l.smooth
			? rows(`${l.name} (${l.smooth.means ? 'means' : 'smoothed'})`, l.smooth) : []]);
		const head = ['line', this.around.x || 'x', this.around.y || 'y', ...banded ? ['low', 'high'] : []];
		return [head.map(csvCell).join(), ...all].join('\n') + '\n';
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
