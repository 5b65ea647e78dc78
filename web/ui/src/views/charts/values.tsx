// What a chart has drawn as a table: the lines at some places of its axis, and their extremes.
import { count, valueText } from '../../base/format.ts';
import { valueAt } from '../../base/series.ts';
import type { ChartLine } from '../../charts/line/index.ts';
import { Panel } from '../base/bits.tsx';

const PLACES = 12;
const LINES_MAX = 50;

/** So many places between the ends of the lines. */
function places(lines: readonly ChartLine[]): number[] {
	const ends = lines.flatMap((l) => (l.xs.length ? [l.xs[0]!, l.xs[l.xs.length - 1]!] : []));
	const [from, to] = [Math.min(...ends), Math.max(...ends)];
	if (!(from <= to)) return [];
	return [...new Set(Array.from({ length: PLACES }, (_, i) => from + ((to - from) * i) / (PLACES - 1)))];
}

interface Options {
	/** Of the chart, for people. */
	name: string;
	/** The metric whose unit the values have. */
	of: string;
	lines: readonly ChartLine[];
	formatX: (x: number) => string;
	close: () => void;
}

export function Values({ of, name, lines, formatX, close }: Options) {
	const text = valueText(of);
	const said = (v: number | null) => (v === null ? '–' : text(v));
	const at = places(lines);
	const end = (l: ChartLine, pick: typeof Math.min) => {
		const finite = l.ys.filter(Number.isFinite);
		return finite.length ? pick(...finite) : null;
	};
	return (
		<Panel label={`Values of ${name}`} close={close}>
			<button type="button" class="quiet" onClick={close}>close</button>
			<div class="values" tabIndex={0} role="region" aria-label={`Values of ${name}`}><table>
				<caption>{name}: {count(lines.length, 'line')}</caption>
				<thead><tr><th scope="col">run</th><th scope="col">lowest</th>
					<th scope="col">highest</th>
					{at.map((x) => <th key={x} scope="col">{formatX(x)}</th>)}</tr></thead>
				<tbody>{lines.slice(0, LINES_MAX).map((l) => (
					<tr key={l.id}><th scope="row">{l.name}</th>
						<td class="num">{said(end(l, Math.min))}</td>
						<td class="num">{said(end(l, Math.max))}</td>
						{at.map((x) => <td key={x} class="num">{said(valueAt(l, x))}</td>)}</tr>
				))}</tbody>
			</table></div>
		</Panel>
	);
}
