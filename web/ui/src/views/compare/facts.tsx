// SPDX-License-Identifier: Apache-2.0
// Summary line above the table: number of runs, problems, common params.
import { count, cut, pairText } from '../../base/format.ts';
import { fellOut } from '../../base/goal.ts';
import { EVERY, PLAIN, SHOW_MAX } from '../../base/url.ts';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { paramsLeft, picking } from '../table/focus.ts';
import { wayOf } from '../base/jump.tsx';
import { lazy } from '../base/lazy.tsx';
import { statements } from '../base/says.ts';

const ViewShown = lazy(() => import('../header/viewshown.tsx').then((m) => m.ViewShown));
const SAME_SHOWN = 14;

/** Shows why the only run of a kind is of it, or lists the runs of the kind alone. */
function showKind(list: readonly Run[]): void {
	const r = list[0]!;
	const say = statements(r)[0];
	if (list.length === 1) return (say && wayOf(r, say) || (() => s.openRun(r.id, '')))();
	s.go({ shown: list.slice(0, SHOW_MAX).map((x) => x.id.slice(0, 8)), only: true });
}

/** Counts the runs of each notable kind; a count leads to its runs. */
function Kinds({ list }: { list: readonly Run[] }) {
	const kind = (look: string, word: string, is: (r: Run) => boolean) => {
		const own = list.filter(is);
		return own.length > 0 && <button type="button" class={look}
			title={own.length > 1 ? 'List these runs alone' : `Show ${s.nameOf(own[0]!.id, own[0])}`}
			onClick={() => showKind(own)}>{own.length} {word}</button>;
	};
	return (
		<>
			{kind('running', 'running', (r) => r.status === 'running')}
			{kind('failed', 'failed', (r) => r.status === 'failed')}
			{kind('nan', 'diverged', (r) => r.status !== 'failed' && fellOut(r))}
		</>
	);
}

/** Number of archived runs, with a button that lists them. */
function Away() {
	const n = s.runs.value.filter(s.isArchived).length;
	const { archived } = s.view.value;
	return n > 0 || archived ? <button type="button" class="quiet" aria-pressed={archived}
		onClick={() => s.go({ archived: !archived })}>{archived ? 'Hide' : 'Show'} {n} archived</button> : null;
}

/** Other presentations: more runs in the charts, nested runs. */
function Choices({ list }: { list: readonly Run[] }) {
	const on = s.shown.value.length;
	const v = s.view.value;
	const { flat, shown } = v;
	return (
		<>
			{on < list.length && (
				<span>{on} in the charts {on < SHOW_MAX && <button type="button" class="quiet"
					onClick={() => s.go({ shown: EVERY })}>
					{list.length <= SHOW_MAX ? 'Show all' : `Show ${SHOW_MAX}`}</button>}</span>
			)}
			{s.haveParents.value && <button type="button" class="quiet" aria-pressed={flat}
				onClick={() => s.go({ flat: !flat })}>Flat list</button>}
			<Away />
			{(v.only || (on > 0 && on < list.length)) && !s.isGrouped.value && <button type="button"
				class="quiet" aria-pressed={v.only}
				onClick={s.toggleOnly}>{v.only ? 'List all runs' : 'List these alone'}</button>}
			{v.baseline !== null && <button type="button" class="quiet"
				title="Measure by the best run again"
				onClick={() => s.go({ baseline: null })}>Baseline {s.baseline.value?.name} ✕</button>}
			{shown !== null && !v.only && <button type="button" class="quiet"
				onClick={() => s.setShown(null)}>Reset charts</button>}
		</>
	);
}

function Same() {
	const { differ, same } = s.split.value;
	const text = same.map(([k, v]) => `${k} ${v}`).join(' · ');
	const none = !differ.length ? '' : differ.length === 1 ? 'the one param differs'
		: `all ${differ.length} params differ`;
	return (
		<span class="same" title={text}>
			{s.runs.value.length < 2 ? '' : !same.length ? none
				: <>same in all: {same.slice(0, SAME_SHOWN).map(([k, v], i) => (
				<span key={k}>{i > 0 && '· '}{k.replace(/_/g, ' ')} <b>{cut(pairText(k, v))}</b> </span>
			))}{same.length > SAME_SHOWN && `+ ${same.length - SAME_SHOWN} more`}</>}
		</span>
	);
}

export function Facts() {
	const list = s.rows.value;
	const all = s.totalRuns.value;
	const groups = s.runGroups.value.filter((g) => !g.alone).length;
	return (
		<p class="facts">
			<b>{groups > 0 && `${count(groups, 'group')} of `}
				{list.length === all ? count(all, 'run') : `${list.length} of ${count(all, 'run')}`}</b>
			{!groups && s.view.value.group.length > 0 && <span>no two with equal values: no groups</span>}
			{s.loadingMore.value && <span>loading more</span>}
			{s.notHeld.value
				&& <span>the newest ones; a filter such as <code>params.lr = 0.1</code> finds the others
					</span>}
			{s.view.value.saved && s.view.value.saved !== PLAIN && <ViewShown />}
			<Kinds list={list} />
			<Choices list={list} />
			<Same />
			{paramsLeft.value > 0 && <button type="button" class="quiet wide" title="Choose columns"
				onClick={() => (picking.value = true)}>{count(paramsLeft.value, 'more param')}</button>}
		</p>
	);
}
