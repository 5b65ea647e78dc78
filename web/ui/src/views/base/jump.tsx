// SPDX-License-Identifier: Apache-2.0
// Statements about a run as links: to the reason of a failure, or to their place in the charts, zoomed there and with
// the run highlighted.
import type { Alert, Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { Shape } from './bits.tsx';
import { isBadEnd, withReason, type Statement } from './says.ts';

/** Shows the run, zooms to the steps around the alert and marks its step. */
function jumpTo(r: Run, a: Alert): void {
	const step = a.step;
	if (step === null) return;
	if (!s.isShown(r.id)) s.toggleShown(r.id);
	const key = a.key ?? s.curve.value ?? s.goal.value?.key;
	const last = Math.max(r.last_step ?? step, step);
	const around = Math.max(5, Math.round((key && s.unitOf(key) === 'epoch' ? last : Math.max(last, 100)) * 0.08));
	s.go({ x: 'step', zoom: [Math.max(0, step - around), step + around],
		full: a.kind !== 'failed' || s.view.value.full });
	s.lit.value = r.id;
	if (key) s.cursor.value = { key, x: step };
	document.querySelector(`[data-chart="${CSS.escape(key ?? '')}"]`)?.scrollIntoView({ block: 'nearest' });
}

/** Where a statement leads: to the reason of a bad end, or an alert's place in the charts; null: nowhere. */
export function wayOf(r: Run, t: Statement): (() => void) | null {
	if (isBadEnd(t)) return () => s.openRun(r.id, '');
	return t.alert && (() => jumpTo(r, t.alert!));
}

/** What a link of a statement shows when the pointer is on it. */
export function hintOf(r: Run, t: Statement): string {
	return withReason(r, t, isBadEnd(t) ? `${t.text}; why is on the run's page` : t.alert?.text || t.text);
}

function Say({ r, t, tab }: { r: Run; t: Statement; tab: number | undefined }) {
	const way = wayOf(r, t);
	const text = <><Shape kind={t.kind} />{t.text}</>;
	return !way ? <span class={'say ' + t.kind}>{text}</span> : (
		<button type="button" class={'say ' + t.kind} tabIndex={tab} title={hintOf(r, t)} onClick={(e) => {
			e.stopPropagation();
			way();
		}}>{text}</button>
	);
}

/** Statements about a run, as links where they lead somewhere. */
export function Says({ r, list, tab }: { r: Run; list: readonly Statement[]; tab?: number }) {
	return <span class="says">{list.map((t) => <Say key={t.kind} r={r} t={t} tab={tab} />)}</span>;
}
