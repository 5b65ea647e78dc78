// SPDX-License-Identifier: Apache-2.0
// Line below a run's name: its position among the runs, times and progress.
import { count, duration, ordinal, short, when } from '../../base/format.ts';
import { bestOf, fellOut } from '../../base/goal.ts';
import { progressOf } from '../../base/progress.ts';
import { runTime } from '../../base/rank.ts';
import type { Run, RunDetail } from '../../base/types.ts';
import * as s from '../../state/index.ts';

/** Position of the run in its experiment. */
function standing(r: Run): string {
	const g = s.goal.value;
	const top = s.best.value;
	if (!g || !r.metrics[g.key]) return '';
	const v = bestOf(r.metrics[g.key], g.dir);
	const rank = s.rows.value.findIndex((x) => x.id === r.id);
	const lost = s.rows.value.filter(fellOut).length;
	const of = s.rows.value.length - lost;
	const ahead = top && top.id === r.id ? 'the best'
		: rank >= 0 && rank < of && s.view.value.sort === null && g.dir ? ordinal(rank + 1) : '';
	const without = lost ? ` (${lost} failed or diverged)` : '';
	const among = ahead && of > 1 ? `, ${ahead} of ${of} runs${without}` : '';
	return `${g.key} ${v === null ? '–' : short(v)}${among}`;
}

/** An imported or replayed run may be written faster than its points' times go. */
function longest(ran: number | undefined, span: number | null): number | undefined {
	return span === null ? ran : Math.max(ran ?? 0, span);
}

/** Progress and estimated time left. */
function way(r: Run): string {
	const p = progressOf(r);
	if (!p || (r.status !== 'running' && p.share === 1)) return '';
	return `${Math.floor(p.share * 100)} %` + (p.left === null ? '' : `, about ${duration(p.left)} left`);
}

/** Toggles points hidden by restarts. */
function RolledBack({ r }: { r: RunDetail }) {
	const shown = s.takenBack.value?.run === r.id;
	if (r.segments.length < 2) return null;
	return <button type="button" class="quiet" aria-pressed={shown}
		onClick={() => void s.showTakenBack(shown ? null : r)}>
		{shown ? 'Hide' : 'Show'} rolled-back points</button>;
}

export function Facts({ r }: { r: RunDetail }) {
	const t = longest(runTime(r), r.span);
	const step = r.last_step;
	const ranks = new Set(r.ranks).size;
	const failedAt = r.alerts.some((a) => a.kind === 'failed' && a.step !== null);
	const restarts = r.segments.length - 1;
	const facts = [
		standing(r), when(r.start_time), t === undefined ? '' : duration(t),
		step === null || failedAt ? '' : `step ${step}`, way(r),
		ranks > 1 ? `${ranks} ranks` : '',
		restarts > 0 ? `restarted ${restarts === 1 ? 'once' : count(restarts, 'time')}` : '',
			r.id.slice(0, 8), r.by && `by ${r.by}`, r.editor && r.editor !== r.by
			? `edited by ${r.editor}, ${when(r.edited)}` : '',
	].filter(Boolean);
	const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
	return <p class="dim runfacts" title={`Times of ${timeZone}`}>{facts.join(' · ')} <RolledBack r={r} /></p>;
}
