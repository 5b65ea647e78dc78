// SPDX-License-Identifier: Apache-2.0
// Heat map of ranks over steps relative to the median rank, with the slow rank in words.
import { useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { RunDetail } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { bytes, count, seconds } from '../../base/format.ts';
import { heatOf, mostOftenSlow, rankRows, type Heat, type RankRow } from '../../base/heat.ts';
import { cellAt, drawHeat } from '../../charts/heat.ts';
import { Opener, useAsked } from '../base/bits.tsx';
import { DataTable } from '../base/datatable.tsx';
import { theme } from '../base/theme.ts';

/** Measures: the series that each consists of, with their signs. */
const MEASURES: { id: string; label: string; sign: Record<string, number> }[] = [
	{ id: 'own', label: 'Own time (step time minus waiting)', sign: { 'phase/step': 1, 'phase/comm_exposed': -1 } },
	...['step', 'data_wait', 'h2d', 'forward', 'backward', 'comm_exposed', 'optimizer', 'other'].map((n) => ({
		id: n, label: n.replace(/_/g, ' '), sign: { ['phase/' + n]: 1 },
	})),
	{ id: 'memory', label: 'Peak memory', sign: { 'memory/peak_bytes': 1 } },
];
/** Maximum of cells over all ranks. */
const CELLS_MAX = 24000;
const COLUMNS_MAX = 240;
/** Deviation with full colour: the largest, limited to 20 % to 100 % of the median. */
const FULL_MIN = 0.2;
const FULL_MAX = 1;
/** First and last row labels, in pixels from the ends. */
const NAMED_FROM = 24;

function measureOf(id: string) {
	return MEASURES.find((x) => x.id === id)!;
}

/** Exponent that makes small differences paler. */
const faint = (v: number): number => Math.sign(v) * Math.abs(v) ** 1.6;

function fullOf(h: Heat): number {
	let far = 0;
	for (const row of h.cells) row.forEach((v, c) => (far = Math.max(far, Math.abs(v / h.usual[c]! - 1) || 0)));
	return Math.min(FULL_MAX, Math.max(FULL_MIN, far));
}

const say = (measure: string, v: number): string => measure === 'memory' ? bytes(Math.round(v)) : seconds(v);

function words(h: Heat, measure: string, [row, column]: [number, number]): string {
	const v = h.cells[row]![column]!;
	const usual = h.usual[column]!;
	const [a, b] = [h.from[column]!, h.to[column]!];
	const unit = measure === 'memory' ? 'epoch' : 'step';
	const where = `rank ${h.ranks[row]}, ${a === b ? `${unit} ${a}` : `${unit}s ${a} to ${b}`}`;
	if (Number.isNaN(v)) return `${where}: no point`;
	const more = Math.round((v / usual - 1) * 100);
	const difference = `, ${Math.abs(more)} % ${more < 0 ? 'less' : 'more'} than the usual rank`;
	return `${where}: ${say(measure, v)}${usual > 0 && h.ranks.length > 1 ? difference : ''}`;
}

interface MapOptions {
	h: Heat;
	measure: string;
	/** Relative to the median rank instead of absolute. */
	against: boolean;
	/** The named rank. */
	slow: number | null;
}

/** Keeps the heat map up to date in its canvas. */
function useHeat(box: RefObject<HTMLCanvasElement | null>, h: Heat, against: boolean, height: number): void {
	useEffect(() => {
		const canvas = box.current!;
		const full = fullOf(h);
		const top = Math.max(...h.cells.map((r) => Math.max(...r.filter(Number.isFinite), 0)));
		const draw = () => {
			const css = getComputedStyle(canvas);
			drawHeat(canvas, {
				cells: h.cells, warm: css.getPropertyValue('--comm_exposed').trim(),
				cold: css.getPropertyValue('--forward').trim(),
				shade: (v, c) => (against ? faint((v / h.usual[c]! - 1) / full) : v / top),
			}, canvas.clientWidth, height);
		};
		draw();
		const watch = new ResizeObserver(draw);
		watch.observe(canvas);
		return () => watch.disconnect();
	}, [h, against, theme()]);
}

/** The neighbour cell for an arrow key; null for other keys. */
function step(key: string, [r, c]: [number, number], h: Heat): [number, number] | null {
	const to: Record<string, [number, number]> = {
		ArrowUp: [r - 1, c], ArrowDown: [r + 1, c], ArrowLeft: [r, c - 1], ArrowRight: [r, c + 1],
	};
	const t = to[key];
	const last = [h.ranks.length - 1, h.usual.length - 1] as const;
	return t ? [Math.min(last[0], Math.max(0, t[0])), Math.min(last[1], Math.max(0, t[1]))] : null;
}

/** Text of the cell under the pointer, or a legend. */
function Readout({ at, o }: { at: [number, number] | null; o: MapOptions }) {
	const full = Math.round(fullOf(o.h) * 100);
	const colours = o.against
		? `Warm: slower than the usual rank at that step; cold: faster; full colour at ${full} %`
		: 'The darker, the more';
	return <p class="readout" aria-live="polite">
		{at ? words(o.h, o.measure, at) : <span class="dim">{colours}</span>}</p>;
}

const percent = (v: number) => Math.round(v * 100) + ' %';

/** A button that opens the summary of each rank. */
function Table({ rows, measure }: { rows: readonly RankRow[]; measure: string }) {
	const open = useSignal(false);
	const row = (r: RankRow) => ({ id: String(r.rank), name: `rank ${r.rank}`, cells: [say(measure,
		r.mean),
		say(measure, r.highest), Number.isFinite(r.more) ? percent(r.more) : '–', percent(r.slow)] });
	const head = ['Rank', 'Mean', 'Highest', 'More than the usual rank', 'Of the time by over 5 %'];
	return <span class="numbers"><Opener word="Table" open={open} panel={(close) =>
		<DataTable name="Ranks over steps" head={head} rows={rows} row={row} close={close}
			caption={`${measureOf(measure).label}: ${count(rows.length, 'rank')}`} />} /></span>;
}

function Map(o: MapOptions) {
	const { h, slow } = o;
	const box = useRef<HTMLCanvasElement>(null);
	const at = useSignal<[number, number] | null>(null);
	const rows = h.ranks.length;
	const columns = h.usual.length;
	const height = Math.min(320, Math.max(36, rows * (rows > 24 ? 8 : 16)));
	useHeat(box, h, o.against, height);
	const slowAt = slow === null ? 0 : ((h.ranks.indexOf(slow) + 0.5) / rows) * height;
	const label = `${count(rows, 'rank')} over ${count(columns, 'column')} of steps; arrows read cells`;
	const named = slowAt > NAMED_FROM && slowAt < height - NAMED_FROM;
	const onMove = (e: MouseEvent) => {
		at.value = cellAt({ rows, columns, width: box.current!.clientWidth, height }, e.offsetX, e.offsetY);
	};
	const onKey = (e: KeyboardEvent) => {
		const to = step(e.key, at.value ?? [0, 0], h);
		if (!to) return;
		at.value = to;
		e.preventDefault();
	};
	return (
		<>
			<div class="heat">
				<span class="dim">rank {h.ranks[0]}</span>
				<canvas ref={box} role="img" tabIndex={0} style={{ height: height + 'px' }}
					aria-label={label}
					onMouseMove={onMove} onMouseLeave={() => (at.value = null)} onKeyDown={onKey} />
				{named && <span class="warn slow" style={{ top: slowAt - 9 + 'px' }}>rank {slow}</span>}
				<span class="dim last">{rows > 1 ? `rank ${h.ranks[rows - 1]}` : ''}</span>
				<span class="dim from">{h.from[0]}</span><span class="dim to">{h.to[columns - 1]}</span>
			</div>
			<Readout at={at.value} o={o} />
		</>
	);
}

/** Heat map of a measure, reloaded as the run grows. */
function useRanks(r: RunDetail, measure: string, ranks: number): Heat {
	const m = measureOf(measure);
	const buckets = Math.max(10, Math.min(COLUMNS_MAX, Math.floor(CELLS_MAX / ranks)));
	const series = useAsked(() => (ranks > 1 ? s.askRanks(r.id, Object.keys(m.sign), buckets) : null),
		[r.id, m, ranks, r.status === 'running' ? s.liveRev.value : 0], s.report);
	return useMemo(() => heatOf(series ?? [], m.sign), [series, m]);
}

export function Ranks({ r }: { r: RunDetail }) {
	const measure = useSignal('own');
	const against = useSignal(true);
	const ranks = Math.max(new Set(r.ranks).size, s.rankPhases(r.id)?.length ?? 0);
	const h = useRanks(r, measure.value, ranks);
	if (ranks < 2) return null;
	const rows = rankRows(h);
	const slow = measure.value === 'own' ? mostOftenSlow(rows) : null;
	return (
		<section class="box ranks" aria-label="Ranks over steps">
			<h2>Ranks over steps</h2>
			<p class="options">
				<select aria-label="What is shown" value={measure.value}
					onChange={(e) => (measure.value = e.currentTarget.value)}>
					{MEASURES.map((x) => <option key={x.id} value={x.id}>{x.label}</option>)}
				</select>
				<label><input type="checkbox" checked={against.value} onChange={() =>
					(against.value = !against.value)} /> Against the usual rank</label>
				{rows.length > 0 && <Table rows={rows} measure={measure.value} />}
				{slow && (
					<span class={slow.slow > 0.5 ? 'warn' : 'dim'}>
						Rank {slow.rank} was more than 5 % slower than the usual rank
							in {percent(slow.slow)} of the time.</span>
				)}
			</p>
			{h.ranks.length ? <Map h={h} measure={measure.value} against={against.value}
				slow={slow?.rank ?? null} /> : <p class="dim">No points</p>}
		</section>
	);
}
