// SPDX-License-Identifier: Apache-2.0
// Words of the tooltip of a line chart.
import type { LineEvents, Pane } from './pane.ts';
import { nearPoint, type Reading } from './read.ts';
import type { TipRow, TipText } from './tip.ts';

interface At {
	x: number;
	list: readonly Reading[];
	front: string | null;
	/** Height of the pointer, in pixels of the chart. */
	py: number;
}

/** The band around a point with its number of runs, or the smoothed value at it; '' without. */
function aroundText({ line: { band, smooth }, x, at }: Reading, text: (v: number) => string): string {
	if (band && at >= 0) return `${text(band.low[at]!)} – ${text(band.high[at]!)}, n ${band.n[at]}`;
	const near = smooth ? nearPoint(smooth, x) : -1;
	return near < 0 || smooth!.means ? '' : `smoothed ${text(smooth!.ys[near]!)}`;
}

function noteOf(r: Reading, x: number, place: (x: number) => string, text: (v: number) => string): string {
	if (r.beyond) return r.x < x ? `ends at ${place(r.x)}` : `begins at ${place(r.x)}`;
	const off = r.at >= 0 && place(r.x) !== place(x) ? `at ${place(r.x)}` : '';
	return [off, Number.isFinite(r.y) ? aroundText(r, text) : ''].filter(Boolean).join(', ');
}

/** The readings in words: the position, then a row for each line. */
export function tipText(p: Pane, ev: LineEvents, { x, list, front, py }: At): TipText {
	const units = list.map((r) => r.line.unit ?? 0);
	const texts = (ys: readonly number[], of: readonly number[]) => ev.sayY?.(ys, of) ?? ys.map(ev.formatY);
	const ys = list.map((r) => r.y);
	const values = texts(ys, units);
	const one = (i: number) => (v: number) => texts([...ys, v], [...units, units[i]!]).at(-1)!;
	const rows: TipRow[] = list.map((reading, i) =>
		({ reading, note: noteOf(reading, x, p.cursorX, one(i)),
			value: reading.beyond ? '' : Number.isNaN(reading.y) ? 'not finite' : values[i]! }));
	const lit = list.findIndex((r) => r.line.id === front);
	const below = list.findIndex((r) => p.y(r.y) >= py);
	return { head: `${p.d.xLabel} ${p.cursorX(x)}`, rows, front,
		around: lit >= 0 ? lit : below < 0 ? list.length - 1 : below };
}
