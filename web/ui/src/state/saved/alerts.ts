// SPDX-License-Identifier: Apache-2.0
// Alert rules and the alerts that they raised. Loaded with their panel.
import { signal } from '@preact/signals';
import { num, numOrNull, request, type Json } from '../server/api.ts';
import { experiment, report } from '../index.ts';

export type RuleKind = 'metric' | 'nan' | 'failed' | 'silent' | 'done';

/** Condition of a rule. */
export interface RuleWish {
	kind: RuleKind;
	/** null: every experiment. */
	experiment: string | null;
	/** '': none, or any. */
	metric: string;
	above: number | null;
	below: number | null;
	seconds: number | null;
}

interface Rule extends RuleWish {
	id: string;
}

export interface Found {
	id: string;
	kind: RuleKind;
	text: string;
	run: string;
	runName: string;
	time: number;
	/** Time of its notification, or null. */
	posted: number | null;
	/** Its notification is pending. */
	due: boolean;
}

/** null until loaded. */
export const rules = signal<Rule[] | null>(null);
export const found = signal<Found[] | null>(null);

function ruleOf(r: Json): Rule {
	return { id: String(r.id), kind: r.kind as RuleKind, experiment: r.experiment as string | null,
		metric: String(r.metric ?? ''), above: numOrNull(r.above), below: numOrNull(r.below),
		seconds: numOrNull(r.seconds) };
}

function foundOf(a: Json): Found {
	return { id: String(a.id), kind: a.kind as RuleKind, text: String(a.text), run: String(a.run),
		runName: String(a.run_name), time: num(a.time), posted: numOrNull(a.posted_time),
		due: a.due_time !== null };
}

/** Loads the rules of the experiment and of all, and its alerts. */
export async function loadAlerts(): Promise<void> {
	const of = experiment.value;
	if (of === null) return;
	try {
		const [r, a] = await Promise.all([request('alerts/rules'),
			request('alerts?experiment=' + encodeURIComponent(of))]);
		if (of !== experiment.value) return;
		rules.value = (r.rules as Json[]).map(ruleOf)
			.filter((x) => x.experiment === null || x.experiment === of);
		found.value = (a.alerts as Json[]).map(foundOf);
	} catch (e) {
		report(e);
	}
}

/** Throws if the server refuses. */
export async function makeRule(wish: RuleWish): Promise<void> {
	const given = Object.entries(wish).filter(([, v]) => v !== null && v !== '');
	await request('alerts/rules', Object.fromEntries(given));
	await loadAlerts();
}

export async function dropRule(id: string): Promise<void> {
	await request('alerts/rules/' + id, undefined, 'DELETE');
	await loadAlerts();
}
