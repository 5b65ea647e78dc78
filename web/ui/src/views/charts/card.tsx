// One chart of one metric over the shown runs: a line chart whose events go back into the state; enlarged on demand, saved as
// a picture.
import { useEffect, useRef } from 'preact/hooks';
import { signal, useComputed, useSignalEffect } from '@preact/signals';
import { LineChart } from '../../charts/line/index.ts';
import { valueText } from '../../base/format.ts';
import * as s from '../../state/index.ts';
import { theme } from '../base/bits.tsx';
import { formatX, linesOf, rangeOf, summary } from './lines.ts';
import { byCursor } from '../table/columns.tsx';

const DWELL_MS = 150;
const GUTTER = 128;
/** The metric whose chart takes the whole width. */
const large = signal<string | null>(null);

/** Steps are whole; a zoom within two steps is left as it is. */
function whole(a: number, b: number): [number, number] {
	return s.view.value.x === 'step' && b - a > 2 ? [Math.round(a), Math.round(b)] : [a, b];
}

let dwell = 0;

function setCursor(key: string, x: number | null): void {
	s.cursor.value = x === null ? null : { key, x };
	if (x === null) {
		clearTimeout(dwell);
		dwell = 0;
		byCursor.value = false;
	} else if (!dwell && !byCursor.value) {
		dwell = window.setTimeout(() => {
			dwell = 0;
			byCursor.value = s.cursor.value !== null;
		}, DWELL_MS);
	}
}

async function save(metric: string, chart: LineChart | null): Promise<void> {
	const blob = await chart?.picture([s.experiment.value, metric].filter(Boolean).join(': '));
	if (!blob) return;
	const a = document.createElement('a');
	a.href = URL.createObjectURL(blob);
	a.download = metric.replace(/[^\w.-]+/g, '-') + '.png';
	a.click();
	setTimeout(() => URL.revokeObjectURL(a.href), 60000);
}

export function ChartCard({ metric, note }: { metric: string; note?: string }) {
	const box = useRef<HTMLDivElement>(null);
	const chart = useRef<LineChart | null>(null);
	const lines = useComputed(() => {
		void s.seriesRev.value;
		void theme();
		return linesOf(metric, s.drawn.value);
	});

	useEffect(() => {
		const el = box.current!;
		const toView = (x: number) => s.fromUnit(metric, x);
		const c = new LineChart(el, {
			formatX: (x) => formatX(metric, x),
			formatY: valueText(metric),
			onCursor: (x) => setCursor(metric, x),
			onHover: (id) => (s.lit.value = id),
			onZoom: (from, to) => {
				const a = toView(from);
				const b = toView(to);
				if (a !== null && b !== null) s.go({ zoom: whole(a, b) });
			},
			onReset: s.resetZoom,
			onOpen: (id) => s.openRun(id),
		});
		chart.current = c;
		let visible = false;
		const ask = () => (visible ? s.want(metric, el.clientWidth - 50 - GUTTER, c) : s.unwant(metric, c));
		const seen = new IntersectionObserver((e) => {
			visible = e[e.length - 1]!.isIntersecting;
			ask();
		}, { rootMargin: '120px' });
		const size = new ResizeObserver(ask);
		seen.observe(el);
		size.observe(el);
		return () => {
			seen.disconnect();
			size.disconnect();
			s.unwant(metric, c);
			c.destroy();
			chart.current = null;
		};
	}, [metric]);
	useSignalEffect(() => {
		const v = s.view.value;
		const l = lines.value;
		const [from, to] = rangeOf(metric, l);
		void theme();
		const width = box.current?.clientWidth ?? 0;
		chart.current?.set({ lines: l, from, to, log: v.log, full: v.full, xLabel: s.unitOf(metric),
			whole: s.unitOf(metric) === 'step' || metric.startsWith('epoch/') && s.unitOf(metric) === 'epoch',
			gutter: l.length > 1 && width > 300 ? (width > 430 ? GUTTER : 84) : 0 });
	});
	useSignalEffect(() => {
		const id = s.lit.value;
		chart.current?.highlight(id);
	});
	useSignalEffect(() => {
		const c = s.cursor.value;
		const base = c ? s.fromUnit(c.key, c.x) : null;
		chart.current?.cursor(c === null ? null : c.key === metric ? c.x : base === null ? null : s.toUnit(metric, base));
	});

	const v = s.view.value;
	const big = large.value === metric;
	const none = !s.drawn.value.some((r) => r.metrics[metric]);
	return (
		<figure class={'card chart' + (big ? ' large' : '')} onKeyDown={(e) => {
			if (e.key === 'Escape' && big && !v.zoom) large.value = null;
		}}>
			<figcaption>
				<b title={metric}>{metric}</b>
				{note && <span class="dim">{note}</span>}
				{v.smooth > 0 && lines.value.some((l) => l.smooth) && <span class="dim">smoothed {v.smooth}, raw behind</span>}
				{v.zoom && <button type="button" class="quiet" onClick={s.resetZoom}>reset zoom</button>}
				<span class="grow" />
				<span class="acts">
					<button type="button" class="quiet" aria-pressed={big} aria-label={`enlarge ${metric}`} title={big ? 'back to its place' : 'enlarge'}
						onClick={() => (large.value = big ? null : metric)}>{big ? '⤡' : '⤢'}</button>
					<button type="button" class="quiet" aria-label={`save ${metric} as a picture`} title="save as a picture"
						onClick={() => void save(metric, chart.current)}>PNG</button>
				</span>
			</figcaption>
			<div class="plot" ref={box} tabIndex={0} role="group" data-chart={metric} aria-label={summary(metric, lines.value)} />
			{none && <p class="nothing">no points of the shown runs</p>}
		</figure>
	);
}

