// The column picker: a search box and a windowed list of check boxes, so that thousands of metrics open at once.
import { useSignal } from '@preact/signals';
import * as s from '../../state/index.ts';
import { matchesWords } from '../../base/url.ts';
import { Panel } from '../base/bits.tsx';
import { columns, pickable } from './columns.tsx';

const LINE = 26;
const LINES = 14;

/** Columns whose label holds all of the words, those of the table first. */
function found(words: string, on: ReadonlySet<string>) {
	const all = pickable.value.filter((c) => matchesWords(words, [c.label]));
	return [...all.filter((c) => on.has(c.id)), ...all.filter((c) => !on.has(c.id))];
}

export function Picker({ close }: { close: () => void }) {
	const words = useSignal('');
	const top = useSignal(0);
	const on = new Set(columns.value.map((c) => c.id));
	const list = found(words.value, on);
	const from = Math.max(0, Math.floor(top.value / LINE) - 4);
	const toggle = (id: string) => {
		const ids = columns.value.map((c) => c.id).filter((i) => i !== 'name');
		s.go({ columns: on.has(id) ? ids.filter((i) => i !== id) : [...ids, id] });
	};
	return (
		<Panel label="Columns" close={close}>
			<input type="search" placeholder={`find among ${pickable.value.length} columns`}
				aria-label="Find a column"
				value={words.value} onInput={(e) => (words.value = e.currentTarget.value)} />
			<div class="lines" tabIndex={-1} onScroll={(e) => (top.value = e.currentTarget.scrollTop)}
				style={{ height: Math.min(list.length, LINES) * LINE + 'px' }}>
				<div class="tall" style={{ height: list.length * LINE + 'px' }}>
					{list.slice(from, from + LINES + 8).map((c, i) => (
						<label key={c.id} class="line"
							style={{ top: (from + i) * LINE + 'px' }}>
							<input type="checkbox" checked={on.has(c.id)}
								onChange={() => toggle(c.id)} />{c.label}
						</label>
					))}
				</div>
			</div>
			<button type="button" onClick={() => s.go({ columns: null })}>default columns</button>
		</Panel>
	);
}
