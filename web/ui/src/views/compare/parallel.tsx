// Which params make a run good: an axis for each param that differs and one for the goal, a line for each run. Brushing
// axes picks runs; those can be made the ones that the charts show.
import { useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Run } from '../../base/types.ts';
import { count, natural, paramText, short } from '../../base/format.ts';
import { bestOf, fellOut } from '../../base/goal.ts';
import { tellingParams } from '../../base/params.ts';
import { isBrushed, ParallelChart, type ParallelAxis, type ParallelLine } from '../../charts/parallel.ts';
import { scaleOf, type Value } from '../../charts/scale.ts';
import * as s from '../../state/index.ts';
import { colourOf, theme } from '../base/bits.tsx';
import { shortKey } from '../table/columns.tsx';

const AXIS_PX = 92;
const AXES_MAX = 10;
/** More runs than this are coloured by the goal instead of each its own. */
const OWN_COLOURS = 24;
/** Lines that share a value lie beside each other, over this share of the axis. */
const BESIDE = 0.035;

interface Axis {
	title: string;
	value(r: Run): Value;
	flip: boolean;
	/** Runs whose values make the axis; the others stand at its ends. */
	fit(r: Run): boolean;
	format(v: number): string;
}

const isThere = (v: Value) => v !== null && !(typeof v === 'number' && !Number.isFinite(v));

function paramAxis(key: string, list: readonly Run[]): Axis {
	const numeric = list.every((r) => r.params[key] === undefined || (r.params[key] !== '' && !Number.isNaN(Number(r.params[key]))));
	return {
		title: key.replace(/_/g, ' '), flip: false, fit: () => true, format: (v) => paramText(String(v)),
		value: (r) => (r.params[key] === undefined ? null : numeric ? Number(r.params[key]) : r.params[key]!),
	};
}

function axesOf(list: readonly Run[], width: number): Axis[] {
	const g = s.goal.value;
	const most = Math.max(2, Math.min(AXES_MAX, Math.floor((width - 114) / AXIS_PX)));
	const out = tellingParams(s.split.value, most).map((k) => paramAxis(k, list));
	if (g) out.push({ title: shortKey(g.key), flip: g.dir === 'min', value: (r) => bestOf(r.metrics[g.key], g.dir), fit: (r) => !fellOut(r), format: short });
	return out;
}

/** From pale to strong by the place among the others: 0 is the worst. */
function gradeOf(place: number): string {
	const [from, to] = theme() === 'dark' ? [[70, 80, 92], [125, 184, 242]] : [[196, 206, 217], [10, 95, 180]];
	return '#' + from!.map((v, i) => Math.round(v + (to![i]! - v) * place ** 2).toString(16).padStart(2, '0')).join('');
}

export function Parallel() {
	const box = useRef<HTMLDivElement>(null);
	const chart = useRef<ParallelChart | null>(null);
	const brushes = useSignal<Record<string, [number, number]>>({});
	const picked = useSignal<string[]>([]);
	const titles = useRef<string[]>([]);
	useEffect(() => {
		const c = new ParallelChart(box.current!, {
			onHover: (id) => (s.lit.value = id), onOpen: s.openRun,
			onBrush: (i, range) => {
				const { [titles.current[i]!]: _, ...others } = brushes.value;
				brushes.value = range ? { ...others, [titles.current[i]!]: range } : others;
			},
		});
		chart.current = c;
		return () => c.destroy();
	}, []);
	useSignalEffect(() => {
		// the best in front, at the end
		const list = [...s.rows.value].reverse();
		const axes = axesOf(list, box.current?.clientWidth ?? 1000);
		titles.current = axes.map((a) => a.title);
		const scales = axes.map((a) => scaleOf(list.filter(a.fit).map(a.value).sort((x, y) => natural(String(x ?? ''), String(y ?? ''))),
			{ format: a.format, flip: a.flip, missing: list.some((r) => !isThere(a.value(r))) }));
		const beside = (i: number) => (list.length > 1 ? (i / (list.length - 1) - 0.5) * BESIDE : 0);
		const lines: ParallelLine[] = list.map((r, i) => ({
			id: r.id, name: r.name || r.id.slice(0, 8), back: fellOut(r),
			at: axes.map((a, k) => {
				const at = scales[k]!.at(a.value(r));
				return at !== null && scales[k]!.discrete ? at + beside(i) : at;
			}),
			...(list.length > OWN_COLOURS ? { colour: gradeOf(i / (list.length - 1)), dash: [] }
				: { colour: colourOf(s.looks.value.byRun.get(r.id)), dash: s.looks.value.byRun.get(r.id)?.dash ?? [] }),
		}));
		const shown: ParallelAxis[] = axes.map((a, k) => ({ title: a.title + (scales[k]!.log ? ' (log)' : ''), ticks: scales[k]!.ticks, brush: brushes.value[a.title] ?? null }));
		chart.current?.set({ axes: shown, lines });
		picked.value = Object.keys(brushes.value).length ? lines.filter((l) => isBrushed(shown, l)).map((l) => l.id) : [];
	});
	useSignalEffect(() => chart.current?.highlight(s.lit.value));
	const any = Object.keys(brushes.value).length > 0;
	const lit = s.lit.value === null ? undefined : s.runs.value.find((r) => r.id === s.lit.value);
	return (
		<div class="card chart parallel">
			<p class="options">
				{any ? <><b>{count(picked.value.length, 'run')}</b> within the brushes
					<button type="button" disabled={!picked.value.length} onClick={() => s.setShown(new Set(picked.value.slice(0, 100)))}>show {picked.value.length > 100 ? '100 of them' : 'only these'} in the charts</button>
					<button type="button" onClick={() => (brushes.value = {})}>clear</button></>
					: <span class="dim">drag along an axis to pick runs; the goal's best is at the top</span>}
			</p>
			<div class="plot" ref={box} tabIndex={0} role="group" data-parallel aria-label={`Params and goal of ${count(s.rows.value.length, 'run')}; arrows walk through the runs`} />
			<span class="unseen" aria-live="polite">{lit?.name}</span>
		</div>
	);
}
