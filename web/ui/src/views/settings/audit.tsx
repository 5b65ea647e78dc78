// SPDX-License-Identifier: Apache-2.0
// The audit log: who changed what, the newest first, by author and object.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { when } from '../../base/format.ts';
import * as s from '../../state/index.ts';
import { getAudit, type AuditEntry } from '../../state/saved/settings.ts';
import { followed } from '../base/bits.tsx';
import { List, useAct, type Column } from '../base/lists/list.tsx';

const OBJECTS = ['run', 'experiment', 'report', 'view', 'alert_rule', 'artifact', 'artifact_version', 'model',
	'registered_model', 'model_version', 'token', 'session', 'share', 'retention'];
/** Typing pauses that long before the list is asked for. */
const PAUSE_MS = 300;
/** Who it was where no person is known. */
const VIA: Record<string, string> = { environment: "the server's token", command: 'a command', open: 'no token needed',
	server: 'the server' };
const words = (t: string) => t.replaceAll('_', ' ');

const COLUMNS: readonly Column<AuditEntry>[] = [
	{ head: 'Who', cell: (e) => <>{e.author || VIA[e.via]}{e.author && e.via === 'command'
		&& <span class="dim"> (command)</span>}</> },
	{ head: 'Did', cell: (e) => words(e.action) + (e.object === 'session' ? '' : ' ' + words(e.object)) },
	{ head: 'What', cell: (e) => <>{e.object === 'run' && e.action !== 'purge' ? <a href={s.runAddress(e.id)}
		onClick={followed(() => s.openRun(e.id))}>{e.name || e.id}</a> : e.name || e.id}
		{e.detail && <p class="dim detail">{e.detail}</p>}</> },
	{ head: 'Experiment', cell: (e) => e.experiment },
	{ head: 'Time', cell: (e) => when(e.time), num: true },
];

export function Audit() {
	const [author, object, experiment] = [useSignal(''), useSignal(''), useSignal('')];
	const list = useSignal<AuditEntry[] | null>(null);
	const next = useSignal<string | null>(null);
	const { act, said } = useAct();
	const load = async (page: string | null) => {
		const wish = { author: author.value.trim(), object: object.value, experiment: experiment.value };
		const r = await getAudit(wish, page);
		if (wish.author !== author.value.trim() || wish.object !== object.value) return;
		list.value = [...page === null ? [] : list.value ?? [], ...r.entries];
		next.value = r.next_page_token;
	};
	useEffect(() => {
		const timer = setTimeout(() => act(() => load(null)), list.value ? PAUSE_MS : 0);
		return () => clearTimeout(timer);
	}, [author.value, object.value, experiment.value]);
	return (
		<>
			<p class="dim">Entries are only added. <code>dptrack audit --check</code> proves that none was
				changed or
				removed.</p>
			<p class="options">
				<input type="search" aria-label="Who" placeholder="Who (whole name)"
					value={author.value}
					onInput={(e) => (author.value = e.currentTarget.value)} />
				<select aria-label="What" value={object.value} onChange={(e) => (object.value =
					e.currentTarget.value)}>
					<option value="">Everything</option>
					{OBJECTS.map((o) => <option key={o} value={o}>{words(o)}s</option>)}</select>
				<select aria-label="Experiment" value={experiment.value}
					onChange={(e) => (experiment.value = e.currentTarget.value)}>
					<option value="">Every experiment</option>
					{s.experiments.value?.map((e) => <option
						key={e.id} value={e.name}>{e.name}</option>)}</select>
			</p>
			{said}
			<List label="Entries" rows={list.value} id={(e) =>
				String(e.seq)} columns={COLUMNS} none="No entries" />
			{next.value !== null && <p><button type="button" onClick={() => act(() => load(next.value))}>
				Older entries</button></p>}
		</>
	);
}
