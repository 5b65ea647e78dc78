// SPDX-License-Identifier: Apache-2.0
// A registered model: versions with their runs, metric and changes, and aliases, which users with write access set.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { decimalsFor, fixed, signed, when } from '../../base/format.ts';
import type { Direction } from '../../base/goal.ts';
import { versionLines, type Change, type VersionLine } from '../../base/registry.ts';
import * as s from '../../state/index.ts';
import { dropAlias, getModel, setAlias, type Model } from '../../state/saved/registry.ts';
import { Empty, followed } from '../base/bits.tsx';
import { Chooser } from '../base/chooser.tsx';
import { lazy } from '../base/lazy.tsx';
import { NameForm } from '../base/nameform.tsx';
import { pageOf } from './address.ts';

const Markdown = lazy(() => import('../base/markdown.tsx').then((m) => m.Markdown));
/** Maximum of listed changes of a version. */
const CHANGES_MAX = 4;
const ID_DIGITS = 8;

type Act = (what: () => Promise<void>) => Promise<void>;

function Aliases({ m, line, act }: { m: Model; line: VersionLine; act: Act }) {
	const naming = useSignal(false);
	const { version, aliases } = line.version;
	const { name, mayWrite } = m;
	return (
		<td>{aliases.map((a) => <span key={a} class="alias">{a}{mayWrite && <button type="button" class="quiet"
			aria-label={`Take the alias ${a} from version ${version}`}
			onClick={() => void act(() => dropAlias(name, a))}>✕</button>}</span>)}
			{mayWrite && (naming.value ? <NameForm was="" close={() => (naming.value = false)}
				save={(alias) => setAlias(name, alias, version).then(() => act(async () => {}))} />
				: <button type="button" class="quiet" aria-label={`An alias for version ${version}`}
					onClick={() => (naming.value = true)}>+</button>)}</td>
	);
}

function Source({ line }: { line: VersionLine }) {
	const { run, source } = line.version;
	if (line.run)
		return <td title={source}><a href={s.runAddress(line.run.id)}
			onClick={followed(() => s.openRun(line.run!.id))}>{line.run.name}</a>
			<p class="dim detail">{line.run.experiment}</p></td>;
	const gone = run && `${run.slice(0, ID_DIGITS)} (not found)`;
	return <td class="dim detail" title={source}>{gone || source}</td>;
}

function changeText({ name, was, now }: Change): string {
	if (now === null) return `${name} left out (${was})`;
	return was === null ? `${name} ${now}, new` : `${name} ${was} → ${now}`;
}

const sideLabel = (a: VersionLine, b: VersionLine) =>
	`Versions ${a.version.version} and ${b.version.version} side by side`;

function Changes({ line, before }: { line: VersionLine; before: VersionLine | undefined }) {
	const list = line.changes;
	if (!before || !list) return <td class="changes" />;
	const to = { ...pageOf(''), page: 'side' as const, experiment: line.run!.experiment,
		shown: [before.run!.id, line.run!.id] };
	return (
		<td class="changes">{list.length ? <span title={list.map(changeText).join('\n')}>
			{list.slice(0, CHANGES_MAX).map(changeText).join('; ')}
			{list.length > CHANGES_MAX && `; ${list.length - CHANGES_MAX} more`}</span>
			: <span class="dim">the same params and commit</span>}
			{before.run!.experiment === line.run!.experiment && before.run!.id !== line.run!.id
				&& <>{' '}<a href={s.addressOf(to)} aria-label={sideLabel(before, line)}
					onClick={followed(() => s.go(to, true))}>Side by side</a></>}</td>
	);
}

function Step({ line, dir, decimals }: { line: VersionLine; dir: Direction | null; decimals: number | null }) {
	const { step, since } = line;
	if (step === null) return <td class="num" />;
	const better = dir === 'max' ? step > 0 : step < 0;
	const word = !dir || Number.isNaN(step) || step === 0 ? '' : better ? 'better' : 'worse';
	return (
		<td class={'num step ' + word}>{signed(step, decimals)} {word}
			{since !== line.version.version - 1 && <p class="dim detail">since {since}</p>}</td>
	);
}

function Row({ m, line, before, decimals, act }: { m: Model; line: VersionLine; before: VersionLine | undefined;
	decimals: number | null; act: Act }) {
	const { version, stage, created, user, description, status } = line.version;
	return (
		<tr class="version" data-version={version}>
			<td data-name="Version">{version}{stage !== 'None' && <p class="dim detail">{stage}</p>}
				{status !== 'READY' && <p class="bad detail">{status}</p>}</td>
			<Aliases m={m} line={line} act={act} />
			<Source line={line} />
			<td class="num" data-name={m.goal?.key}>{fixed(line.value, decimals)}</td>
			<Step line={line} dir={m.goal?.dir ?? null} decimals={decimals} />
			<Changes line={line} before={before} />
			<td class="wide">{description}</td>
			<td class="num">{when(created)}{user && <p class="dim detail">{user}</p>}</td>
		</tr>
	);
}

function Versions({ m, act }: { m: Model; act: Act }) {
	const lines = versionLines(m.versions, m.runs, m.goal);
	const values = lines.flatMap((l) => l.value ?? []);
	const decimals = decimalsFor(values);
	if (!lines.length) return <Empty title="No versions yet" />;
	return (
		<div class="box scroll"><table>
			<thead><tr><th>Version</th><th class="left">Aliases</th><th class="left">Run</th>
				<th>{m.goal?.key ?? 'Metric'}</th><th>Difference</th>
				<th class="left">Changed since the previous version</th>
				<th class="left">Description</th><th>Registered</th></tr></thead>
			<tbody>{lines.map((l, i) => <Row key={l.version.version} m={m} line={l} before={lines[i + 1]}
				decimals={decimals} act={act} />)}</tbody>
		</table></div>
	);
}

/** How a program loads it: by alias if there is one. */
function addressIn(m: Model): string {
	const alias = m.aliases[0]?.alias;
	return `models:/${m.name}${alias ? '@' + alias : '/' + m.newest}`;
}

function MetricChooser({ m }: { m: Model }) {
	const choices = [...m.keys.keys()].sort().map((k) => ({ id: k, label: k }));
	const { goal } = m;
	if (!choices.length || !goal) return null;
	return (
		<p class="options"><Chooser name="Measured by" now={goal.key} list={choices}
			choose={(key) => s.go({ goal: key, dir: null })} />{' '}
			<button type="button" title="Better is higher or lower" onClick={() => s.go({ goal: goal.key,
				dir: goal.dir === 'max' ? 'min' : 'max' })}>
				{goal.dir === 'max' ? 'Max ↑' : goal.dir ? 'Min ↓' : 'Max or min?'}</button></p>
	);
}

export function OneModel({ name }: { name: string }) {
	const model = useSignal<Model | null>(null);
	const wrong = useSignal('');
	const { goal, dir } = s.view.value;
	const load = async () => {
		model.value = await getModel(name);
	};
	const act: Act = async (what) => {
		try {
			await what();
			await load();
			wrong.value = '';
		} catch (e) {
			wrong.value = (e as Error).message;
		}
	};
	useEffect(() => {
		document.title = `${name} · Models · dptrack`;
		void act(load);
	}, [goal, dir]);
	const m = model.value;
	const all = <a class="aside" href={s.addressOf(pageOf(''))} onClick={followed(() => s.go(pageOf(''), true))}>
		All models</a>;
	if (!m && wrong.value)
		return <Empty title="This model cannot be shown"><p>{wrong.value}</p><p>{all}</p></Empty>;
	if (!m) return <div class="wait" aria-busy="true" />;
	return (
		<>
			<h1>{name} {all}</h1>
			{wrong.value && <p class="problem" role="alert">{wrong.value}</p>}
			{m.description && <Markdown text={m.description} imageOf={() => null}
				meanwhile={<p>{m.description}</p>} />}
			{m.versions.length > 0 && <p class="dim">Loaded as <code>{addressIn(m)}</code></p>}
			<MetricChooser m={m} />
			<Versions m={m} act={act} />
			{m.more && <p class="dim">Older versions are left out: {m.versions.length} are shown.</p>}
		</>
	);
}
