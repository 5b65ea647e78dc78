// SPDX-License-Identifier: Apache-2.0
// Menu of a chart: its picture and its arrangement; and the tools of the whole layout.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { count } from '../../base/format.ts';
import { PER_ROW_MAX } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { Opener, Panel } from '../base/bits.tsx';
import { Icon, type IconName } from '../base/icon.tsx';
import { hide, pin, resize, step, topsNow } from './layout.ts';

function Choice({ word, most, now, set }: { word: string; most: number; now: number; set: (n: number) => void }) {
	return (
		<span class="options sizes">{word}<span class="segmented" role="group" aria-label={word}>
			{Array.from({ length: most }, (_, i) => (
				<button key={i} type="button" aria-pressed={now === i + 1}
					onClick={() => set(i + 1)}>{i + 1}</button>))}</span></span>
	);
}

interface MoreOptions {
	/** Display name of the chart. */
	name: string;
	/** The metric of a chart that can be arranged. */
	metric: string | null;
	save: (kind: 'png' | 'svg') => void;
	/** Opens the figure dialog. */
	figure: () => void;
}

/** Saves a chart; pins, hides, moves and resizes it. */
export function More({ name, metric, save, figure }: MoreOptions) {
	const open = useSignal(false);
	const box = useRef<HTMLSpanElement>(null);
	const label = `More of ${name}`;
	const card = () => box.current!.closest('.chart')!;
	const item = (word: string, icon: IconName, act: () => void) => (
		<li><button type="button" class="item" onClick={() => {
			open.value = false;
			act();
		}}><Icon name={icon} />{word}</button></li>
	);
	const places = (key: string) => {
		const top = topsNow().includes(key);
		const hidden = s.view.value.hidden.includes(key);
		const [w, h] = s.sizeOf(key);
		return (
			<>
				{item(top ? 'Take from the top' : 'Pin to the top', 'pin', () => pin(key, !top))}
				{item(hidden ? 'Show' : 'Hide', 'eye', () => hide(key, !hidden))}
				{item('Move before', 'back', () => step(key, card(), -1))}
				{item('Move after', 'move', () => step(key, card(), 1))}
				<li><Choice word="Columns" most={4} now={w} set={(n) => resize(key, n, h)} /></li>
				<li><Choice word="Rows" most={3} now={h} set={(n) => resize(key, w, n)} /></li>
			</>
		);
	};
	return (
		<span ref={box}><Opener word={label} icon="more" bare open={open} panel={(close) => (
			<Panel label={label} close={close}><ul class="menu">
				{item('Make a figure', 'edit', figure)}
				{item('Save as PNG', 'download', () => save('png'))}
				{item('Save as SVG', 'download', () => save('svg'))}
				{metric !== null && places(metric)}
			</ul></Panel>
		)} /></span>
	);
}

/** Columns, hidden charts, and the way back to the default layout. */
export function LayoutTools() {
	const { perRow, tops, hidden, order, sizes } = s.view.value;
	const open = useSignal(false);
	const arranged = perRow || tops || order.length || Object.keys(sizes).length;
	return (
		<>
			<select class="wide" aria-label="Columns of charts" value={String(perRow)}
				onChange={(e) => s.go({ perRow: Number(e.currentTarget.value) })}>
				<option value="0">Columns: automatic</option>
				{Array.from({ length: PER_ROW_MAX }, (_, i) => (
					<option key={i} value={i + 1}>{count(i + 1, 'column')}</option>))}</select>
			{hidden.length > 0 && <Opener word={`${hidden.length} hidden`} open={open} panel={(close) => (
				<Panel label="Hidden charts" close={close}><ul class="menu">{hidden.map((k) => (
					<li key={k}><button type="button" class="item" onClick={() => hide(k, false)}>
						<Icon name="eye" />Show {k}</button></li>))}
				</ul></Panel>
			)} />}
			{arranged ? <button type="button" class="quiet" onClick={() =>
				s.go({ perRow: 0, tops: null, order: [], sizes: {} })}>Default layout</button> : null}
		</>
	);
}
