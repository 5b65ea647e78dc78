// SPDX-License-Identifier: Apache-2.0
// Statements about a run, with links to their place in the charts: the link zooms there and highlights the run.
import type { Alert, Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { Shape } from './bits.tsx';
import { lastStep, type Statement } from './says.ts';

/** Shows the run, zooms to the steps around the alert and marks its step. */
export function jumpTo(r: Run, a: Alert): void {
	const step = a.step;
	if (step === null) return;
	if (!s.isShown(r.id)) s.toggleShown(r.id);
	const key = a.key ?? s.curve.value ?? s.goal.value?.key;
	const last = Math.max(lastStep(r) ?? step, step);
	const around = Math.max(5, Math.round((key && s.unitOf(key) === 'epoch' ? last : Math.max(last, 100)) * 0.08));
	s.go({ x: 'step', zoom: [Math.max(0, step - around), step + around],
		full: a.kind !== 'failed' || s.view.value.full });
	s.lit.value = r.id;
	if (key) s.cursor.value = { key, x: step };
	document.querySelector(`[data-chart="${CSS.escape(key ?? '')}"]`)?.scrollIntoView({ block: 'nearest' });
}

/** Statements about a run; those of an alert link to the charts. */
export function Says({ r, list }: { r: Run; list: readonly Statement[] }) {
	return (
		<span class="says">{list.map((t) => t.alert ? (
			<button type="button" class={'say ' + t.kind}
				onClick={() => jumpTo(r, t.alert!)}><Shape kind={t.kind} />{t.text}</button>
		) : <span class={'say ' + t.kind}><Shape kind={t.kind} />{t.text}</span>)}</span>
	);
}
