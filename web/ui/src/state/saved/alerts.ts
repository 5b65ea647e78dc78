// Rules that runs are held against, and what they found. Loaded with the panel that shows them.
import { signal } from '@preact/signals';
import { num, numOrNull, request, type Json } from '../server/api.ts';
import { experiment, report } from '../index.ts';

export type RuleKind = 'metric' | 'nan' | 'failed' | 'silent' | 'done';

/** What a rule holds runs against. */
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

interface Found {
	id: string;
	kind: RuleKind;
	text: string;
	run: string;
	runName: string;
	time: number;
	/** When it was posted; null: it was not. */
	posted: number | null;
	/** It is still to be posted. */
	due: boolean;
}

/** null until they are here. */
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

/** The rules of the experiment and of all, and what was found in it. */
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

/** Throws what the server refuses. */
export async function makeRule(wish: RuleWish): Promise<void> {
	const given = Object.entries(wish).filter(([, v]) => v !== null && v !== '');
	await request('alerts/rules', Object.fromEntries(given));
	await loadAlerts();
}

export async function dropRule(id: string): Promise<void> {
	await request('alerts/rules/' + id, undefined, 'DELETE');
	await loadAlerts();
}
