// SPDX-License-Identifier: Apache-2.0
// Drawing helpers of all charts: colours of the page, text, canvases.

export interface Theme {
	text: string;
	dim: string;
	grid: string;
	back: string;
	accent: string;
}

export const FONT =
	'11px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", Arial, sans-serif';
/** Share of the text colour in a name, so that names of pale lines are readable. */
const INK = 0.28;
/** Wide enough to cover lines between two digits, which could look like a sign. */
const HALO = 6;

export function themeOf(el: HTMLElement): Theme {
	const css = getComputedStyle(el);
	const get = (n: string) => css.getPropertyValue(n).trim();
	return { text: get('--text'), dim: get('--dim'), grid: get('--grid'), back: get('--panel'),
		accent: get('--accent') };
}

/** Mixes two #rrggbb colours; other formats are returned unchanged. */
function mix(a: string, b: string, share: number): string {
	if (!/^#[0-9a-f]{6}$/i.test(a) || !/^#[0-9a-f]{6}$/i.test(b)) return a;
	const part = (s: string, i: number) => parseInt(s.slice(i, i + 2), 16);
	const mixed = (i: number) => Math.round(part(a, i) * (1 - share) + part(b, i) * share);
	return '#' + [1, 3, 5].map((i) => mixed(i).toString(16).padStart(2, '0')).join('');
}

/** Text colour for a line. */
export function inkOf(t: Theme, colour: string): string {
	return mix(colour, t.text, INK);
}

/** Draws text with a background outline, readable over lines. */
export function halo(g: CanvasRenderingContext2D, t: Theme, text: string,
	at: { x: number; y: number; colour: string }): void {
	g.lineWidth = HALO;
	g.strokeStyle = t.back;
	g.strokeText(text, at.x, at.y);
	g.fillStyle = inkOf(t, at.colour);
	g.fillText(text, at.x, at.y);
}

/** Shortens in the middle: names usually differ at their ends. */
export function cut(g: CanvasRenderingContext2D, text: string, width: number): string {
	if (g.measureText(text).width <= width) return text;
	const short = (n: number) => text.slice(0, Math.floor(n / 2)) + '…'
		+ text.slice(text.length - Math.ceil(n / 2));
	let n = text.length - 1;
	while (n > 2 && g.measureText(short(n)).width > width) n--;
	return short(n);
}

export function disc(g: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
	g.beginPath();
	g.arc(x, y, radius, 0, 7);
	g.fill();
}

/** Draws a straight line. */
export function segment(g: CanvasRenderingContext2D, from: [number, number], to: [number, number],
	dash: number[] = []): void {
	g.setLineDash(dash);
	g.beginPath();
	g.moveTo(...from);
	g.lineTo(...to);
	g.stroke();
	g.setLineDash([]);
}

/** Adds an empty canvas in CSS pixels to the chart's element. */
export function blank(c: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
	const r = devicePixelRatio || 1;
	const w = Math.round(width * r);
	const h = Math.round(height * r);
	if (c.width !== w || c.height !== h) {
		c.width = w;
		c.height = h;
		c.style.width = width + 'px';
		c.style.height = height + 'px';
	}
	const g = c.getContext('2d')!;
	g.setTransform(r, 0, 0, r, 0, 0);
	g.clearRect(0, 0, width, height);
	g.font = FONT;
	g.lineJoin = 'round';
	g.textBaseline = 'middle';
	return g;
}
