// SPDX-License-Identifier: Apache-2.0
// Header of a run's page: name and status; users with write access rename and delete it.
import { useSignal } from '@preact/signals';
import type { Run, RunDetail } from '../../base/types.ts';
import { mayWrite } from '../../state/access.ts';
import * as s from '../../state/index.ts';
import { archiveRuns } from '../../state/saved/bulk.ts';
import { bringBack, changeRun, removeRun, seriesAddress, stopRun } from '../../state/run.ts';
import { shared } from '../../state/shares.ts';
import { useKey } from '../base/asking.ts';
import { followed, Key, Opener } from '../base/bits.tsx';
import { Menu, type MenuItem } from '../base/menu.tsx';
import { Says } from '../base/jump.tsx';
import { NameForm } from '../base/nameform.tsx';
import { Share } from '../base/share.tsx';
import { statements, type Statement } from '../base/says.ts';
import { edited } from './notes.tsx';
import { Facts } from './facts.tsx';
import { Register } from './register.tsx';

/** The previous or next run in table order. */
function besides(id: string, by: 1 | -1): Run | undefined {
	const at = s.rows.value.findIndex((o) => o.id === id);
	return at < 0 ? undefined : s.rows.value[at + by];
}

function editNotes(id: string): void {
	s.go({ tab: '' });
	edited.value = id;
}

/** Links to the previous and next run; N and n on the keyboard, and e edits the notes. */
function Others({ id }: { id: string }) {
	const open = (to: Run | undefined) => to && s.openRun(to.id);
	useKey('n', () => open(besides(id, 1)));
	useKey('N', () => open(besides(id, -1)));
	useKey('e', () => editNotes(id));
	const way = (word: string, sign: string, to: Run | undefined) => to && <a class="button bare"
		href={s.runAddress(to.id)} aria-label={word} title={`${word}: ${s.nameOf(to.id, to)}`}
		onClick={followed(() => s.openRun(to.id))}>{sign}</a>;
	return <>{way('Previous run', '‹', besides(id, -1))}{way('Next run', '›', besides(id, 1))}</>;
}

/** What is said of a run, and first its status. */
function withStatus(r: Run): Statement[] {
	const list = statements(r);
	return r.status !== 'finished' || r.deleted || list.some((t) => t.alert === null || t.kind === 'failed') ? list
		: [{ kind: r.status, text: r.status, alert: null }, ...list];
}

/** The tag by which W&B's client finds its run; only such a program can be asked to stop. */
const WANDB_ID = 'wandb.run_id';

function Stop({ r, fail }: { r: RunDetail; fail: (e: Error) => void }) {
	const asked = useSignal(false);
	return asked.value ? <span class="dim" role="status">Asked to stop</span>
		: <button type="button" title="Asks the program to stop; it does at the next line that it logs"
			onClick={() => stopRun(r.id).then(() => (asked.value = true), fail)}>Stop</button>;
}

export function Head({ r }: { r: RunDetail }) {
	const naming = useSignal(false);
	const wrong = useSignal('');
	const name = async (text: string) => {
		s.opened.value = { ...r, ...(await changeRun(r.id, { name: text })) };
	};
	const remove = () => removeRun(r).catch((e: Error) => (wrong.value = `It was not deleted: ${e.message}`));
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
	const registering = useSignal(false);
	const may = mayWrite(r.experiment);
	const baseline = s.baseline.value?.id === r.id;
	const items: MenuItem[] = [
		...may ? [{ word: 'Rename', icon: 'edit' as const, act: () => (naming.value = true) }] : [],
		{ word: baseline ? 'Unset baseline' : 'Set as baseline', icon: 'compare', act: () =>
			s.toggleBaseline(r) },
		...shared.value ? [] : [{ word: 'Download CSV', icon: 'download' as const, act: () =>
			location.assign(seriesAddress(r.id)) }],
		...may ? [{ word: s.isArchived(r) ? 'Unarchive' : 'Archive', icon: 'archive' as const,
			act: () => void away() },
		{ word: 'Delete', icon: 'trash' as const, act: () => void remove(), danger: true }] : [],
	];
	return (
		<div class="runhead">
			{may && <button type="button" class="unseen" aria-keyshortcuts="e"
				onClick={() => editNotes(r.id)}>Edit the notes <kbd>e</kbd></button>}
			<h1><Key look={s.looks.value.byRun.get(r.id)} on />
				{naming.value
					? <NameForm was={r.name} save={name} close={() => (naming.value = false)} />
						: r.name}
				<Says r={r} list={withStatus(r)} /></h1>
			{baseline && <span class="tagged">Baseline</span>}
			{wrong.value && <span class="say problem" role="alert">{wrong.value}</span>}
			<span class="buttons">
				{!shared.value && <AllRuns />}
				{may && r.status === 'running' && r.tags[WANDB_ID] !== undefined && <Stop r={r}
					fail={(e) => (wrong.value = `It was not asked to stop: ${e.message}`)} />}
				<Others id={r.id} />
				{!r.deleted && <Share kind="run" target={[r.id]} />}
				{may && (r.deleted
					? <button type="button" class="primary" onClick={() =>
						void back()}>Restore</button>
					: <Opener word="Register model" open={registering}
						panel={(close) => <Register r={r} close={close} />} />)}
				{!r.deleted && <Menu label={`More for ${r.name}`} items={items} />}
			</span>
			<Facts r={r} />
		</div>
	);
}

function AllRuns() {
	const to = { page: 'compare', run: null } as const;
	return <a class="button" href={s.addressOf(to)} onClick={followed(() => s.go(to, true))}>All runs</a>;
}
