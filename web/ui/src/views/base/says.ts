// SPDX-License-Identifier: Apache-2.0
// Short texts about a run, the same in all views.
import type { Alert, Run } from '../../base/types.ts';
import { short } from '../../base/format.ts';
import { endedEarly } from '../../base/group.ts';
import { plainText } from '../../base/words.ts';

/** A statement about a run. */
export interface Statement {
	kind: string;
	text: string;
	/** Its alert, if any. */
	alert: Alert | null;
}

/** A short phrase for an alert at its place: its step unless the place is given in words. */
export function alertText(a: Alert, at = a.step === null ? '' : `step ${a.step}`): string {
	if (!at) return a.text;
	if (a.kind === 'nan') return a.text.replace(/step \d+/, at);
	if (a.kind === 'spike') return a.value === null ? a.text : `spike ${short(a.value)} at ${at}`;
	return a.kind === 'failed' ? `${a.kind} after ${at}` : `${a.kind} at ${at}`;
}

/** Statements about a run, most serious first, one per kind. */
export function statements(r: Run): Statement[] {
	const out: Statement[] = [];
	const seen = new Set<string>();
	const weight: Record<string, number> = { failed: 0, nan: 1, diverged: 2, spike: 3 };
	const early = [...r.alerts].sort((a, b) => weight[a.kind]! - weight[b.kind]! || keyRank(a) - keyRank(b)
		|| (a.step ?? 0) - (b.step ?? 0));
	for (const a of early) {
		if (seen.has(a.kind) || (a.kind === 'diverged' && seen.has('nan'))) continue;
		seen.add(a.kind);
		out.push({ kind: a.kind, text: alertText(a), alert: a });
	}
	if (r.deleted) return [{ kind: 'deleted', text: 'deleted', alert: null }, ...out];
	if (!(r.status === 'failed' && seen.has('failed')) && (r.status !== 'finished' || !out.length))
		out.unshift({ kind: r.status, text: statusText(r), alert: null });
	return out;
}

/** Returns true if a run ended badly: the reason is on its page. */
export const isBadEnd = ({ kind }: Statement) => kind === 'failed' || kind === 'killed';

/** The statement, with the reason that the program gave for a bad end; without one, other words. */
export function withReason(r: Run, t: Statement, other = t.text): string {
	return isBadEnd(t) && r.reason ? t.text + ': ' + r.reason : other;
}

/** Alerts of the training loss come before those in epochs. */
const keyRank = (a: Alert): number => a.key === 'train/loss' ? 0 : a.key?.startsWith('epoch/') ? 2 : 1;

function statusText(r: Run): string {
	const step = r.last_step;
	if (r.status === 'running' && step !== null) return `running, step ${step}`;
	if (endedEarly(r) && step !== null) return `${r.status} after step ${step}`;
	return r.status;
}

/** The first words of a note in one line, without the heading of imported texts. */
export function firstWords(notes: string): string {
	return plainText(notes.slice(0, 600).replace(/^\*\*[^*\n]+\*\*\s*/, ''));
}
