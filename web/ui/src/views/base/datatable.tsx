// What a chart has drawn as a table, in a panel: a row for each of its lines or points.
import { Panel } from './bits.tsx';
import './later.ts';

const ROWS_MAX = 200;

interface Row {
	id: string;
	/** Stands at the head of the row; a link where there is an address. */
	name: string;
	href?: string;
	cells: string[];
}

interface Options<T> {
	/** Of the chart, for people. */
	name: string;
	caption: string;
	/** Over the names, then over the cells. */
	head: readonly string[];
	rows: readonly T[];
	row: (of: T) => Row;
	close: () => void;
}

export function DataTable<T>({ name, caption, head, rows, row, close }: Options<T>) {
	return (
		<Panel label={`Values of ${name}`} close={close}>
			<button type="button" class="quiet" onClick={close}>close</button>
			<div class="values" tabIndex={0} role="region" aria-label={`Values of ${name}`}><table>
				<caption>{caption}{rows.length > ROWS_MAX && `, ${ROWS_MAX} of them here`}</caption>
				<thead><tr>{head.map((h, i) => <th key={i} scope="col">{h}</th>)}</tr></thead>
				<tbody>{rows.slice(0, ROWS_MAX).map(row).map((r) => (
					<tr key={r.id}>
						<th scope="row">{r.href ? <a href={r.href}>{r.name}</a> : r.name}</th>
						{r.cells.map((c, i) => <td key={i} class="num">{c}</td>)}</tr>
				))}</tbody>
			</table></div>
		</Panel>
	);
}
