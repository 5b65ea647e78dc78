// One tag for many runs at once: those in the charts, or all that the table lists.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import * as s from '../../state/index.ts';
import { count } from '../../base/format.ts';
import { keyProblem } from '../run/tags.tsx';

export function BulkTag({ close }: { close: () => void }) {
	const box = useRef<HTMLDivElement>(null);
	const key = useSignal('');
	const value = useSignal('');
	const whole = useSignal(false);
	const done = useSignal<number | null>(null);
	const said = useSignal<{ text: string; bad: boolean } | null>(null);
	useEffect(() => {
		box.current?.querySelector('input')?.focus();
		const away = (e: MouseEvent) => {
			if (!box.current?.parentElement?.contains(e.target as Node)) close();
		};
		addEventListener('mousedown', away);
		return () => removeEventListener('mousedown', away);
	}, []);
	const list = whole.value ? s.rows.value : s.shown.value;
	const change = async (v: string | null) => {
		const wrong = keyProblem(key.value);
		if (wrong) return void (said.value = { text: wrong, bad: true });
		const k = key.value.trim();
		const ids = list.filter((r) => v !== null || s.tagsOf(r)[k] !== undefined).map((r) => r.id);
		done.value = 0;
		said.value = null;
		const refused = await s.changeTag(ids, k, v, (n) => (done.value = n));
		done.value = null;
		said.value = refused.length ? { text: `${count(refused.length, 'run')} refused: ${refused[0]!.why}`, bad: true }
			: { text: `${v === null ? 'removed from' : 'set on'} ${count(ids.length, 'run')}`, bad: false };
	};
	return (
		<div class="picker" ref={box} role="dialog" aria-label="Tag runs" onKeyDown={(e) => {
			if (e.key !== 'Escape') return;
			close();
			(box.current?.parentElement?.querySelector('button') as HTMLElement | null)?.focus();
		}}><form class="bulktag" onSubmit={(e) => {
			e.preventDefault();
			void change(value.value);
		}}>
			<input aria-label="Tag" placeholder="tag" list="bulkkeys" value={key.value} onInput={(e) => (key.value = e.currentTarget.value)} />
			<input aria-label="Value" placeholder="value" value={value.value} onInput={(e) => (value.value = e.currentTarget.value)} />
			<datalist id="bulkkeys">{s.tagKeys.value.map((k) => <option key={k} value={k} />)}</datalist>
			<label><input type="radio" name="of" checked={!whole.value} onChange={() => (whole.value = false)} /> the {count(s.shown.value.length, 'run')} in the charts</label>
			<label><input type="radio" name="of" checked={whole.value} onChange={() => (whole.value = true)} /> all {count(s.rows.value.length, 'run')} of the table</label>
			<span class="options">
				<button type="submit" disabled={done.value !== null || !list.length}>set</button>
				<button type="button" disabled={done.value !== null || !list.length} onClick={() => void change(null)}>remove</button>
				<span role="status">{done.value !== null && <span class="dim">{done.value} of {list.length}</span>}
					{said.value && <span class={said.value.bad ? 'problem' : 'dim'}>{said.value.text}</span>}</span>
			</span>
		</form></div>
	);
}
