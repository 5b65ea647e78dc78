// SPDX-License-Identifier: Apache-2.0
// Retention: what is deleted by itself, for all experiments and for single ones. A rule is saved after its dry run.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { bytes, count } from '../../base/format.ts';
import { mayRule } from '../../state/access.ts';
import * as s from '../../state/index.ts';
import { getRetention, previewRetention, putRetention } from '../../state/saved/settings.ts';
import type { Preview, Retention as Rules, Rule } from '../../state/saved/settings.ts';
import { AskButton, List, useAct, type Column } from '../base/lists/list.tsx';

const GIB = 2 ** 30;

/** A rule's parts in words; none: nothing is deleted. */
function ruleText(r: Rule): string {
	const kept = ` but of the best ${count(r.keep_best, 'run')}`;
	return [
		r.artifact_days !== null &&
			`files older than ${count(r.artifact_days, 'day')}${r.keep_best ? kept : ''}`,
		r.quota_bytes !== null && `the oldest files above ${bytes(r.quota_bytes)}`,
		r.trash_days !== null && `what is in the trash for ${count(r.trash_days, 'day')}`,
	].filter(Boolean).join('; ') || 'nothing';
}

/** Freed bytes of a dry run. */
function Freed({ p, space }: { p: Preview; space: string }) {
	const list = p.experiments.filter((e) => e.artifacts + e.runs + e.models > 0);
	return (
		<>
			<p role="status"><b>{bytes(p.artifact_bytes + p.trash_bytes)}</b> would be deleted
				now: {count(p.artifacts, 'file')} of runs,
				and {count(p.runs, 'run')} and {count(p.models, 'model')} of the trash.{space ===
					'reused'
					&& ' The database uses the space again.'}</p>
			<List label="Deletions" rows={list} id={(e) => e.id} columns={[
				{ head: 'Experiment', cell: (e) => e.experiment },
				{ head: 'Files', cell: (e) => e.artifacts, num: true },
				{ head: 'From the trash', cell: (e) => e.runs + e.models, num: true },
				{ head: 'Bytes', cell: (e) => bytes(e.artifact_bytes + e.trash_bytes), num: true },
				{ head: 'Kept runs', cell: (e) => `${e.kept_runs}, by ${e.goal ?? 'age'}`, num: true },
			]} />
		</>
	);
}

interface FormOptions {
	/** null: all. */
	experiment: string | null;
	rule: Rule;
	space: string;
	done: (r: Rules | null) => void;
}

function RuleForm({ experiment, rule, space, done }: FormOptions) {
	const now = useSignal(rule);
	const found = useSignal<Preview | null>(null);
	const { act, said } = useAct();
	const set = (part: Partial<Rule>) => {
		now.value = { ...now.value, ...part };
		found.value = null;
	};
	const field = (label: string, key: keyof Rule, unit: string, of = 1) => (
		<label>{label} <span><input type="number" min="0" step="any" placeholder={key === 'keep_best' ? '0' :
			'never'}
			value={now.value[key] === null ? '' : now.value[key]! / of} onInput={(e) => {
				const v = e.currentTarget.value.trim();
				set({ [key]: v === '' ? key === 'keep_best' ? 0 : null
					: of > 1 ? Math.round(Number(v) * of) : Number(v) });
			}} /> {unit}</span></label>
	);
	const dryRun = async () => {
		found.value = await previewRetention(experiment, now.value);
	};
	return (
		<form class="box form" aria-label="Rule" onSubmit={(e) => {
			e.preventDefault();
			act(found.value ? async () => done(await putRetention(experiment, now.value)) : dryRun);
		}}>
			<h2>{experiment ?? 'All experiments'}</h2>
			{field('Delete files of runs after', 'artifact_days', 'days')}
			{field('but keep those of the best', 'keep_best', 'runs')}
			{field('Delete the oldest files above', 'quota_bytes', 'GiB', GIB)}
			{field('Empty the trash after', 'trash_days', 'days')}
			<p class="dim">Runs with the tag <code>keep</code>, running ones and those of registered
				models keep their
				files. Points, params and notes of runs stay.</p>
			{found.value && <Freed p={found.value} space={space} />}
			{said}
			<p class="options"><button type="submit" class="primary">{found.value ? 'Save the rule' :
				'Dry run'}</button>
				<button type="button" onClick={() => done(null)}>Cancel</button></p>
		</form>
	);
}

interface Line {
	experiment: string | null;
	rule: Rule;
}

const COLUMNS: readonly Column<Line>[] = [
	{ head: 'Experiment', cell: (l) => l.experiment ?? 'All without rules of their own' },
	{ head: 'Deletes', cell: (l) => ruleText(l.rule) },
];

export function Retention() {
	const rules = useSignal<Rules | null>(null);
	const editing = useSignal<Line | null>(null);
	const { act, said } = useAct();
	const take = (r: Rules | null) => {
		rules.value = r ?? rules.value;
		editing.value = null;
	};
	useEffect(() => act(async () => take(await getRetention())), []);
	const r = rules.value;
	const lines: Line[] | null = r && [...mayRule(null) ? [{ experiment: null, rule: r.all }] : [],
		...r.experiments.map((e) => ({ experiment: e.experiment, rule: e }))];
	const others = s.experiments.value?.filter((e) => mayRule(e.name)
		&& !r?.experiments.some((o) => o.experiment === e.name)) ?? [];
	return (
		<>
			<p class="dim">The server deletes by these rules once an hour, each deletion is in the audit
				log.</p>
			{editing.value && r && <RuleForm key={editing.value.experiment} space={r.space} done={take}
				experiment={editing.value.experiment} rule={editing.value.rule} />}
			{said}
			<List label="Rules" rows={lines} id={(l) => l.experiment ?? ''} columns={COLUMNS}
				acts={(l) => <><button type="button" class="quiet"
					aria-label={`Change ${l.experiment ?? 'all'}`}
					onClick={() => (editing.value = l)}>Change</button>
					{l.experiment !== null && <AskButton label="Remove" word="Remove"
						title={`Remove the rules of ${l.experiment}?`}
						act={() => act(async () => take(await putRetention(l.experiment,
							null)))}>
						<p>The rules for all count there.</p></AskButton>}</>} />
			{r && others.length > 0 && <p><select aria-label="Rules for an experiment" value=""
				onChange={(e) => (editing.value = { experiment: e.currentTarget.value, rule: r.all })}>
				<option value="">Rules for one experiment …</option>
				{others.map((e) => <option key={e.id} value={e.name}>{e.name}</option>)}</select></p>}
		</>
	);
}
