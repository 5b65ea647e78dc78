// SPDX-License-Identifier: Apache-2.0
// Draws a figure of Plotly: points, lines, bars, heat maps, with axes, names and a table of its values.
import { useSignal } from '@preact/signals';
import { lookAt } from '../../base/colour.ts';
import { count, short, when } from '../../base/format.ts';
import type { Figure, FigureTrace } from '../../base/figure.ts';
import { evenTicks } from '../../charts/base/ticks.ts';
import { Opener } from '../base/bits.tsx';
import { DataTable } from '../base/datatable.tsx';
import { colourOf } from '../base/theme.ts';

const WIDTH = 560;
const HEIGHT = 320;
const LEFT = 62;
const BOTTOM = 40;
const TOP = 8;
const ROWS_MAX = 500;

interface Span {
	lo: number;
	hi: number;
}

function spanOf(values: readonly number[], pad: number): Span {
	const finite = values.filter(Number.isFinite);
	if (!finite.length) return { lo: 0, hi: 1 };
	const [lo, hi] = [Math.min(...finite), Math.max(...finite)];
	const room = hi > lo ? (hi - lo) * 0.04 : 0.5;
	return { lo: lo - (pad || room), hi: hi + (pad || room) };
}

/** Maps of values to pixels, and the ticks with their words. */
function scales(f: Figure) {
	const wide = f.traces.some((t) => t.mark === 'bar' || t.mark === 'cells');
	const bars = f.traces.some((t) => t.mark === 'bar');
	const xs = f.traces.flatMap((t) => t.xs);
	const ys = [...f.traces.flatMap((t) => t.ys), ...bars ? [0] : []];
	const apart = (Math.max(...xs) - Math.min(...xs)) / Math.max(1, new Set(xs).size - 1);
	const step = wide && xs.length > 1 ? apart / 2 : 0;
	const sx = spanOf(xs, wide ? step || 0.5 : 0);
	const sy = spanOf(ys, f.traces.some((t) => t.mark === 'cells') ? 0.5 : 0);
	const x = (v: number) => LEFT + ((v - sx.lo) / (sx.hi - sx.lo)) * (WIDTH - LEFT - 6);
	const y = (v: number) => HEIGHT - BOTTOM - ((v - sy.lo) / (sy.hi - sy.lo)) * (HEIGHT - BOTTOM - TOP);
	const ticks = (s: Span, names: readonly string[], most: number, dates: boolean) => (names.length
		? names.map((text, v) => ({ v, text }))
		: evenTicks(s.lo, s.hi, most).map((v) => ({ v, text: dates ? when(v) : short(v) })));
	return { x, y, half: step || 0.5, ticksX: ticks(sx, f.names.x, f.dates ? 3 : 6, f.dates),
		ticksY: ticks(sy, f.names.y, 5, false) };
}

type Scales = ReturnType<typeof scales>;

function pathOf(t: FigureTrace, { x, y }: Scales): string {
	let pen = 'M';
	return t.xs.map((v, i) => {
		if (!Number.isFinite(v) || !Number.isFinite(t.ys[i] ?? NaN)) {
			pen = 'M';
			return '';
		}
		const at = `${pen}${x(v).toFixed(1)} ${y(t.ys[i]!).toFixed(1)}`;
		pen = 'L';
		return at;
	}).join('');
}

/** Cells of a heat map: stronger is higher. */
function Cells({ t, c }: { t: FigureTrace; c: Scales }) {
	const all = t.cells.flat().filter(Number.isFinite);
	const [lo, hi] = [Math.min(...all), Math.max(...all)];
	const [w, h] = [Math.abs(c.x(1) - c.x(0)), Math.abs(c.y(1) - c.y(0))];
	const strength = (v: number) => 0.06 + 0.94 * (hi > lo ? (v - lo) / (hi - lo) : 1);
	return <>{t.cells.flatMap((row, r) => row.map((v, k) => Number.isFinite(v) && (
		<rect key={`${r} ${k}`} class="cell" x={c.x(t.xs[k]!) - w / 2} y={c.y(t.ys[r]!) - h / 2} width={w}
			height={h} fill-opacity={strength(v)}><title>{short(v)}</title></rect>)))}</>;
}

function TraceOf({ t, n, of, c }: { t: FigureTrace; n: number; of: number; c: Scales }) {
	const colour = t.colour ?? colourOf(lookAt(n));
	if (t.mark === 'cells') return <Cells t={t} c={c} />;
	if (t.mark === 'bar') {
		const width = Math.max(1, (c.x(2 * c.half) - c.x(0)) * 0.86 / of);
		return <>{t.xs.map((v, i) => Number.isFinite(t.ys[i] ?? NaN) && (
			<rect key={i} fill={colour} width={width} x={c.x(v) + width * (n - of / 2)}
				y={Math.min(c.y(0), c.y(t.ys[i]!))} height={Math.abs(c.y(t.ys[i]!) - c.y(0))}>
				<title>{short(t.ys[i]!)}</title></rect>))}</>;
	}
	const dots = t.mark === 'points' || t.dots;
	return (
		<>
			{t.mark === 'line' && <path d={pathOf(t, c)} fill="none" stroke={colour} stroke-width="1.6" />}
			{dots && t.xs.map((v, i) => Number.isFinite(v) && Number.isFinite(t.ys[i] ?? NaN) && (
				<circle key={i} r="2.6" cx={c.x(v)} cy={c.y(t.ys[i]!)} fill={colour}>
					<title>{`${short(v)}, ${short(t.ys[i]!)}`}</title></circle>))}
		</>
	);
}

function AxesOf({ f, c }: { f: Figure; c: Scales }) {
	return (
		<g class="axes">
			{c.ticksX.map(({ v, text }) => <g key={v}><path d={`M${c.x(v)} ${TOP}V${HEIGHT - BOTTOM}`} />
				<text x={c.x(v)} y={HEIGHT - BOTTOM + 14} text-anchor="middle">
					{text.slice(0, 14)}</text>
			</g>)}
			{c.ticksY.map(({ v, text }) => <g key={v}><path d={`M${LEFT} ${c.y(v)}H${WIDTH - 6}`} />
				<text x={LEFT - 5} y={c.y(v) + 4} text-anchor="end">{text.slice(0, 10)}</text></g>)}
			<text x={(LEFT + WIDTH) / 2} y={HEIGHT - 6} text-anchor="middle">{f.x}</text>
			<text transform={`translate(11 ${HEIGHT / 2}) rotate(-90)`} text-anchor="middle">{f.y}</text>
		</g>
	);
}

/** The points as a table: one row each, of a heat map one row of cells. */
function Numbers({ f }: { f: Figure }) {
	const open = useSignal(false);
	const name = (list: readonly string[], v: number) => list[v] ?? short(v);
	const rows = f.traces.flatMap((t, n) => (t.mark === 'cells'
		? t.cells.map((row, r) => ({ id: `${n} ${r}`, name: t.name,
			cells: [name(f.names.y, t.ys[r]!), row.map(short).join('  ')] }))
		: t.xs.map((x, i) => ({ id: `${n} ${i}`, name: t.name,
			cells: [f.dates ? when(x) : name(f.names.x, x), name(f.names.y, t.ys[i] ?? NaN)] }))));
	return <span class="numbers"><Opener word="Table" open={open} panel={(close) => <DataTable name="Figure"
		caption={`${f.title || 'Figure'}: ${count(rows.length, 'row')}`} close={close}
		rows={rows.slice(0, ROWS_MAX)} row={(r) => r} head={['Trace', f.x || 'x', f.y || 'y']} />} /></span>;
}

/** The drawing, with a key of its traces. */
function Drawing({ f }: { f: Figure }) {
	const c = scales(f);
	const bars = f.traces.filter((t) => t.mark === 'bar');
	const words = f.traces.map((t) => `${t.name}, ${count(t.xs.length, 'point')}`).join('; ');
	const label = `${f.title || 'Figure'}: ${words}`;
	return (
		<>
			<svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
				<AxesOf f={f} c={c} />
				{f.traces.map((t, n) => <TraceOf key={n} t={t} c={c} of={bars.length || 1}
					n={t.mark === 'bar' ? bars.indexOf(t) : n} />)}
			</svg>
			{f.traces.length > 1 && <p class="legend">{ f.traces.map((t, n) => <span key={n}>
				<svg class="key" width="14" height="10" aria-hidden="true"><rect width="14" height="10"
					fill={t.colour ?? colourOf(lookAt(n))} /></svg> {t.name}</span>)}</p>}
		</>
	);
}

/** json: the address of what was logged. */
export function FigureOf({ f, json }: { f: Figure; json: string }) {
	const any = f.traces.length > 0;
	return (
		<div class="figure">
			{f.title && <p><b>{f.title}</b></p>}
			{any && <Drawing f={f} />}
			{f.left.length > 0 && <p class="dim">
				This page does not draw traces of type {f.left.join(', ')}.</p>}
			<p class="legend">{any && <Numbers f={f} />}
				<a href={json} download={(f.title || 'Figure') + '.json'}>JSON</a></p>
		</div>
	);
}
