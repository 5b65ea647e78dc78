// SPDX-License-Identifier: Apache-2.0
// Tools of a chart: values as a table, limits of the y axis, and export.
import { useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import type { ChartLine, LineChart } from '../../charts/line/index.ts';
import type { Limits } from '../../base/url.ts';
import { mayWrite } from '../../state/access.ts';
import * as s from '../../state/index.ts';
import { Opener, Panel } from '../base/bits.tsx';
import { lazy } from '../base/lazy.tsx';
import { saveBlob } from '../base/save.ts';
import '../base/later.ts';
import { More } from './arrange.tsx';
import { Values } from './values.tsx';

interface Options {
	/** Key of the chart's limits in the view. */
	of: string;
	/** Display name of the chart. */
	name: string;
	chart: RefObject<LineChart | null>;
	/** The metric whose unit its values have. */
	metric: string;
	lines: () => readonly ChartLine[];
	formatX: (x: number) => string;
}

async function save({ name, chart }: Options, kind: 'png' | 'svg'): Promise<void> {
	const { pictureOf } = await import('../../charts/line/picture.ts');
	const title = [s.experiment.value, name].filter(Boolean).join(': ');
	const blob = chart.current && await pictureOf(chart.current, title, kind);
	if (blob) saveBlob(blob, name, kind);
}

const numberOf = (text: string) => (text.trim() === '' || !Number.isFinite(Number(text)) ? null : Number(text));

/** Limits of the y axis; an empty field is automatic. */
function LimitsPanel({ of, close }: { of: string; close: () => void }) {
	const { limits } = s.view.value;
	const now = limits[of] ?? [null, null];
	const set = (to: Limits) => {
		const { [of]: _, ...others } = limits;
		s.go({ limits: to[0] === null && to[1] === null ? others : { ...others, [of]: to } });
	};
	const field = (label: string, at: 0 | 1) => (
		<label>{label} <input type="text" inputMode="decimal" placeholder="Automatic" value={now[at] ?? ''}
			aria-label={`Y axis: ${label}`}
			onChange={(e) => set(at ? [now[0], numberOf(e.currentTarget.value)]
				: [numberOf(e.currentTarget.value), now[1]])} /></label>
	);
	const wrong = now[0] !== null && now[1] !== null && now[0] >= now[1];
	return (
		<Panel label={`Y axis of ${of}`} close={close}>
			<span class="options">{field('From', 0)}{field('To', 1)}
				<button type="button" disabled={!limits[of]}
					onClick={() => set([null, null])}>Both automatic</button></span>
			{wrong && <span class="problem" role="alert">The lower limit must be below the upper.</span>}
		</Panel>
	);
}

const FigureDialog = lazy(() => import('./figuredialog.tsx').then((m) => m.FigureDialog));
const AddToReport = lazy(() => import('./addtoreport.tsx').then((m) => m.AddToReport));

export function ChartTools(o: Options) {
	const open = useSignal(false);
	const adding = useSignal(false);
	const reading = useSignal(false);
	const figuring = useSignal(false);
	const on = s.view.value.limits[o.of] !== undefined;
	return (
		<>
			<span class="numbers"><Opener word="Table" open={reading} panel={(close) =>
				<Values name={o.name} of={o.metric} lines={o.lines()} formatX={o.formatX}
					close={close} />} /></span>
			<span class={'limits' + (on ? ' on' : '')}><Opener open={open}
				word={on ? 'Y axis set' : 'Y axis'}
				panel={(close) => <LimitsPanel of={o.of} close={close} />} /></span>
			{mayWrite(s.experiment.value) && o.metric && <Opener word="Add to report" open={adding}
				panel={(close) => <AddToReport metric={o.metric} of={o.of} close={close} />} />}
			<More name={o.name} metric={o.of === o.metric ? o.metric : null}
				save={(kind) => void save(o, kind).catch(s.report)}
				figure={() => (figuring.value = true)} />
			{figuring.value && <FigureDialog of={o.chart.current} name={o.name}
				metric={o.of === o.metric ? o.metric : ''}
				close={() => (figuring.value = false)} />}
		</>
	);
}
