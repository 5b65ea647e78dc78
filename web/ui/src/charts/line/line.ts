// SPDX-License-Identifier: Apache-2.0
// Line chart of many runs on three canvases: axes, lines, and an overlay that follows the pointer, so that a hover
// never redraws all lines; a tooltip lists the values at the cursor. Takes lines, emits events. drawn() returns what is
// on the screen, for tests and the text alternative.
import { boxOf, drawAxes, labelsY, ticksX } from './axes.ts';
import { Chart, type Box } from '../base/chart.ts';
import { drawCursor, drawSelection } from './cursor.ts';
import { distanceTo, fitRange, lastPoint, snapX, type ChartLine } from './geometry.ts';
import { blank } from '../base/ink.ts';
import { drawEnd, drawLine } from './lines.ts';
import { drawFlags, drawNotOnLog, drawOutside, flagAt, flagRows, LANE } from './marks.ts';
import { drawLabel, labelsOf, type Label } from './names.ts';
import { clip, mapsOf, type LineData, type LineEvents, type Mark, type Pane } from './pane.ts';
import { Near } from './near.ts';
import { nextX, readLines, snapTo, type Reading } from './read.ts';
import { Tip } from './tip.ts';
import { tipText } from './tiptext.ts';

interface DrawnLine {
	id: string;
	colour: string;
	dash: number[];
	points: number;
	top: number;
	topX: number;
	/** From the top of the plot area. */
	topPixel: number;
	bottom: number;
}

interface Drawn {
	lo: number;
	hi: number;
	from: number;
	to: number;
	/** Position of the cursor. */
	at: number | null;
	/** Plot area in pixels of the element. */
	box: Box;
	lines: DrawnLine[];
	marks: Mark[];
	names: string[];
	/** Labels of the ticks. */
	ticks: string[];
	ticksY: string[];
}

const NEAR_PX = 24;
const SNAP_PX = 12;
/** Keys that move the cursor, and where. */
const WALKS: Record<string, 1 | -1> = { ArrowLeft: -1, ArrowRight: 1 };
/** Pixels from the plot to the end of the dashes in front of names. */
const DASH_PX = 12;
/** Shorter drags count as clicks. */
const DRAG_PX = 4;
/** Elements that use the arrow keys themselves. */
const OWNERS = ['input', 'textarea', 'select', '[contenteditable]', '[role=menu]', '[data-chart]'];

function drawnLine(l: ChartLine, p: Pane): DrawnLine {
	let top = -Infinity;
	let topX = NaN;
	let bottom = Infinity;
	let points = 0;
	for (let i = 0; i < l.ys.length; i++) {
		const y = l.ys[i]!;
		if (!Number.isFinite(y) || l.xs[i]! < p.d.from || l.xs[i]! > p.d.to) continue;
		points++;
		bottom = Math.min(bottom, y);
		if (y > top) {
			top = y;
			topX = l.xs[i]!;
		}
	}
	const topPixel = points ? p.y(top) - p.box.top : NaN;
	return { id: l.id, colour: l.colour, dash: l.dash, points, top, topX, topPixel, bottom };
}

export class LineChart extends Chart<LineData, LineEvents> {
	private pane: Pane | null = null;
	private readonly axes: HTMLCanvasElement;
	private labels: Label[] = [];
	private marks: Mark[] = [];
	private at: number | null = null;
	private rows = 0;
	/** The pointer rests on the chart. */
	private under = false;
	/** Pixels of a drag. */
	private drag: [number, number] | null = null;
	private readonly tip: Tip;
	private readonly near: Near;
	/** The last movement of the pointer. */
	private moved: PointerEvent | null = null;
	/** What reads the values here, with the height of the pointer; null: the cursor is elsewhere. */
	private reader: { by: 'pointer' | 'touch' | 'keys'; py: number | null; stays?: boolean } | null = null;

	constructor(el: HTMLElement, ev: LineEvents) {
		super(el, ev);
		this.axes = this.layer('chart-axes');
		el.prepend(this.axes);
		this.tip = new Tip(el, this.stepOnce);
		this.near = new Near(ev.near, this.reread);
		this.listen({
			keydown: this.key, pointermove: this.move, pointerleave: this.leave, pointerdown: this.down,
			pointerup: this.up, pointercancel: this.cancel, dblclick: this.reset, click: this.click,
			blur: this.blur,
		});
		this.listenOutside({ pointerdown: this.elsewhere, scroll: this.elsewhere, keydown: this.keyElsewhere });
	}

	/** Shows the cursor at x. */
	cursor(x: number | null): void {
		if (x === this.at) return;
		this.at = x;
		this.drawOver();
	}

	override destroy(): void {
		super.destroy();
		this.tip.remove();
		this.near.stop();
		this.pane = null;
	}

	drawn(): Drawn | null {
		const p = this.pane;
		return p && {
			lo: p.range.lo, hi: p.range.hi, from: p.d.from, to: p.d.to, at: this.at, box: p.box,
			marks: this.marks,
			lines: p.d.lines.map((l) => drawnLine(l, p)), names: this.labels.map((l) => l.text),
			ticks: ticksX(p).map(p.formatX), ticksY: labelsY(p),
		};
	}

	paint(g: CanvasRenderingContext2D): Pane | null {
		const p = this.pane;
		if (!p) return null;
		drawAxes(g, p);
		this.drawLines(g, p);
		return p;
	}

	/** Fits the axis to the lines and the element, and draws. */
	protected draw(): void {
		const d = this.data;
		const width = this.el.clientWidth;
		const height = this.el.clientHeight;
		this.near.keep(d?.lines ?? []);
		if (!d || width < 40 || height < 40) return;
		if (!d.lines.some((l) => l.badX !== null || lastPoint(l.ys) >= 0)) return this.clear(width, height);
		const g = this.axes.getContext('2d')!;
		const range = fitRange(d.lines, d);
		this.rows = flagRows(g, d, width);
		const box = boxOf(g, d, range, { width, height, lanes: this.rows * LANE }, this.ev.formatY);
		const { formatX, exactX: cursorX = formatX, formatY } = this.ev;
		this.pane = { d, range, box, width, height, theme: this.theme, formatX, cursorX, formatY,
			...mapsOf(d, range, box) };
		this.drawPane(this.pane);
	}

	/** Without any point there is nothing to measure: no axes. */
	private clear(width: number, height: number): void {
		for (const c of [this.axes, this.base, this.over]) blank(c, width, height);
		this.pane = null;
		this.tip.hide();
	}

	private drawPane(p: Pane): void {
		drawAxes(blank(this.axes, p.width, p.height), p);
		this.drawLines(blank(this.base, p.width, p.height), p);
		this.drawOver();
		this.el.dataset.drawn = String(Number(this.el.dataset.drawn ?? 0) + 1);
	}

	/** Draws the lines, their ends, flags and names. */
	private drawLines(g: CanvasRenderingContext2D, p: Pane): void {
		g.save();
		clip(g, p.box);
		for (let i = p.d.lines.length - 1; i >= 0; i--) drawLine(g, p, p.d.lines[i]!, 1.4);
		g.restore();
		this.marks = [
			...p.d.lines.flatMap((l) => drawEnd(g, p, l)), ...drawOutside(g, p), ...drawNotOnLog(g, p),
			...drawFlags(g, p, this.rows, null),
		];
		this.labels = labelsOf(g, p);
		for (const l of this.labels) drawLabel(g, p, l, false);
	}

	/** Draws the highlighted run, the cursor with its points, and the selection. */
	protected drawOver(): void {
		const p = this.pane;
		if (!p) return;
		const g = blank(this.over, p.width, p.height);
		const line = this.front(p.d.lines);
		if (this.drag) drawSelection(g, p, this.drag);
		if (line) this.drawFront(g, p, line);
		if (this.at === null || this.at < p.d.from || this.at > p.d.to) return this.tip.hide();
		const list = this.readings(p, this.at);
		drawCursor(g, p, this.at, list);
		this.tell(p, this.at, list);
	}

	/** Shows or hides the tooltip. */
	private tell(p: Pane, x: number, list: readonly Reading[]): void {
		if (!this.reader || this.drag || !list.length) return this.tip.hide();
		this.near.look(p, x);
		const y = this.reader.py ?? p.box.top + p.box.height / 2;
		this.tip.show(tipText(p, this.ev, { x, list, front: this.lit, py: y }),
			this.reader.stays ? null : { x: p.x(x), y }, this.reader.by);
	}

	private readings(p: Pane, x: number): Reading[] {
		return readLines(this.near.lines(p.d.lines, x), x);
	}

	/** Reads all points around the cursor: a pointer may be nearer to one that is not drawn. */
	private readonly reread = (): void => {
		if (this.reader?.by === 'pointer' && this.moved) this.move(this.moved);
		this.drawOver();
	};

	/** Moves the cursor, here and for those who listen. */
	private point(x: number | null): void {
		this.cursor(x);
		this.ev.onCursor(x);
	}

	private drawFront(g: CanvasRenderingContext2D, p: Pane, line: ChartLine): void {
		g.save();
		clip(g, p.box);
		const edge = { ...line, ...line.smooth, smooth: null, band: undefined, dash: [], colour: p.theme.back };
		// an edge around a dense line would cover the others
		const dense = edge.xs.length > p.box.width / 2;
		if (!dense) drawLine(g, p, edge, 6);
		drawLine(g, p, line, dense ? 1.8 : 2.8);
		g.restore();
		for (const l of p.d.lines) drawEnd(g, p, l);
		drawOutside(g, p);
		drawNotOnLog(g, p);
		drawFlags(g, p, this.rows, line.id);
		const label = this.labels.find((l) => l.id === line.id);
		if (label) drawLabel(g, p, label, true);
	}

	private readonly move = (e: PointerEvent): void => {
		const p = this.pane;
		if (!p) return;
		this.moved = e;
		this.under = true;
		const [px, py] = this.pixelsOf(e);
		const x = p.xAt(px);
		const b = p.box;
		if (this.drag) {
			this.drag = [this.drag[0], Math.min(b.left + b.width, Math.max(b.left, px))];
			this.drawOver();
		}
		const named = this.drag ? null : this.flagUnder(e);
		if (named) {
			this.reader = { by: e.pointerType === 'touch' ? 'touch' : 'pointer', py };
			this.point(named.flag.x);
			return this.hover(named.line.id);
		}
		if (px > b.left + b.width + 4 && !this.drag)
			return this.hover(this.labels.find((k) => Math.abs(k.at - py) < 7)?.id ?? null);
		if (px < b.left || px > b.left + b.width + 4 || py < b.top - 20 || py > b.top + b.height + 20) return;
		const id = this.closest(p, x, px, py);
		this.reader = { by: e.pointerType === 'touch' ? 'touch' : 'pointer', py };
		this.point(this.snap(p, id, { x, px, py, reach: this.reach(p, px, SNAP_PX), pixels: SNAP_PX }));
		this.hover(id);
	};

	/** The flag whose words are under the pointer. */
	private flagUnder(e: MouseEvent): ReturnType<typeof flagAt> {
		const p = this.pane;
		const at = this.pixelsOf(e);
		return p && at[1] < p.box.top ? flagAt(this.over.getContext('2d')!, p, this.rows, at) : null;
	}

	/** The position of a real point: the nearest in both directions on the line under the pointer, so that the tip
	 * of a spike can be selected, else the nearest in x of all lines. */
	private snap(p: Pane, id: string | null,
		at: { x: number; px: number; py: number; reach: number; pixels: number }): number {
		const lines = this.near.lines(p.d.lines, at.x);
		const line = lines.find((l) => l.id === id);
		const near = line ? snapX(line.xs, line.ys, at, p.x, p.y) : null;
		return near ?? snapTo(line ? [line] : lines, at.x, [p.d.from, p.d.to]) ?? at.x;
	}

	/** Converts a distance in pixels around a position to x units (the larger of both sides). */
	private reach(p: Pane, px: number, pixels: number): number {
		return p.xAt(px + pixels) - p.xAt(px);
	}

	private closest(p: Pane, x: number, px: number, py: number): string | null {
		let best: string | null = null;
		let dist = NEAR_PX;
		const at = { x, px, py, reach: this.reach(p, px, NEAR_PX) };
		for (const l of p.d.lines) {
			const { xs, ys } = l.smooth ?? l;
			const d = distanceTo(xs, ys, at, p.x, p.y);
			if (d < dist) {
				dist = d;
				best = l.id;
			}
		}
		return best;
	}

	protected override hover(id: string | null): void {
		this.el.style.cursor = id !== null ? 'pointer' : '';
		super.hover(id);
	}

	/** A finger that is lifted leaves what it has read. */
	private readonly leave = (e: PointerEvent): void => {
		this.under = false;
		if (this.drag || e.pointerType === 'touch') return;
		this.forget();
	};

	private forget(): void {
		this.reader = null;
		this.point(null);
		this.hover(null);
		this.tip.hide();
	}

	/** Ends the reading by keys, unless the window has lost the focus. */
	private readonly blur = (): void => {
		if (this.reader?.by === 'keys' && document.activeElement !== this.el) this.forget();
	};

	/** A tap or a scroll elsewhere ends the reading of a touch. */
	private readonly elsewhere = (e: Event): void => {
		if (this.reader?.by === 'touch' && !this.el.contains(e.target as Node)) this.forget();
	};

	/** Touch reads values and scrolls; only a mouse or a pen selects. */
	private readonly down = (e: PointerEvent): void => {
		const p = this.pane;
		if (e.pointerType === 'touch') this.move(e);
		if (!p || e.button !== 0 || e.pointerType === 'touch') return;
		const [px, py] = this.pixelsOf(e);
		if (px < p.box.left || px > p.box.left + p.box.width || py < p.box.top || py > p.box.top + p.box.height)
			return;
		this.drag = [px, px];
		this.el.setPointerCapture(e.pointerId);
	};

	private readonly up = (): void => {
		const p = this.pane;
		const drag = this.drag;
		this.cancel();
		if (!p || !drag || Math.abs(drag[1] - drag[0]) < DRAG_PX) return;
		this.hover(null); // a click follows and opens the hovered run
		this.ev.onZoom(p.xAt(Math.min(...drag)), p.xAt(Math.max(...drag)));
	};

	private readonly cancel = (): void => {
		this.drag = null;
		this.drawOver();
	};

	private readonly reset = (): void => this.ev.onReset();

	private readonly click = (e: MouseEvent): void => {
		const p = this.pane;
		const named = this.flagUnder(e);
		if (named) return void (named.flag.kind === 'failed' && this.ev.onOpen(named.line.id, true));
		const beyond = p ? this.pixelsOf(e)[0] - p.box.left - p.box.width : 0;
		if (beyond <= 4 || this.hoverId === null) return;
		if (beyond < DASH_PX) this.ev.onColour?.(this.hoverId, e);
		else this.ev.onOpen(this.hoverId);
	};

	private readonly key = (e: KeyboardEvent): void => {
		const p = this.pane;
		if (!p || e.ctrlKey || e.metaKey || e.altKey) return;
		const { left, width } = p.box;
		const at = this.at === null ? left + width / 2 : p.x(this.at);
		if (e.key in WALKS || e.key === 'Home' || e.key === 'End') this.step(p, e);
		else if (e.key === 'ArrowUp' || e.key === 'ArrowDown') this.walk(p, e.key === 'ArrowUp' ? -1 : 1);
		else if (e.key === 'Enter' && this.lit !== null) this.ev.onOpen(this.lit);
		else if (e.key === 'c' && this.lit !== null) this.ev.onColour?.(this.lit, {});
		else if (e.key === '+' || e.key === '=') this.ev.onZoom(p.xAt(at - width / 4), p.xAt(at + width / 4));
		else if (e.key === 'Escape' && this.drag) this.cancel();
		else if (e.key === '-' || e.key === 'Escape') this.ev.onReset();
		else return;
		e.preventDefault();
	};

	/** Left and right move the cursor also while the focus is elsewhere and the pointer rests on the chart; another
	 * key there ends that until the pointer moves. */
	private readonly keyElsewhere = (e: Event): void => {
		const { target, key, shiftKey } = e as KeyboardEvent;
		const walks = key in WALKS;
		if (!this.under || !(target instanceof Element) || this.el.contains(target) || (shiftKey && !walks))
			return;
		this.under = walks && !OWNERS.some((k) => target.closest(k));
		if (this.under) this.key(e as KeyboardEvent);
		if (e.defaultPrevented) e.stopPropagation();
	};

	/** Moves the cursor to another real point: the next one, or with Shift further on. */
	private step(p: Pane, e: KeyboardEvent): void {
		const { from, to } = p.d;
		const dir = WALKS[e.key] ?? 0;
		const at = this.at ?? p.xAt(p.box.left + p.box.width / 2);
		const lines = this.near.lines(p.d.lines, at);
		const wide = p.xAt(p.x(at) + (dir * p.box.width) / 20);
		const aim = e.key === 'Home' ? from : e.key === 'End' ? to : Math.min(to, Math.max(from, wide));
		const near = dir && !e.shiftKey ? null : snapTo(lines, aim, [from, to]);
		const x = near !== null && (!dir || (near - at) * dir > 0) ? near : dir ? nextX(lines, at, dir) : null;
		this.reader = { by: 'keys', py: null };
		if (x !== null) this.point(Math.min(to, Math.max(from, x)));
		else this.drawOver();
	}

	/** Moves the cursor to the next real point; the buttons of the tooltip stay where they are. */
	private readonly stepOnce = (dir: 1 | -1): void => {
		const p = this.pane;
		const x = p && this.at !== null ? nextX(this.near.lines(p.d.lines, this.at), this.at, dir) : null;
		if (!this.reader || x === null || x < p!.d.from || x > p!.d.to) return;
		this.reader = { ...this.reader, stays: true };
		this.point(x);
	};

	/** Emphasises the next line in the order of the values at the cursor. */
	private walk(p: Pane, by: number): void {
		this.reader = { by: 'keys', py: null };
		if (this.at === null) this.point(snapTo(p.d.lines, p.d.to, [p.d.from, p.d.to]));
		const list = this.at === null ? [] : this.readings(p, this.at);
		const now = list.findIndex((r) => r.line.id === this.lit);
		const next = list[now < 0 ? (by > 0 ? 0 : list.length - 1) : (now + by + list.length) % list.length];
		if (next) this.walkTo(next.line.id);
		this.drawOver();
	}
}
