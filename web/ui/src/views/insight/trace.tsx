// SPDX-License-Identifier: Apache-2.0
// Timeline of every rank over the steps of --trace-steps, with a selectable span; fully usable by keyboard.
import { useSignal, type Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { seconds } from '../../base/format.ts';
import { moved, spanAt, traceOf, zoomed, type Stretch, type Row, type Span, type StepOf,
	type Trace } from '../../base/trace.ts';
import { phaseClass } from '../../charts/stack.ts';
import { heightOf, Timeline, type TimelineData } from '../../charts/timeline.ts';
import * as s from '../../state/index.ts';
import { getTrace } from '../../state/insight.ts';
import { useAsked } from '../base/bits.tsx';
import { PhaseLegend } from '../base/phases.tsx';
import './styles.ts';

const MICRO = 1e-6;
const CLOSER = 0.7;
/** Prefix of a phase's class; the rest names its colour. */
const PREFIX = 'ph-';

interface Chosen {
	row: number;
	span: number;
}

/** Colour of each phase. */
function colours(el: HTMLElement, trace: Trace): (cat: string) => string {
	const css = getComputedStyle(el);
	const known = new Map<string, string>();
	const colour = (cat: string) => css.getPropertyValue('--' + phaseClass(cat).slice(PREFIX.length)).trim();
	for (const r of trace.rows)
		for (const x of r.spans) if (!known.has(x.cat)) known.set(x.cat, colour(x.cat));
	return (cat) => known.get(cat)!;
}

function dataOf(el: HTMLElement, trace: Trace, look: Stretch, chosen: Chosen): TimelineData {
	const colour = colours(el, trace);
	const bands = trace.rows.map((r) => ({ name: `rank ${r.rank} ${r.thread}`, depth: r.depth,
		bars: r.spans.map((x) => ({ ...x, colour: colour(x.cat) })) }));
	const band = (c: StepOf) => trace.rows.findIndex((r) => r.rank === c.rank);
	return { bands, look, chosen: [chosen.row, chosen.span], format: (us) => seconds(us * MICRO),
		critical: trace.critical.map((c) => ({ band: band(c), from: c.from, to: c.to })) };
}

/** Description of a span. */
function said(row: Row, x: Span): string {
	const phase = x.cat && x.cat !== x.name ? ` (${x.cat.replace(/_/g, ' ')})` : '';
	return `${x.name}${phase}: ${seconds((x.to - x.from) * MICRO)} from ${seconds(x.from * MICRO)}, step `
		+ `${x.step}, rank ${row.rank}, ${row.thread}`;
}

/** Range that shows the span, with some context if it was out of sight. */
function lookAt(look: Stretch, end: number, x: Span): Stretch {
	if (x.from >= look.from && x.to <= look.to) return look;
	const wide = Math.max(look.to - look.from, 2 * (x.to - x.from));
	return moved({ from: (x.from + x.to - wide) / 2, to: (x.from + x.to + wide) / 2 }, end, 0);
}

interface Model {
	trace: Trace;
	look: Signal<Stretch>;
	chosen: Signal<Chosen>;
}

function choose(m: Model, row: number, span: number): void {
	const x = m.trace.rows[row]?.spans[span];
	if (!x) return;
	m.chosen.value = { row, span };
	m.look.value = lookAt(m.look.value, m.trace.end, x);
}

function chooseAt(m: Model, row: number, time: number): void {
	const x = spanAt(m.trace.rows[row]!, time);
	if (x) choose(m, row, m.trace.rows[row]!.spans.indexOf(x));
}

/** The row above or below, at the time of the selection. */
function otherRow(m: Model, by: number): void {
	const { row, span } = m.chosen.value;
	const next = Math.min(Math.max(0, row + by), m.trace.rows.length - 1);
	const time = m.trace.rows[row]?.spans[span]?.from ?? m.look.value.from;
	const at = m.trace.rows[next]!.spans.findIndex((x) => x.to > time);
	choose(m, next, at < 0 ? m.trace.rows[next]!.spans.length - 1 : at);
}

function onKey(m: Model, e: KeyboardEvent): void {
	const { look, chosen, trace } = m;
	const middle = (look.value.from + look.value.to) / 2;
	const keys: Record<string, () => void> = {
		'+': () => (look.value = zoomed(look.value, trace.end, middle, CLOSER)),
		'-': () => (look.value = zoomed(look.value, trace.end, middle, 1 / CLOSER)),
		ArrowLeft: () => (look.value = moved(look.value, trace.end, -0.2)),
		ArrowRight: () => (look.value = moved(look.value, trace.end, 0.2)),
		ArrowUp: () => otherRow(m, -1),
		ArrowDown: () => otherRow(m, 1),
		'.': () => choose(m, chosen.value.row, chosen.value.span + 1),
		',': () => choose(m, chosen.value.row, chosen.value.span - 1),
		Home: () => (look.value = { from: 0, to: trace.end }),
	};
	const act = keys[e.key === '=' ? '+' : e.key];
	if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
	e.preventDefault();
	act();
}

function Bands({ m }: { m: Model }) {
	const el = useRef<HTMLDivElement>(null);
	const chart = useRef<Timeline | null>(null);
	const { look, chosen, trace } = m;
	useEffect(() => {
		chart.current = new Timeline(el.current!, {
			onHover: () => {},
			onLook: (c) => (look.value = 'by' in c ? moved(look.value, trace.end, c.by)
				: zoomed(look.value, trace.end, c.at, c.factor)),
			onChoose: (row, time) => chooseAt(m, row, time),
		});
		return () => chart.current?.destroy();
	}, [trace]);
	useEffect(() => chart.current?.set(dataOf(el.current!, trace, look.value, chosen.value)));
	return (
		<div class="timeline" ref={el} tabIndex={0} role="application"
			aria-label={`Timeline of ${trace.critical.length} steps; plus and minus zoom, arrows move, `
				+ 'comma and point choose a span'}
			onKeyDown={(e) => onKey(m, e)} style={{ height: `${heightOf(trace.rows)}px` }}
			data-from={look.value.from} data-to={look.value.to} />
	);
}

function Critical({ steps }: { steps: readonly StepOf[] }) {
	return (
		<ul class="critical">{steps.map((c) => (
			<li key={c.step}>step {c.step}: {seconds((c.to - c.from) * MICRO)}, the others wait for
				rank {c.rank}{c.waited > 0 && `, which waits ${seconds(c.waited * MICRO)} itself`}</li>
		))}</ul>
	);
}

function View({ trace }: { trace: Trace }) {
	const look = useSignal<Stretch>({ from: 0, to: trace.end });
	const chosen = useSignal<Chosen>({ row: 0, span: 0 });
	const row = trace.rows[chosen.value.row];
	const x = row?.spans[chosen.value.span];
	const phases = [...new Set(trace.rows.flatMap((r) => r.spans.map((y) => y.cat)))].filter(Boolean);
	return (
		<>
			<Bands m={{ trace, look, chosen }} />
			<p class="told" role="status">{row && x ? said(row, x) : ''}</p>
			<PhaseLegend names={phases} />
			{trace.rows.some((r) => r.rank > 0) && <Critical steps={trace.critical} />}
			<p class="dim">Drag or arrows: move; ctrl and wheel, + and −: zoom; Home: all; , and .: the span
				before and after; ↑ and ↓: another row</p>
		</>
	);
}

export function TraceView({ run }: { run: string }) {
	const trace = useAsked(() => getTrace(run).then((events) => traceOf(events ?? [])), [run], s.report);
	if (!trace) return <p class="dim">Reading the trace…</p>;
	if (!trace.rows.length) return <p>None of these steps was recorded.</p>;
	return <View trace={trace} />;
}
