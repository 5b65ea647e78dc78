// Small pieces that several pages share: a run's key (colour and dash), its status in words and shape, theme.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { Alert, Run } from '../../base/types.ts';
import type { Look } from '../../base/colour.ts';
import { short } from '../../base/format.ts';
import { plainText } from '../../base/words.ts';

export type Theme = 'light' | 'dark';

const query = matchMedia('(prefers-color-scheme: dark)');
const saved = (): Theme | null => {
	try {
		const t = localStorage.getItem('dptrack-theme');
		return t === 'light' || t === 'dark' ? t : null;
	} catch {
		return null;
	}
};
const chosenTheme = signal<Theme | null>(saved());
const systemDark = signal(query.matches);
query.addEventListener('change', (e) => (systemDark.value = e.matches));

export function theme(): Theme {
	return chosenTheme.value ?? (systemDark.value ? 'dark' : 'light');
}

export function toggleTheme(): void {
	const next = theme() === 'dark' ? 'light' : 'dark';
	chosenTheme.value = next === (systemDark.value ? 'dark' : 'light') ? null : next;
	try {
		if (chosenTheme.value) localStorage.setItem('dptrack-theme', next);
		else localStorage.removeItem('dptrack-theme');
	} catch {
		// without storage the choice lasts as long as the page
	}
}

export function colourOf(look: Look | undefined): string {
	return look ? (theme() === 'dark' ? look.dark : look.light) : 'currentColor';
}

/** The run's line as it is drawn in the charts; hollow when it is hidden there. */
export function Key({ look, on }: { look: Look | undefined; on: boolean }) {
	return (
		<svg class="key" width="24" height="12" viewBox="0 0 24 12" aria-hidden="true">
			<line x1="1" y1="6" x2="23" y2="6" stroke={on ? colourOf(look) : 'var(--faint)'} stroke-width={on ? 3 : 1.5}
				stroke-dasharray={(look?.dash ?? []).join(' ')} />
		</svg>
	);
}

const TAIL = 12;

/** A name that is cut in the middle where it does not fit: names differ at their ends more often than at their beginnings. */
export function Name({ text }: { text: string }) {
	const at = text.length > 2 * TAIL ? text.length - TAIL : text.length;
	return <span class="cut"><span>{text.slice(0, at)}</span>{text.slice(at)}</span>;
}

const SHAPES: Record<string, string> = {
	finished: 'M2 6.5 5 9.5 10 3',
	running: 'M3.5 2v8l6.5-4z',
	failed: 'M2.5 2.5l7 7M9.5 2.5l-7 7',
	killed: 'M2.5 2.5h7v7h-7z',
	preempted: 'M4 2.5v7M8 2.5v7',
	scheduled: 'M6 2a4 4 0 1 0 .01 0M6 3.5V6l2 1',
	nan: 'M6 2.5a3.5 3.5 0 1 0 .01 0M3 9.5l6-7',
	diverged: 'M2 10C6 9 8 7 9.5 2M6.5 3.5l3-1.5 1 3',
	spike: 'M1.5 9.5h3L6 2l1.5 7.5h3',
};

export function Shape({ kind }: { kind: string }) {
	return (
		<svg class={'shape ' + kind} width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
			<path d={SHAPES[kind] ?? SHAPES.finished!} />
		</svg>
	);
}

/** One short phrase for an alert, the same wherever it stands. */
export function alertText(a: Alert): string {
	if (a.kind === 'spike' && a.value !== null && a.step !== null) return `spike ${short(a.value)} at ${a.step}`;
	if (a.kind === 'failed' && a.step !== null) return `failed at step ${a.step}`;
	if (a.kind === 'diverged' && a.step !== null) return `diverged at step ${a.step}`;
	return a.text;
}

/** What to say about a run, the most serious first, one entry per kind. */
export function statements(r: Run): { kind: string; text: string; alert: Alert | null }[] {
	const out: { kind: string; text: string; alert: Alert | null }[] = [];
	const seen = new Set<string>();
	const weight: Record<string, number> = { failed: 0, nan: 1, diverged: 2, spike: 3 };
	const early = [...r.alerts].sort((a, b) => weight[a.kind]! - weight[b.kind]! || keyRank(a) - keyRank(b)
		|| (a.step ?? 0) - (b.step ?? 0));
	for (const a of early) {
		if (seen.has(a.kind) || (a.kind === 'diverged' && seen.has('nan'))) continue;
		seen.add(a.kind);
		out.push({ kind: a.kind, text: alertText(a), alert: a });
	}
	if (!(r.status === 'failed' && seen.has('failed')) && (r.status !== 'finished' || !out.length))
		out.unshift({ kind: r.status, text: statusText(r), alert: null });
	return out;
}

/** Alerts of the training curve speak in optimiser steps and come before those that count epochs. */
function keyRank(a: Alert): number {
	return a.key === 'train/loss' ? 0 : a.key?.startsWith('epoch/') ? 2 : 1;
}

export function lastStep(r: Run): number | null {
	let last: number | null = null;
	for (const [k, m] of Object.entries(r.metrics))
		if (!k.startsWith('epoch/') && (last === null || m.last_step > last)) last = m.last_step;
	return last;
}

function statusText(r: Run): string {
	const step = lastStep(r);
	if (r.status === 'running' && step !== null) return `running, step ${step}`;
	if ((r.status === 'failed' || r.status === 'killed') && step !== null) return `${r.status} after step ${step}`;
	return r.status;
}

/** The beginning of a note in one line, without the heading that an imported text carries. */
export function firstWords(notes: string): string {
	return plainText(notes.slice(0, 600).replace(/^\*\*[^*\n]+\*\*\s*/, ''));
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
	return (
		<div class="empty">
			<h2>{title}</h2>
			{children}
		</div>
	);
}
