// SPDX-License-Identifier: Apache-2.0
// Alerts of the experiment and their rules, which users with write access edit.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { when } from '../../base/format.ts';
import {
	dropRule, found, loadAlerts, makeRule, rules, type RuleKind, type RuleWish,
} from '../../state/saved/alerts.ts';
import * as s from '../../state/index.ts';
import { filled, Str } from '../../strings/en.ts';
import { followed } from '../base/bits.tsx';
import { Icon } from '../base/icon.tsx';
import { Header } from '../header/header.tsx';
import '../base/later.ts';

const KINDS: [RuleKind | 'below', string][] = [['metric', Str.AMetricRisesAbove], ['below', Str.AMetricFallsBelow],
	['nan', Str.AMetricIsNaNOrInfinite], ['failed', Str.ARunFailsOrIsKilled],
	['silent', Str.ARunSendsNoDataFor], ['done', Str.ARunFinishes]];

function ruleText(r: RuleWish): string {
	const where = r.experiment === null ? Str.inEveryExperiment : '';
	if (r.kind === 'metric') return (r.above !== null ? filled(Str.xAboveX, r.metric, r.above)
		: filled(Str.xBelowX, r.metric, r.below)) + where;
	if (r.kind === 'nan') return filled(Str.xNotFiniteX, r.metric || Str.AnyMetric, where);
	if (r.kind === 'silent') return filled(Str.SilentForXSX, r.seconds, where);
	return (r.kind === 'done' ? Str.Finished : Str.FailedOrKilled) + where;
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
			<select aria-label={Str.When} value={kind.value}
				onChange={(e) => (kind.value = e.currentTarget.value as RuleKind)}>
				{KINDS.map(([k, text]) => <option key={k} value={k}>{text}</option>)}</select>
			{(ofMetric || kind.value === 'nan') && <input aria-label={Str.Metric} value={metric.value}
				placeholder={ofMetric ? Str.Metric : Str.AnyMetric} list="alertkeys"
				onInput={(e) => (metric.value = e.currentTarget.value)} />}
			{bounded && <input aria-label={ofMetric ? Str.Bound : Str.Seconds} inputMode="decimal"
				placeholder={ofMetric ? Str.Value : Str.Seconds} value={bound.value}
				onInput={(e) => (bound.value = e.currentTarget.value)} />}
			<datalist id="alertkeys">{s.metricKeys.value.slice(0, 200).map((k) =>
				<option key={k} value={k} />)}</datalist>
			<label><input type="checkbox" checked={all.value}
				onChange={() => (all.value = !all.value)} /> {Str.InEveryExperiment}</label>
			<button type="submit" disabled={bounded && (bound.value.trim() === ''
				|| !Number.isFinite(Number(bound.value)))}>{Str.AddRule}</button>
		</form>
	);
}

function FoundList() {
	const list = found.value;
	if (!list) return null;
	if (!list.length) return <p class="dim">{Str.NoAlertsYet}</p>;
	return (
		<ul class="files found">{list.map((a) => (
			<li key={a.id}><a href={s.runAddress(a.run)} onClick={followed(() => s.openRun(a.run))}>
				{a.runName || a.run.slice(0, 8)}</a>: {a.text} <span class="dim">{when(a.time)}
				{a.posted !== null ? Str.notified : a.due ? Str.pending : ''}</span></li>))}</ul>
	);
}

function Alerts() {
	const said = useSignal('');
	const rev = s.liveRev.value;
	useEffect(() => void loadAlerts(), [s.experiment.value, rev]);
	const act: Act = (what) => {
		said.value = '';
		what().catch((e: unknown) => (said.value = (e as Error).message));
	};
	const mayWrite = s.session.value?.mayWrite === true;
	return (
		<>
			<section class="box"><FoundList /></section>
			<section class="box">
				<h2>{Str.AlertWhen}</h2>
				<ul class="files">{rules.value?.map((r) => (
					<li key={r.id} class="savedline"><span class="grow">{ruleText(r)}</span>
						{mayWrite && <button type="button" class="quiet"
							aria-label={filled(Str.DeleteRuleX, ruleText(r))}
							onClick={() => act(() => dropRule(r.id))}><Icon name="close" />
						</button>}</li>))}</ul>
				{mayWrite && <RuleForm act={act} />}
				{said.value && <p class="problem" role="alert">{said.value}</p>}
			</section>
		</>
	);
}

export function AlertsPage() {
	useEffect(() => {
		document.title = Str.AlertsDptrack;
	}, []);
	return <><main class="page alerts"><h1>{Str.Alerts} <small class="dim">{s.experiment.value}</small></h1>
		<Alerts /></main><Header /></>;
}
