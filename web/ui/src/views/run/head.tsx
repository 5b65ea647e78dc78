// The head of a run's page: its name and how it ended; for those who may write, another name, and the end of it.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { RunDetail } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { changeRun, removeRun, seriesAddress } from '../../state/run.ts';
import { Key } from '../base/bits.tsx';
import { Says } from '../base/jump.tsx';
import { statements } from '../base/says.ts';

function Rename({ r, close }: { r: RunDetail; close: () => void }) {
	const text = useSignal(r.name);
	const wrong = useSignal('');
	const box = useRef<HTMLInputElement>(null);
	useEffect(() => box.current?.select(), []);
	const save = async () => {
		if (text.value.trim() === '') return void (wrong.value = 'A run needs a name.');
		try {
			s.opened.value = { ...r, ...(await changeRun(r.id, { name: text.value.trim() })) };
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
			<input ref={box} aria-label="Name" value={text.value}
				onInput={(e) => (text.value = e.currentTarget.value)} />
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
			await removeRun(r);
		} catch (e) {
			wrong.value = `It was not deleted: ${(e as Error).message}`;
		}
	};
	return (
		<h1><Key look={s.looks.value.byRun.get(r.id)} on />
			{naming.value ? <Rename r={r} close={() => (naming.value = false)} /> : r.name}
			<Says r={r} list={statements(r)} />
			{wrong.value && <span class="say problem" role="alert">{wrong.value}</span>}
			<span class="buttons">
				{s.session.value?.mayWrite === true && <>
					<button type="button"
						onClick={() => (naming.value = !naming.value)}>rename</button>
					<button type="button" onClick={() => void remove()}>delete</button>
				</>}
				<a class="button" href={s.addressOf({ page: 'compare', run: null })} onClick={(e) => {
					e.preventDefault();
					s.go({ page: 'compare', run: null }, true);
				}}>all runs</a>
				<a class="button" href={seriesAddress(r.id)} download>CSV</a>
			</span>
		</h1>
	);
}
