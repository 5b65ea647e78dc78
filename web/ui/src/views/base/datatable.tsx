// SPDX-License-Identifier: Apache-2.0
// Values of a chart as a table in a panel, one row per line or point; all rows are copied or saved.
import { useSignal } from '@preact/signals';
import { Panel } from './bits.tsx';
import { copy } from './copytext.tsx';
import { Icon } from './icon.tsx';
import { saveCsv } from './save.ts';
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
	const said = useSignal('');
	const title = caption + (rows.length > ROWS_MAX ? `, ${ROWS_MAX} of them here` : '');
	const all = () => [head, ...rows.map(row).map((r) => [r.name, ...r.cells])];
	const put = async () => void (said.value = await copy(all().map((l) => l.join('\t')).join('\n')) ? 'Copied'
		: 'The browser does not allow it: save the CSV');
	return (
		<Panel label={`Values: ${name}`} close={close}>
			<span class="options valuesbar"><b aria-hidden="true">{title}</b><span class="grow" />
				<span class="dim" role="status">{said.value}</span>
				<button type="button" onClick={() => void put()}><Icon name="copy" />Copy</button>
				<button type="button" onClick={() => saveCsv(all(), name)}>
					<Icon name="download" />CSV</button>
				<button type="button" class="bare" aria-label="Close" onClick={close}>
					<Icon name="close" /></button></span>
			<div class="values" tabIndex={0} role="region" aria-label={`Values: ${name}`}><table>
				<caption class="unseen">{title}</caption>
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
