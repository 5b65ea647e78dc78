// SPDX-License-Identifier: Apache-2.0
// Values of a chart as a table in a panel, one row per line or point.
import { Panel } from './bits.tsx';
import './later.ts';

const ROWS_MAX = 200;

interface Row {
	id: string;
	/** Row heading; a link if there is an address. */
	name: string;
	href?: string;
	cells: string[];
}

interface Options<T> {
	/** Display name of the chart. */
	name: string;
	caption: string;
	/** Above the names, then above the cells. */
	head: readonly string[];
	rows: readonly T[];
	row: (of: T) => Row;
	close: () => void;
}

export function DataTable<T>({ name, caption, head, rows, row, close }: Options<T>) {
	return (
		<Panel label={`Values: ${name}`} close={close}>
			<button type="button" class="quiet" onClick={close}>Close</button>
			<div class="values" tabIndex={0} role="region" aria-label={`Values: ${name}`}><table>
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
