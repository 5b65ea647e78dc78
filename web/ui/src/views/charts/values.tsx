// SPDX-License-Identifier: Apache-2.0
// Values of a chart as a table: the lines at some positions, and their extremes.
import { count, valueText } from '../../base/format.ts';
import { evenTicks } from '../../charts/base/ticks.ts';
import { valueAt } from '../../base/series.ts';
import type { ChartLine } from '../../charts/line/index.ts';
import { DataTable } from '../base/datatable.tsx';

const PLACES = 12;

/** A step or an epoch, with the precision of a chart. */
const isWhole = (x: number) => Math.abs(x - Math.round(x)) < 1e-6;

/** Both ends of the lines, and round positions between them; integers if all points are. */
function places(lines: readonly ChartLine[]): number[] {
	const ends = lines.flatMap((l) => (l.xs.length ? [l.xs[0]!, l.xs[l.xs.length - 1]!] : []));
	const [from, to] = [Math.min(...ends), Math.max(...ends)];
	if (!(from <= to)) return [];
	return [...new Set([from, ...evenTicks(from, to, PLACES, lines.every((l) => l.xs.every(isWhole))), to])];
}

interface Options {
	/** Display name of the chart. */
	name: string;
	/** The metric whose unit the values have. */
	of: string;
	lines: readonly ChartLine[];
	formatX: (x: number) => string;
	/** What each line is. */
	each?: string;
	close: () => void;
}

export function Values({ of, name, lines, formatX, each = 'run', close }: Options) {
	const text = valueText(of);
	const said = (v: number | null) => (v === null ? '–' : Number.isNaN(v) ? 'not finite' : text(v));
	const at = places(lines);
	const end = (l: ChartLine, pick: typeof Math.min) => {
		const finite = l.ys.filter(Number.isFinite);
		return finite.length ? pick(...finite) : null;
	};
	const row = (l: ChartLine) => ({ id: l.id, name: l.name, cells: [said(end(l, Math.min)), said(end(l, Math.max)),
		...at.map((x) => said(valueAt(l, x)))] });
	return <DataTable name={name} caption={`${name}: ${count(lines.length, 'line')}`}
		head={[each, 'Lowest', 'Highest', ...at.map(formatX)]} rows={lines} row={row} close={close} />;
}
