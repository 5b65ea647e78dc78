// The column picker: a search box and a windowed list of check boxes, so that thousands of metrics open at once.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import * as s from '../../state/index.ts';
import { columns, pickable } from './columns.tsx';

const LINE = 26;
const LINES = 14;

export function Picker({ close }: { close: () => void }) {
	const words = useSignal('');
	const top = useSignal(0);
	const box = useRef<HTMLDivElement>(null);
	const input = useRef<HTMLInputElement>(null);
	useEffect(() => {
		input.current?.focus();
		const away = (e: MouseEvent) => {
			if (!box.current?.parentElement?.contains(e.target as Node)) close();
		};
		addEventListener('mousedown', away);
		return () => removeEventListener('mousedown', away);
	}, []);
	const on = new Set(columns.value.map((c) => c.id));
	const w = words.value.toLowerCase();
	const all = pickable.value.filter((c) => c.label.toLowerCase().includes(w));
	const list = [...all.filter((c) => on.has(c.id)), ...all.filter((c) => !on.has(c.id))];
	const from = Math.max(0, Math.floor(top.value / LINE) - 4);
	const part = list.slice(from, from + LINES + 8);
	const toggle = (id: string) => {
		const ids = columns.value.map((c) => c.id).filter((i) => i !== 'name');
		s.go({ columns: on.has(id) ? ids.filter((i) => i !== id) : [...ids, id] });
	};
	return (
		<div class="picker" ref={box} role="dialog" aria-label="Columns" onKeyDown={(e) => {
			if (e.key !== 'Escape') return;
			close();
			(box.current?.parentElement?.querySelector('button') as HTMLElement | null)?.focus();
		}}>
			<input ref={input} type="search" placeholder={`find among ${pickable.value.length} columns`} aria-label="Find a column"
				value={words.value} onInput={(e) => (words.value = e.currentTarget.value)} />
			<div class="lines" tabIndex={-1} onScroll={(e) => (top.value = e.currentTarget.scrollTop)}
				style={{ height: Math.min(list.length, LINES) * LINE + 'px' }}>
				<div class="tall" style={{ height: list.length * LINE + 'px' }}>
					{part.map((c, i) => (
						<label key={c.id} class="line" style={{ top: (from + i) * LINE + 'px' }}>
							<input type="checkbox" checked={on.has(c.id)} onChange={() => toggle(c.id)} />{c.label}
						</label>
					))}
				</div>
			</div>
			<button type="button" onClick={() => s.go({ columns: null })}>default columns</button>
		</div>
	);
}
