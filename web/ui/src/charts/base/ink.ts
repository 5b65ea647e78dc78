// What every chart draws with: the colours of the page, its words, an empty canvas. Knows nothing of what is drawn.

export interface Theme {
	text: string;
	dim: string;
	grid: string;
	back: string;
	accent: string;
}

export const FONT =
	'11px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", Arial, sans-serif';
/** Share of the text colour in a name, so that pale lines have readable names. */
const INK = 0.28;
/** Wide enough that no line shows between two digits, where it would read as a sign. */
const HALO = 5;

export function themeOf(el: HTMLElement): Theme {
	const css = getComputedStyle(el);
	const get = (n: string) => css.getPropertyValue(n).trim();
	return { text: get('--text'), dim: get('--dim'), grid: get('--grid'), back: get('--panel'),
		accent: get('--accent') };
}

/** Both colours as #rrggbb; anything else comes back unchanged. */
function mix(a: string, b: string, share: number): string {
	if (!/^#[0-9a-f]{6}$/i.test(a) || !/^#[0-9a-f]{6}$/i.test(b)) return a;
	const part = (s: string, i: number) => parseInt(s.slice(i, i + 2), 16);
	const mixed = (i: number) => Math.round(part(a, i) * (1 - share) + part(b, i) * share);
	return '#' + [1, 3, 5].map((i) => mixed(i).toString(16).padStart(2, '0')).join('');
}

/** The colour of words about a line. */
export function inkOf(t: Theme, colour: string): string {
	return mix(colour, t.text, INK);
}

/** Words with the background around them, so that they can be read over lines. */
export function halo(g: CanvasRenderingContext2D, t: Theme, text: string,
	at: { x: number; y: number; colour: string }): void {
	g.lineWidth = HALO;
	g.strokeStyle = t.back;
	g.strokeText(text, at.x, at.y);
	g.fillStyle = inkOf(t, at.colour);
	g.fillText(text, at.x, at.y);
}

/** Leaves out the middle: names differ at their ends more often than at their beginnings. */
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

/** A straight line between two places. */
export function segment(g: CanvasRenderingContext2D, from: [number, number], to: [number, number],
	dash: number[] = []): void {
	g.setLineDash(dash);
	g.beginPath();
	g.moveTo(...from);
	g.lineTo(...to);
	g.stroke();
	g.setLineDash([]);
}

/** A canvas of the chart's element, empty and ready to draw on in CSS pixels. */
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
