// SPDX-License-Identifier: Apache-2.0
// Header of a run's page: name and status; users with write access rename and delete it.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Run, RunDetail } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { archiveRuns } from '../../state/saved/bulk.ts';
import { bringBack, changeRun, removeRun, seriesAddress } from '../../state/run.ts';
import { followed, Key, NameForm } from '../base/bits.tsx';
import { Says } from '../base/jump.tsx';
import { statements } from '../base/says.ts';

/** The previous or next run in table order. */
function besides(id: string, by: 1 | -1): Run | undefined {
	const at = s.rows.value.findIndex((o) => o.id === id);
	return at < 0 ? undefined : s.rows.value[at + by];
}

/** Links to the previous and next run; N and n on the keyboard. */
function Others({ id }: { id: string }) {
	useEffect(() => {
		const key = (e: KeyboardEvent) => {
			const typing = /^(INPUT|SELECT|TEXTAREA)$/.test((e.target as HTMLElement).tagName);
			const to = /^n$/i.test(e.key) && !typing && !e.ctrlKey && !e.metaKey && !e.altKey
				&& besides(id, e.key === 'n' ? 1 : -1);
			if (to) s.openRun(to.id);
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	}, [id]);
	const way = (word: string, to: Run | undefined) => to && <a class="button" href={s.runAddress(to.id)}
		title={s.nameOf(to.id, to)} onClick={followed(() => s.openRun(to.id))}>{word}</a>;
	return <>{way('previous run', besides(id, -1))}{way('next run', besides(id, 1))}</>;
}

export function Head({ r }: { r: RunDetail }) {
	const naming = useSignal(false);
	const wrong = useSignal('');
	const name = async (text: string) => {
		s.opened.value = { ...r, ...(await changeRun(r.id, { name: text })) };
	};
	const remove = () => removeRun(r)
		.catch((e: Error) => (wrong.value = `It was not deleted: ${e.message}`));
	const away = async () => {
		const out = await archiveRuns([r], !s.isArchived(r));
		wrong.value = out.why && `It was not changed: ${out.why}`;
	};
	const back = async () => {
		try {
			s.opened.value = { ...r, ...(await bringBack(r.id)) };
		} catch (e) {
			wrong.value = `It was not restored: ${(e as Error).message}`;
		}
	};
	return (
		<h1><Key look={s.looks.value.byRun.get(r.id)} on />
			{naming.value
				? <NameForm was={r.name} save={name} close={() => (naming.value = false)} /> : r.name}
			<Says r={r} list={statements(r)} />
			{wrong.value && <span class="say problem" role="alert">{wrong.value}</span>}
			<span class="buttons">
				{s.session.value?.mayWrite === true && (r.deleted
					? <button type="button" onClick={() => void back()}>restore</button> : <>
					<button type="button"
						onClick={() => (naming.value = !naming.value)}>rename</button>
					<button type="button" onClick={() => void away()}>
						{s.isArchived(r) ? 'unarchive' : 'archive'}</button>
					<button type="button" onClick={() => void remove()}>delete</button>
				</>)}
				<button type="button" aria-pressed={s.baseline.value?.id === r.id}
					title="the others are measured by it"
					onClick={() => s.toggleBaseline(r)}>baseline</button>
				<Others id={r.id} />
				<a class="button" href={s.addressOf({ page: 'compare', run: null })} onClick={(e) => {
					e.preventDefault();
					s.go({ page: 'compare', run: null }, true);
				}}>all runs</a>
				<a class="button" href={seriesAddress(r.id)} download>CSV</a>
			</span>
		</h1>
	);
}
