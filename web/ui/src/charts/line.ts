// A line chart of many runs. uPlot gives axes, ticks and the zoom selection; the lines, end marks, names and the
// highlighted run are drawn here on two canvases above it, so that a hover never redraws all lines.
// Knows nothing of runs, state or requests: lines in, events out. drawn() says what is on the screen, for tests and
// for the text alternative.
import uPlot from 'uplot';
import { distanceTo, FEW, fitRange, lastPoint, logTicks, packRows, snapX, spreadLabels, yAt } from './geometry.ts';
import type { ChartLine, Range } from './geometry.ts';

export interface LineData {
	lines: ChartLine[];
	/** x range of the axis. */
	from: number;
	to: number;
	log: boolean;
	full: boolean;
	xLabel: string;
	/** x counts things: no ticks between whole numbers. */
	whole: boolean;
	/** Width for the names at the line ends; 0 leaves them out. */
	gutter: number;
}

export interface LineEvents {
	formatX(x: number): string;
	formatY(y: number): string;
	/** The pointer or the arrow keys stand at x, or have left. */
	onCursor(x: number | null): void;
	onHover(id: string | null): void;
	onZoom(from: number, to: number): void;
	onReset(): void;
	onOpen(id: string): void;
}

export interface Drawn {
	lo: number;
	hi: number;
	from: number;
	to: number;
	lines: { id: string; colour: string; dash: number[]; points: number; top: number; topX: number; topPixel: number; bottom: number }[];
	/** Everything drawn besides lines: hollow ends, crosses, arrows, flags; with the value or the words. */
	marks: { id: string; kind: string; x: number; y: number | null; text: string }[];
	names: string[];
}

interface Theme {
	text: string;
	dim: string;
	grid: string;
	back: string;
	bad: string;
	font: string;
}

interface Label {
	id: string;
	y: number;
	at: number;
	text: string;
	colour: string;
}

const FONT = '11px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", Arial, sans-serif';
/** Share of the text colour in a name, so that pale lines have readable names. */
const INK = 0.28;
const NEAR_PX = 24;
const SNAP_PX = 12;
const LABELS_MAX = 24;
const WHOLE = [1, 2, 5].flatMap((m) => Array.from({ length: 16 }, (_, e) => m * 10 ** e)).sort((a, b) => a - b);
const LANES = 3;
/** A line that ends before this share of the axis and has a flag is named by the flag, not at the right edge. */
const EARLY = 0.96;

function themeOf(el: HTMLElement): Theme {
	const css = getComputedStyle(el);
	const get = (n: string) => css.getPropertyValue(n).trim();
	return { text: get('--text'), dim: get('--dim'), grid: get('--grid'), back: get('--panel'), bad: get('--bad'), font: FONT };
}

/** Both colours as #rrggbb; anything else comes back unchanged. */
function mix(a: string, b: string, share: number): string {
	if (!/^#[0-9a-f]{6}$/i.test(a) || !/^#[0-9a-f]{6}$/i.test(b)) return a;
	const part = (s: string, i: number) => parseInt(s.slice(i, i + 2), 16);
	return '#' + [1, 3, 5].map((i) => Math.round(part(a, i) * (1 - share) + part(b, i) * share).toString(16).padStart(2, '0')).join('');
}

export class LineChart {
	private plot: uPlot | null = null;
	private data: LineData | null = null;
	private range: Range = { lo: 0, hi: 1, outside: [] };
	private theme: Theme;
	/** The colours must be read again: done in the frame that draws, when the page has its new style. */
	private stale = false;
	private readonly base: HTMLCanvasElement;
	private readonly over: HTMLCanvasElement;
	private labels: Label[] = [];
	private marks: Drawn['marks'] = [];
	private lit: string | null = null;
	private at: number | null = null;
	private laneRows = 0;
	private frame = 0;
	private shape = '';
	private readonly watch: ResizeObserver;
	private hoverId: string | null = null;

	constructor(private readonly el: HTMLElement, private readonly ev: LineEvents) {
		this.theme = themeOf(el);
		this.base = document.createElement('canvas');
		this.over = document.createElement('canvas');
		this.base.className = 'chart-lines';
		this.over.className = 'chart-over';
		this.watch = new ResizeObserver(() => this.later());
		this.watch.observe(el);
		el.addEventListener('keydown', this.key);
		el.addEventListener('mousemove', this.move);
		el.addEventListener('mouseleave', this.leave);
		el.addEventListener('dblclick', this.reset);
		el.addEventListener('click', this.click);
		(el as HTMLElement & { chart?: LineChart }).chart = this;
	}

	set(data: LineData): void {
		this.data = data;
		this.later();
	}

	/** Brings one line forward; null brings all back. */
	highlight(id: string | null): void {
		if (id === this.lit) return;
		this.lit = id;
		this.drawOver();
	}

	/** Shows the cursor at x, wherever it came from. */
	cursor(x: number | null): void {
		if (x === this.at) return;
		this.at = x;
		this.drawOver();
	}

	/** Colours have changed. */
	retheme(): void {
		this.stale = true;
		this.later();
	}

	destroy(): void {
		cancelAnimationFrame(this.frame);
		this.watch.disconnect();
		this.plot?.destroy();
		this.plot = null;
		for (const [t, f] of [['keydown', this.key], ['mousemove', this.move], ['mouseleave', this.leave],
			['dblclick', this.reset], ['click', this.click]] as const) this.el.removeEventListener(t, f as EventListener);
	}

	drawn(): Drawn | null {
		const d = this.data;
		const u = this.plot;
		if (!d || !u) return null;
		const lines = d.lines.map((l) => {
			let top = -Infinity;
			let topX = NaN;
			let bottom = Infinity;
			let points = 0;
			for (let i = 0; i < l.ys.length; i++) {
				const y = l.ys[i]!;
				if (!Number.isFinite(y) || l.xs[i]! < d.from || l.xs[i]! > d.to) continue;
				points++;
				bottom = Math.min(bottom, y);
				if (y > top) {
					top = y;
					topX = l.xs[i]!;
				}
			}
			return { id: l.id, colour: l.colour, dash: l.dash, points, top, topX, topPixel: points ? u.valToPos(top, 'y') : NaN, bottom };
		});
		return { lo: this.range.lo, hi: this.range.hi, from: d.from, to: d.to, lines, marks: this.marks,
			names: this.labels.map((l) => l.text) };
	}

	private later(): void {
		if (this.frame) return;
		this.frame = requestAnimationFrame(() => {
			this.frame = 0;
			this.layout();
		});
	}

	/** Fits the axis, makes or updates uPlot, draws. */
	private layout(): void {
		const d = this.data;
		const width = this.el.clientWidth;
		const height = this.el.clientHeight;
		if (!d || width < 40 || height < 40) return;
		if (this.stale) this.theme = themeOf(this.el);
		this.stale = false;
		this.range = fitRange(d.lines, d.from, d.to, d.log, d.full);
		this.laneRows = this.flagRows(width);
		const shape = [d.log, d.whole, d.gutter, this.laneRows, d.xLabel].join();
		if (!this.plot || shape !== this.shape) {
			this.plot?.destroy();
			this.shape = shape;
			this.plot = this.make(width, height, d);
		} else if (this.plot.width !== width || this.plot.height !== height) {
			this.plot.setSize({ width, height });
		}
		this.plot.setData([[d.from, d.to], [null, null]], true);
		this.plot.redraw(false, true);
	}

	private make(width: number, height: number, d: LineData): uPlot {
		const axis = { stroke: () => this.theme.dim, font: FONT, ticks: { show: false }, labelGap: 0 };
		const grid = { stroke: () => this.theme.grid, width: 1 };
		const u = new uPlot({
			width, height,
			padding: [8 + this.laneRows * 14, d.gutter || 10, 0, 0],
			legend: { show: false },
			cursor: { x: false, y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
			scales: {
				x: { time: false, range: () => [this.data!.from, this.data!.to] },
				y: { distr: d.log ? 3 : 1, range: () => [this.range.lo, this.range.hi] },
			},
			axes: [
				{ ...axis, grid, size: 24, gap: 4, space: 56, ...(d.whole ? { incrs: WHOLE } : {}), values: (_u, s) => s.map((v) => this.ev.formatX(v)) },
				{ ...axis, grid, size: 46, gap: 4, space: 32, ...(d.log ? { splits: this.logSplits, filter: (_u: uPlot, s: number[]) => s } : {}), values: (_u, s, _a, _space, incr) => this.ticks(s, incr) },
			],
			series: [{}, { paths: () => null, points: { show: false } }],
			hooks: {
				draw: [() => this.drawAll()],
				setSelect: [(p) => this.selected(p)],
			},
		}, [[d.from, d.to], [null, null]], this.el);
		const wrap = u.root.querySelector('.u-wrap')!;
		wrap.insertBefore(this.base, u.over);
		wrap.insertBefore(this.over, u.over);
		return u;
	}

	private readonly logSplits = (u: uPlot, _axis: number, lo: number, hi: number): number[] =>
		logTicks(lo, hi, u.bbox.height / (devicePixelRatio || 1) / 32);

	/** One number of decimals for a whole axis. */
	private ticks(splits: (number | null)[], incr: number): string[] {
		const after = (v: number) => (String(v).split('.')[1] ?? '').length;
		const all = splits.filter((v): v is number => v !== null);
		const decade = this.data!.log && Math.max(...all) < 10 * Math.min(...all);
		const digits = decade ? Math.max(...all.map(after)) : this.data!.log || incr < 1e-6 ? null : after(incr);
		return splits.map((v) => v === null ? '' : digits === null || Math.abs(v) >= 1e6 ? this.ev.formatY(v)
			: v.toFixed(digits).replace('-', '−'));
	}

	private selected(u: uPlot): void {
		if (u.select.width < 4) return;
		const from = u.posToVal(u.select.left, 'x');
		const to = u.posToVal(u.select.left + u.select.width, 'x');
		u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
		if (to > from) this.ev.onZoom(from, to);
	}

	private prepare(c: HTMLCanvasElement): CanvasRenderingContext2D {
		const r = devicePixelRatio || 1;
		const w = Math.round(this.el.clientWidth * r);
		const h = Math.round(this.el.clientHeight * r);
		if (c.width !== w || c.height !== h) {
			c.width = w;
			c.height = h;
			c.style.width = this.el.clientWidth + 'px';
			c.style.height = this.el.clientHeight + 'px';
		}
		const g = c.getContext('2d')!;
		g.setTransform(r, 0, 0, r, 0, 0);
		g.clearRect(0, 0, w, h);
		g.font = FONT;
		g.lineJoin = 'round';
		g.textBaseline = 'middle';
		return g;
	}

	private get box(): { left: number; top: number; width: number; height: number } {
		const r = devicePixelRatio || 1;
		const b = this.plot!.bbox;
		return { left: b.left / r, top: b.top / r, width: b.width / r, height: b.height / r };
	}

	private readonly px = (x: number): number => this.box.left + this.plot!.valToPos(x, 'x');

	private readonly py = (y: number): number => this.box.top + this.plot!.valToPos(y, 'y');

	private drawAll(): void {
		if (!this.plot || !this.data) return;
		const g = this.prepare(this.base);
		const d = this.data;
		this.marks = [];
		g.save();
		this.clip(g);
		for (let i = d.lines.length - 1; i >= 0; i--) this.drawLine(g, d.lines[i]!, 1.4);
		g.restore();
		for (const l of d.lines) this.drawEnd(g, l);
		this.drawOutside(g);
		this.drawFlags(g, null);
		this.layoutLabels();
		for (const l of this.labels) this.drawLabel(g, l, false);
		g.fillStyle = this.theme.dim;
		if (d.gutter > 40) g.fillText(d.xLabel, this.box.left + this.box.width + 20, this.box.top + this.box.height + 12);
		this.drawOver();
		this.el.dataset.drawn = String(Number(this.el.dataset.drawn ?? 0) + 1);
	}

	private clip(g: CanvasRenderingContext2D): void {
		const b = this.box;
		g.beginPath();
		g.rect(b.left - 1, b.top - 1, b.width + 2, b.height + 2);
		g.clip();
	}

	private drawLine(g: CanvasRenderingContext2D, l: ChartLine, width: number): void {
		g.strokeStyle = l.colour;
		g.fillStyle = l.colour;
		if (l.smooth) {
			g.globalAlpha = 0.25;
			g.lineWidth = 1;
			g.setLineDash([]);
			this.trace(g, l.xs, l.ys);
			g.globalAlpha = 1;
			g.lineWidth = width + 0.4;
			g.setLineDash(l.dash);
			this.trace(g, l.smooth.xs, l.smooth.ys);
		} else {
			g.lineWidth = width;
			g.setLineDash(l.dash);
			this.trace(g, l.xs, l.ys);
		}
		g.setLineDash([]);
		if (l.xs.length <= FEW) this.dots(g, l, width);
	}

	private trace(g: CanvasRenderingContext2D, xs: number[], ys: number[]): void {
		const b = this.box;
		const u = this.plot!;
		const log = this.data!.log;
		let pen = false;
		g.beginPath();
		for (let i = 0; i < xs.length; i++) {
			const y = ys[i]!;
			if (!Number.isFinite(y) || (log && y <= 0)) {
				pen = false;
				continue;
			}
			const px = b.left + u.valToPos(xs[i]!, 'x');
			const py = b.top + u.valToPos(y, 'y');
			if (pen) g.lineTo(px, py);
			else g.moveTo(px, py);
			pen = true;
		}
		g.stroke();
	}

	private dots(g: CanvasRenderingContext2D, l: ChartLine, width: number): void {
		for (let i = 0; i < l.xs.length; i++) {
			if (!Number.isFinite(l.ys[i]!) || (this.data!.log && l.ys[i]! <= 0)) continue;
			g.beginPath();
			g.arc(this.px(l.xs[i]!), this.py(l.ys[i]!), l.xs.length === 1 ? 3 : 1.1 + width * 0.6, 0, 7);
			g.fill();
		}
	}

	/** A run that ended as NaN: hollow end and a cross on the axis; a failed one: a cross at its end. */
	private drawEnd(g: CanvasRenderingContext2D, l: ChartLine): void {
		const i = lastPoint(l.ys);
		const d = this.data!;
		g.strokeStyle = l.colour;
		g.lineWidth = 1.8;
		if (i >= 0 && l.badToEnd && this.inside(l.xs[i]!, l.ys[i]!)) {
			g.fillStyle = this.theme.back;
			g.beginPath();
			g.arc(this.px(l.xs[i]!), this.py(l.ys[i]!), 3.6, 0, 7);
			g.fill();
			g.stroke();
			this.marks.push({ id: l.id, kind: 'hollow-end', x: l.xs[i]!, y: l.ys[i]!, text: 'NaN follows' });
		}
		if (l.badX !== null && l.badX >= d.from && l.badX <= d.to) {
			this.cross(g, this.px(l.badX), this.box.top + this.box.height, 4);
			this.marks.push({ id: l.id, kind: 'nan-cross', x: l.badX, y: null, text: 'NaN' });
		}
		if (i >= 0 && l.end === 'failed' && this.inside(l.xs[i]!, l.ys[i]!)) {
			this.cross(g, this.px(l.xs[i]!), this.py(l.ys[i]!), 4);
			this.marks.push({ id: l.id, kind: 'failed-end', x: l.xs[i]!, y: l.ys[i]!, text: 'failed' });
		}
		if (i >= 0 && l.end === 'running' && this.inside(l.xs[i]!, l.ys[i]!)) {
			g.fillStyle = l.colour;
			g.beginPath();
			g.arc(this.px(l.xs[i]!), this.py(l.ys[i]!), 3, 0, 7);
			g.fill();
		}
	}

	private inside(x: number, y: number): boolean {
		const d = this.data!;
		return x >= d.from && x <= d.to && y >= this.range.lo && y <= this.range.hi;
	}

	private cross(g: CanvasRenderingContext2D, x: number, y: number, r: number): void {
		g.lineWidth = 2;
		g.beginPath();
		g.moveTo(x - r, y - r);
		g.lineTo(x + r, y + r);
		g.moveTo(x + r, y - r);
		g.lineTo(x - r, y + r);
		g.stroke();
	}

	/** Arrows at the edge for what the axis leaves out, with the value, and a tick that counts the runs. */
	private drawOutside(g: CanvasRenderingContext2D): void {
		const b = this.box;
		const out = this.range.outside;
		for (const o of out) {
			const l = this.data!.lines.find((x) => x.id === o.id)!;
			const x = Math.min(b.left + b.width - 6, Math.max(b.left + 6, this.px(o.x)));
			const up = o.side === 'top';
			const y = up ? b.top : b.top + b.height;
			const s = up ? 1 : -1;
			g.fillStyle = l.colour;
			g.beginPath();
			g.moveTo(x, y);
			g.lineTo(x - 5, y + s * 8);
			g.lineTo(x + 5, y + s * 8);
			g.fill();
			const text = this.ev.formatY(o.y);
			const left = x + 8 + g.measureText(text).width > b.left + b.width;
			this.halo(g, text, left ? x - 8 - g.measureText(text).width : x + 8, y + s * 6, l.colour);
			this.marks.push({ id: o.id, kind: 'arrow-' + o.side, x: o.x, y: o.y, text });
		}
		const n = new Set(out.map((o) => o.id)).size;
		if (!n) return;
		const text = n === 1 ? '1 run outside' : n + ' runs outside';
		const top = out[0]!.side === 'top';
		const y = top ? b.top + 7 : b.top + b.height - 7;
		this.halo(g, text, b.left + 6, y, this.theme.text);
		this.marks.push({ id: '', kind: 'outside', x: this.data!.from, y: null, text });
	}

	private halo(g: CanvasRenderingContext2D, text: string, x: number, y: number, colour: string): void {
		g.lineWidth = 3;
		g.strokeStyle = this.theme.back;
		g.strokeText(text, x, y);
		g.fillStyle = mix(colour, this.theme.text, INK);
		g.fillText(text, x, y);
	}

	private flagList(): { line: ChartLine; flag: ChartLine['flags'][number] }[] {
		const d = this.data!;
		return d.lines.flatMap((line) => line.flags
			.filter((f) => f.x >= d.from && f.x <= d.to)
			.map((flag) => ({ line, flag })));
	}

	/** Rows of the lane above the plot that the flags need, at most three. */
	private flagRows(width: number): number {
		const d = this.data!;
		const room = width - 56 - d.gutter;
		const boxes = this.flagList().map(({ line, flag }) => ({
			left: Math.max(0, Math.min(((flag.x - d.from) / (d.to - d.from)) * room, width - 60 - this.flagWidth(line, flag.text))),
			width: this.flagWidth(line, flag.text),
		}));
		return Math.min(LANES, new Set(packRows(boxes, LANES)).size);
	}

	private flagWords(line: ChartLine, text: string): string {
		return this.data!.lines.length > 1 ? line.name + ' ' + text : text;
	}

	private flagWidth(line: ChartLine, text: string): number {
		const g = this.base.getContext('2d')!;
		g.font = FONT;
		return g.measureText(this.flagWords(line, text)).width + 4;
	}

	/** Words in the lane above the plot, with a thin dotted line down to the place they speak of. */
	private drawFlags(g: CanvasRenderingContext2D, only: string | null): void {
		const list = this.flagList();
		const b = this.box;
		const boxes = list.map(({ line, flag }) => {
			const width = this.flagWidth(line, flag.text);
			const left = Math.min(this.px(flag.x) - 4, this.el.clientWidth - width - 2);
			return { left: Math.max(b.left, left), width };
		});
		const rows = packRows(boxes, Math.max(1, this.laneRows));
		list.forEach(({ line, flag }, i) => {
			if (only !== null && line.id !== only) return;
			const x = this.px(flag.x);
			const y = b.top - 8 - Math.max(0, rows[i]!) * 14;
			const down = flag.y !== null && this.inside(flag.x, flag.y) ? this.py(flag.y) : b.top + b.height;
			g.strokeStyle = line.colour;
			g.lineWidth = 1;
			g.setLineDash([1, 3]);
			g.beginPath();
			g.moveTo(x, rows[i]! < 0 ? b.top : y + 6);
			g.lineTo(x, down);
			g.stroke();
			g.setLineDash([]);
			if (rows[i]! >= 0) this.halo(g, this.flagWords(line, flag.text), boxes[i]!.left, y, line.colour);
			this.marks.push({ id: line.id, kind: 'flag-' + flag.kind, x: flag.x, y: flag.y, text: flag.text });
		});
	}

	/** Names at the line ends: those that reach furthest first, moved apart so that none overlap. */
	private layoutLabels(): void {
		const d = this.data!;
		this.labels = [];
		if (d.gutter < 40) return;
		const b = this.box;
		const want: Label[] = [];
		for (const l of d.lines) {
			const ys = l.smooth ? l.smooth.ys : l.ys;
			const xs = l.smooth ? l.smooth.xs : l.xs;
			let i = ys.length - 1;
			while (i >= 0 && (!Number.isFinite(ys[i]!) || xs[i]! > d.to)) i--;
			if (i < 0) continue;
			if (l.flags.length && xs[i]! < d.from + (d.to - d.from) * EARLY) continue;
			const edge = xs[ys.length - 1]! > d.to ? yAt(xs, ys, d.to) : null;
			const y = Math.min(b.top + b.height, Math.max(b.top, this.py(edge ?? ys[i]!)));
			if (Number.isFinite(y)) want.push({ id: l.id, y, at: y, text: l.name, colour: l.colour });
		}
		const shown = want.slice(0, Math.min(LABELS_MAX, Math.floor(b.height / 11) + 1));
		const at = spreadLabels(shown.map((l) => l.y), 13, b.top + 2, b.top + b.height - 4);
		shown.forEach((l, i) => (l.at = at[i]!));
		this.labels = shown;
	}

	private drawLabel(g: CanvasRenderingContext2D, l: Label, strong: boolean): void {
		const b = this.box;
		const x = b.left + b.width;
		g.strokeStyle = l.colour;
		g.globalAlpha = strong ? 1 : 0.5;
		g.lineWidth = 1;
		g.beginPath();
		g.moveTo(x + 2, l.y);
		g.lineTo(x + 10, l.at);
		g.stroke();
		g.globalAlpha = 1;
		g.font = strong ? 'bold ' + FONT : FONT;
		g.fillStyle = mix(l.colour, this.theme.text, INK);
		g.fillText(this.cut(g, l.text, this.data!.gutter - 16), x + 13, l.at);
		g.font = FONT;
	}

	/** Leaves out the middle: names differ at their ends more often than at their beginnings. */
	private cut(g: CanvasRenderingContext2D, text: string, width: number): string {
		if (g.measureText(text).width <= width) return text;
		const short = (n: number) => text.slice(0, Math.floor(n / 2)) + '…' + text.slice(text.length - Math.ceil(n / 2));
		let n = text.length - 1;
		while (n > 2 && g.measureText(short(n)).width > width) n--;
		return short(n);
	}

	/** The run in front, the cursor and the points under it. */
	private drawOver(): void {
		if (!this.plot || !this.data) return;
		const g = this.prepare(this.over);
		const d = this.data;
		const line = d.lines.find((l) => l.id === this.lit);
		this.base.style.opacity = line ? '0.28' : '1';
		this.el.dataset.lit = line ? line.id : '';
		if (this.at !== null && this.at >= d.from && this.at <= d.to) this.drawCursor(g, this.at);
		if (!line) return;
		g.save();
		this.clip(g);
		this.drawLine(g, line, 2.6);
		g.restore();
		const keep = this.marks;
		this.marks = [];
		this.drawEnd(g, line);
		this.drawFlags(g, line.id);
		this.marks = keep;
		const label = this.labels.find((l) => l.id === line.id);
		if (label) this.drawLabel(g, label, true);
	}

	private drawCursor(g: CanvasRenderingContext2D, x: number): void {
		const b = this.box;
		const px = this.px(x);
		g.strokeStyle = this.theme.dim;
		g.lineWidth = 1;
		g.setLineDash([3, 3]);
		g.beginPath();
		g.moveTo(px, b.top);
		g.lineTo(px, b.top + b.height);
		g.stroke();
		g.setLineDash([]);
		for (const l of this.data!.lines) {
			const y = yAt(l.xs, l.ys, x);
			if (y === null || !this.inside(x, y)) continue;
			g.fillStyle = l.colour;
			g.beginPath();
			g.arc(px, this.py(y), 2.4, 0, 7);
			g.fill();
		}
		const text = this.ev.formatX(x);
		const w = g.measureText(text).width;
		const left = Math.min(b.left + b.width - w - 4, Math.max(b.left, px - w / 2));
		g.fillStyle = this.theme.back;
		g.fillRect(left - 10, b.top + b.height + 3, w + 20, 18);
		g.fillStyle = this.theme.text;
		g.fillText(text, left, b.top + b.height + 12);
	}

	private readonly move = (e: MouseEvent): void => {
		if (!this.plot || !this.data) return;
		const r = this.el.getBoundingClientRect();
		const x = e.clientX - r.left;
		const y = e.clientY - r.top;
		const b = this.box;
		if (x > b.left + b.width + 4) {
			const l = this.labels.find((k) => Math.abs(k.at - y) < 7);
			this.hover(l ? l.id : null);
			return;
		}
		if (x < b.left || y < b.top - 20 || y > b.top + b.height + 20) return;
		const v = this.plot.posToVal(x - b.left, 'x');
		const id = this.closest(v, x, y);
		const line = this.data.lines.find((l) => l.id === id) ?? this.data.lines[0];
		const at = { x: v, px: x, py: y, reach: this.reach(SNAP_PX) };
		this.ev.onCursor(line ? snapX(line.xs, line.ys, at, this.px, id === null ? () => y : this.py) : v);
		this.hover(id);
	};

	/** Pixels as a length on the x axis. */
	private reach(px: number): number {
		return ((this.data!.to - this.data!.from) * px) / (this.box.width || 1);
	}

	private closest(x: number, px: number, py: number): string | null {
		let best: string | null = null;
		let dist = NEAR_PX;
		const at = { x, px, py, reach: this.reach(NEAR_PX) };
		for (const l of this.data!.lines) {
			const d = distanceTo(l.smooth ? l.smooth.xs : l.xs, l.smooth ? l.smooth.ys : l.ys, at, this.px, this.py);
			if (d < dist) {
				dist = d;
				best = l.id;
			}
		}
		return best;
	}

	private hover(id: string | null): void {
		this.el.style.cursor = id !== null ? 'pointer' : '';
		if (id === this.hoverId) return;
		this.hoverId = id;
		this.ev.onHover(id);
	}

	private readonly leave = (): void => {
		this.ev.onCursor(null);
		this.hover(null);
	};

	private readonly reset = (): void => this.ev.onReset();

	private readonly click = (e: MouseEvent): void => {
		const b = this.plot ? this.box : null;
		const x = e.clientX - this.el.getBoundingClientRect().left;
		if (b && x > b.left + b.width + 4 && this.hoverId !== null) this.ev.onOpen(this.hoverId);
	};

	private readonly key = (e: KeyboardEvent): void => {
		const d = this.data;
		if (!d || e.ctrlKey || e.metaKey || e.altKey) return;
		const step = (d.to - d.from) / (e.shiftKey ? 20 : 200);
		const at = this.at ?? (d.from + d.to) / 2;
		const width = d.to - d.from;
		if (e.key === 'ArrowLeft') this.ev.onCursor(Math.max(d.from, at - step));
		else if (e.key === 'ArrowRight') this.ev.onCursor(Math.min(d.to, at + step));
		else if (e.key === 'Home') this.ev.onCursor(d.from);
		else if (e.key === 'End') this.ev.onCursor(d.to);
		else if (e.key === '+' || e.key === '=') this.ev.onZoom(at - width / 4, at + width / 4);
		else if (e.key === '-' || e.key === 'Escape') this.ev.onReset();
		else return;
		e.preventDefault();
	};
}
