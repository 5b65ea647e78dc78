// SPDX-License-Identifier: Apache-2.0
// Histograms of a run over its steps: ridges with the latest in front, or a column of a heat map each.
import { signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { count, short } from '../../base/format.ts';
import { getHistogram, type Histogram, type Media } from '../../state/records.ts';
import { evenly, Opener, useAsked } from '../base/bits.tsx';
import { DataTable } from '../base/datatable.tsx';
import { theme } from '../base/theme.ts';

const COLUMNS_MAX = 60;
const ROWS = 60;
const RIDGES_MAX = 20;
const RIDGE_WIDTH = 320;
/** Pixels between ridges, and height of the highest. */
const APART = 9;
const HIGH = 36;

/** Show ridges, else columns of a heat map. */
const asRidges = signal(true);

/** Resamples each histogram to rows of equal height; values are uniform within a bin. */
function rowsOf(list: readonly Histogram[], lo: number, hi: number): number[][] {
	const height = (hi - lo) / ROWS || 1;
	return list.map((h) => {
		const out = Array<number>(ROWS).fill(0);
		h.counts.forEach((n, i) => {
			const [a, b] = [h.edges[i]!, h.edges[i + 1]!];
			const from = Math.max(0, Math.min(ROWS - 1, Math.floor((a - lo) / height)));
			const to = Math.max(from, Math.min(ROWS - 1, Math.ceil((b - lo) / height) - 1));
			for (let r = from; r <= to; r++) {
				const share = b > a ? (Math.min(b, lo + (r + 1) * height) - Math.max(a,
					lo + r * height)) / (b - a) : 1;
				out[r]! += n * Math.max(0, share);
			}
		});
		return out;
	});
}

function draw(canvas: HTMLCanvasElement, columns: readonly number[][], at: number): void {
	const g = canvas.getContext('2d')!;
	canvas.width = columns.length;
	canvas.height = ROWS;
	g.fillStyle = getComputedStyle(canvas).getPropertyValue('--accent').trim();
	columns.forEach((c, x) => {
		const top = Math.max(...c, 1e-300);
		c.forEach((n, row) => {
			g.globalAlpha = Math.sqrt(n / top) * (x === at ? 1 : 0.75);
			if (n > 0) g.fillRect(x, ROWS - 1 - row, 1, 1);
		});
	});
	g.globalAlpha = 1;
}

/** Outline of a ridge at y. */
function outline(g: CanvasRenderingContext2D, bins: readonly number[], top: number, y: number): void {
	g.beginPath();
	g.moveTo(0, y);
	bins.forEach((n, i) => g.lineTo(((i + 0.5) / bins.length) * RIDGE_WIDTH, y - (n / top) * HIGH));
	g.lineTo(RIDGE_WIDTH, y);
}

/** Draws the earliest at the back, each normalised to its peak; the ridge of the current step is emphasised. */
function drawRidges(canvas: HTMLCanvasElement, columns: readonly number[][], at: number): void {
	const g = canvas.getContext('2d')!;
	const style = getComputedStyle(canvas);
	const every = Math.max(1, Math.ceil(columns.length / RIDGES_MAX));
	const chosen = columns.map((_, i) => i).filter((i) => i === at || i % every === 0);
	canvas.width = RIDGE_WIDTH;
	canvas.height = HIGH + chosen.length * APART;
	canvas.dataset.ridges = String(chosen.length);
	chosen.forEach((i, n) => {
		outline(g, columns[i]!, Math.max(...columns[i]!, 1e-300), HIGH + n * APART + APART - 1);
		g.fillStyle = style.getPropertyValue('--panel').trim();
		g.fill();
		g.globalAlpha = i === at ? 0.5 : 0.15;
		g.fillStyle = style.getPropertyValue('--accent').trim();
		g.fill();
		g.globalAlpha = 1;
		g.lineWidth = i === at ? 2 : 1;
		g.strokeStyle = style.getPropertyValue(i === at ? '--text' : '--accent').trim();
		g.stroke();
	});
}

/** Quantile, with values uniform within a bin. */
function quantile({ edges, counts }: Histogram, share: number): number {
	let left = share * counts.reduce((a, n) => a + n, 0);
	const at = counts.findIndex((n) => n > 0 && (left -= n) <= 0);
	const bin = at < 0 ? counts.length - 1 : at;
	return edges[bin + 1]! + (counts[bin]! > 0 ? left / counts[bin]! : 0) * (edges[bin + 1]! - edges[bin]!);
}

interface Row {
	step: number;
	of: Histogram;
}

/** Number of values and quantiles of each drawn step. */
function TableOf({ name, rows }: { name: string; rows: readonly Row[] }) {
	const open = useSignal(false);
	const places = (of: Histogram) => [0, 0.25, 0.5, 0.75, 1].map((q) => short(quantile(of, q)));
	const row = ({ step, of }: Row) => ({ id: String(step), name: String(step),
		cells: [short(of.counts.reduce((a, n) => a + n, 0)), ...places(of)] });
	return <span class="numbers"><Opener word="Table" open={open} panel={(close) => <DataTable name={name}
		caption={`${name}: ${count(rows.length, 'step')}`} rows={rows} row={row} close={close}
		head={['Step', 'Values', 'Lowest', 'Quarter', 'Middle', 'Three quarters', 'Highest']} />} /></span>;
}

/** Change of the median. */
function movedText(rows: readonly Row[]): string {
	const [first, last] = [rows[0]!, rows.at(-1)!];
	return `Middle ${short(quantile(first.of, 0.5))} at step ${first.step}`
		+ (first === last ? '' : `, ${short(quantile(last.of, 0.5))} at step ${last.step}`);
}

const NONE: readonly Histogram[] = [];

export function Heat({ list, step }: { list: readonly Media[]; step: number }) {
	const canvas = useRef<HTMLCanvasElement>(null);
	const chosen = evenly(list, COLUMNS_MAX);
	const got = useAsked(() => Promise.all(chosen.map(getHistogram)),
		[list.length, list[0]?.run, list[0]?.content]) ?? NONE;
	const edges = got.flatMap((h) => [h.edges[0] ?? Infinity, h.edges.at(-1) ?? -Infinity]);
	const [lo, hi] = [Math.min(...edges), Math.max(...edges)];
	const dark = theme();
	const rows = got.flatMap((of, i) => (chosen[i] ? [{ step: chosen[i].step, of }] : []));
	useEffect(() => {
		const at = chosen.filter((m) => m.step <= step).length - 1;
		if (canvas.current && got.length)
			(asRidges.value ? drawRidges : draw)(canvas.current, rowsOf(got, lo, hi), at);
	}, [got, step, dark, asRidges.value]);
	return (
		<>
			<button type="button" class="quiet" aria-pressed={asRidges.value}
				onClick={() => (asRidges.value = !asRidges.value)}>Ridges</button>
			{rows.length > 0 && <TableOf name="Histograms" rows={rows} />}
			<canvas ref={canvas} role="img" class={asRidges.value ? 'ridges' : ''}
				key={String(asRidges.value)} aria-label={`Histograms of ${list.length} steps`} />
			{got.length > 0 && <span class="dim">Steps {chosen[0]!.step} to {chosen.at(-1)!.step}
				, values {short(lo)} to {short(hi)};{' ' + movedText(rows)}</span>}
		</>
	);
}
