// SPDX-License-Identifier: Apache-2.0
// Alerts of the experiment and their rules, which users with write access edit.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { when } from '../../base/format.ts';
import {
	dropRule, found, loadAlerts, makeRule, rules, type Found, type RuleKind, type RuleWish,
} from '../../state/saved/alerts.ts';
import { mayWrite } from '../../state/access.ts';
import * as s from '../../state/index.ts';
import { followed } from '../base/bits.tsx';
import { Icon } from '../base/icon.tsx';
import { Header } from '../header/header.tsx';
import { List, useAct, type Column } from '../base/lists/list.tsx';

const KINDS: [RuleKind | 'below', string][] = [['metric', 'A metric rises above'], ['below', 'A metric falls below'],
	['nan', 'A metric is NaN or infinite'], ['failed', 'A run fails or is killed'],
	['silent', 'A run sends no data for'], ['done', 'A run finishes']];

function ruleText(r: RuleWish): string {
	if (r.kind === 'metric')
		return r.above !== null ? `${r.metric} above ${r.above}` : `${r.metric} below ${r.below}`;
	if (r.kind === 'nan') return `${r.metric || 'Any metric'} not finite`;
	if (r.kind === 'silent') return `Silent for ${r.seconds} s`;
	return r.kind === 'done' ? 'Finished' : 'Failed or killed';
}

type Act = (what: () => Promise<void>) => void;

function RuleForm({ act }: { act: Act }) {
	const kind = useSignal<RuleKind | 'below'>('metric');
	const metric = useSignal(s.goal.value?.key ?? '');
	const bound = useSignal('');
	const all = useSignal(false);
	const ofMetric = kind.value === 'metric' || kind.value === 'below';
	const bounded = ofMetric || kind.value === 'silent';
	const make = () => {
		const n = Number(bound.value);
		return makeRule({ kind: kind.value === 'below' ? 'metric' : kind.value,
			experiment: all.value ? null : s.experiment.value,
			metric: ofMetric || kind.value === 'nan' ? metric.value.trim() : '',
			above: kind.value === 'metric' ? n : null, below: kind.value === 'below' ? n : null,
			seconds: kind.value === 'silent' ? n : null });
	};
	return (
		<form class="tagform" onSubmit={(e) => {
			e.preventDefault();
			act(make);
		}}>
			<select aria-label="When" value={kind.value}
				onChange={(e) => (kind.value = e.currentTarget.value as RuleKind)}>
				{KINDS.map(([k, text]) => <option key={k} value={k}>{text}</option>)}</select>
			{(ofMetric || kind.value === 'nan') && <input aria-label="Metric" value={metric.value}
				placeholder={ofMetric ? 'Metric' : 'Any metric'} list="alertkeys"
				onInput={(e) => (metric.value = e.currentTarget.value)} />}
			{bounded && <input aria-label={ofMetric ? 'Bound' : 'Seconds'} inputMode="decimal"
				placeholder={ofMetric ? 'Value' : 'Seconds'} value={bound.value}
				onInput={(e) => (bound.value = e.currentTarget.value)} />}
			<datalist id="alertkeys">{s.metricKeys.value.slice(0, 200).map((k) =>
				<option key={k} value={k} />)}</datalist>
			{mayWrite(null) && <label><input type="checkbox" checked={all.value}
				onChange={() => (all.value = !all.value)} /> In every experiment</label>}
			<button type="submit" disabled={bounded && (bound.value.trim() === ''
				|| !Number.isFinite(Number(bound.value)))}>Add rule</button>
		</form>
	);
}

const FOUND: readonly Column<Found>[] = [
	{ head: 'Run', cell: (a) => <a href={s.runAddress(a.run)} onClick={followed(() => s.openRun(a.run))}>
		{a.runName || a.run.slice(0, 8)}</a> },
	{ head: 'Alert', cell: (a) => a.text },
	{ head: 'Notified', cell: (a) => a.posted !== null ? when(a.posted) : a.due ? 'pending' : '' },
	{ head: 'Time', cell: (a) => when(a.time), num: true },
];

function Alerts() {
	const { act, said } = useAct();
	const of = s.experiment.value;
	const rev = s.liveRev.value;
	useEffect(() => void loadAlerts(), [of, rev]);
	return (
		<>
			<List label="Alerts" rows={found.value} id={(a) => a.id} columns={FOUND} none="No alerts yet" />
			<p class="dim">Failed runs, rules and run.alert() make alerts; serve --webhook posts them.</p>
			<h2>Alert when</h2>
			<List label="Rules" rows={rules.value} id={(r) => r.id} none="No rules yet"
				columns={[{ head: 'Rule', cell: ruleText },
					{ head: 'Where', cell: (r) => r.experiment ?? 'every experiment' }]}
				acts={(r) => mayWrite(r.experiment) && <button type="button" class="quiet"
					aria-label={`Delete rule: ${ruleText(r)}`}
					onClick={() => act(() => dropRule(r.id))}><Icon name="close" /></button>} />
			{mayWrite(of) && <RuleForm act={act} />}
			{said}
		</>
	);
}

export function AlertsPage() {
	useEffect(() => {
		document.title = 'Alerts · dptrack';
	}, []);
	return <><main class="page alerts"><h1>Alerts <small class="dim">{s.experiment.value}</small></h1>
		<Alerts /></main><Header /></>;
}
