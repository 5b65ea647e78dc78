// The head of a run's page: its name and how it ended; for those who may write, another name, and the end of it.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import * as api from '../../state/api.ts';
import type { RunDetail } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { Key, Shape, statements } from '../base/bits.tsx';
import { jumpTo } from '../base/jump.ts';

function Rename({ r, close }: { r: RunDetail; close: () => void }) {
	const text = useSignal(r.name);
	const wrong = useSignal('');
	const box = useRef<HTMLInputElement>(null);
	useEffect(() => box.current?.select(), []);
	const save = async () => {
		if (text.value.trim() === '') return void (wrong.value = 'A run needs a name.');
		try {
			s.opened.value = { ...r, ...(await api.changeRun(r.id, { name: text.value.trim() })) };
			close();
		} catch (e) {
			wrong.value = (e as Error).message;
		}
	};
	return (
		<form class="tagform rename" onSubmit={(e) => {
			e.preventDefault();
			void save();
		}} onKeyDown={(e) => e.key === 'Escape' && close()}>
			<input ref={box} aria-label="Name" value={text.value} onInput={(e) => (text.value = e.currentTarget.value)} />
			<button type="submit">save</button>
			<button type="button" class="quiet" onClick={close}>cancel</button>
			{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}
		</form>
	);
}

export function Head({ r }: { r: RunDetail }) {
	const naming = useSignal(false);
	const wrong = useSignal('');
	const remove = async () => {
		try {
			await s.removeRun(r);
		} catch (e) {
			wrong.value = `It was not deleted: ${(e as Error).message}`;
		}
	};
	return (
		<h1><Key look={s.looks.value.byRun.get(r.id)} on />{naming.value ? <Rename r={r} close={() => (naming.value = false)} /> : r.name}
			<span class="says">{statements(r).map((t) => t.alert
				? <button type="button" class={'say ' + t.kind} onClick={() => jumpTo(r, t.alert!)}><Shape kind={t.kind} />{t.text}</button>
				: <span class={'say ' + t.kind}><Shape kind={t.kind} />{t.text}</span>)}</span>
			{wrong.value && <span class="say problem" role="alert">{wrong.value}</span>}
			<span class="buttons">
				{s.session.value?.mayWrite === true && <>
					<button type="button" onClick={() => (naming.value = !naming.value)}>rename</button>
					<button type="button" onClick={() => void remove()}>delete</button>
				</>}
				<a class="button" href={s.addressOf({ page: 'compare', run: null })} onClick={(e) => {
					e.preventDefault();
					s.go({ page: 'compare', run: null }, true);
				}}>all runs</a>
				<a class="button" href={api.seriesAddress(r.id)} download>CSV</a>
			</span>
		</h1>
	);
}
