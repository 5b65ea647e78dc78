// SPDX-License-Identifier: Apache-2.0
// Runs of an experiment and what follows from them and the view: goal, order, keys, drawn runs.
import { computed, signal } from '@preact/signals';
import {ApiError, signedOut, type Session} from './server/api.ts';
import type { Experiment, Run, RunDetail } from '../base/types.ts';
import { assignLooks } from '../base/colour.ts';
import { byName } from '../base/format.ts';
import { isExpression } from '../base/filter/filter.ts';
import { groupRuns, type RunGroup } from '../base/group.ts';
import { bestRun, defaultCurve, defaultGoal, directionOf, saidOf, type Direction, type Goal } from '../base/goal.ts';
import { parentOf } from '../base/nest.ts';
import { FORMULA } from '../base/panel.ts';
import { splitParams } from '../base/params.ts';
import { orderRuns, partition } from '../base/rank.ts';
import { EVERY, matchesWords, SHOW_MAX } from '../base/url.ts';
import { isReserved, tagsOf } from './tags.ts';
import { go, view } from './view.ts';

const SHOWN_ALL = 16;
const SHOWN_MANY = 10;
/** Maximum of runs in groups: the limit of one request. */
const MEMBERS_MAX = 500;

export const runs = signal<Run[]>([]);
export const experiments = signal<Experiment[] | null>(null);
export const loading = signal(true);
export const loadingMore = signal(false);
/** Older runs exist that the page does not hold. */
export const notHeld = signal(false);
/** The last error in words; null after a success. */
export const problem = signal<string | null>(null);
/** The server does not answer: the screen shows the last known state. */
export const away = signal(false);
/** Session; null until known. */
export const session = signal<Session | null>(null);
export const filterProblem = signal<string | null>(null);

/** Incremented whenever runs may have changed, for pages with more data than the list. */
export const liveRev = signal(0);

/** Reports a failed request. */
export function report(e: unknown): void {
	const status = e instanceof ApiError ? e.status : -1;
	if (signedOut.value) return;
	if (status === 0 || status >= 502) away.value = true;
	else problem.value = e instanceof Error ? e.message : String(e);
}

export const experiment = computed(() => view.value.experiment ?? runs.value[0]?.experiment ?? null);

const names = computed(() => (experiment.value === null ? '' : [experiment.value, ...view.value.also].join('\n')));
/** The experiments whose runs are shown; the same list until they are others. */
export const shownExperiments = computed<readonly string[]>(() => (names.value ? names.value.split('\n') : []));

/** The names of the runs' experiments: not those of the view until its runs are there. */
const heldNames = () => {
	const of = runs.value[0]?.experiment;
	return shownExperiments.value.includes(of!) ? names.value : of;
};

/** Names with a value in any of the runs. */
export function keysOf(of: (r: Run) => object): string[] {
	const set = new Set<string>();
	for (const r of runs.value) for (const k in of(r)) set.add(k);
	return [...set].sort(byName);
}

/** Tags of the loaded runs, without MLflow's and dptrack's own. */
export const tagKeys = computed(() => keysOf(tagsOf).filter((k) => !isReserved(k)));

/** Number of runs with each metric. */
export const keyRuns = signal<ReadonlyMap<string, number>>(new Map());
/** Metrics whose numbers are loaded for every run; null: all. */
export const heldMetrics = signal<ReadonlySet<string> | null>(null);

export const metricKeys = computed(() => [...keyRuns.value.keys()].sort(byName));

/** Adds the metric counts of a list of runs. */
export function countKeys(more: ReadonlyMap<string, number>, reset = false): void {
	const all = new Map(reset ? [] : keyRuns.value);
	for (const [k, n] of more) all.set(k, (all.get(k) ?? 0) + n);
	keyRuns.value = all;
}

/** Returns true if the run has points of the metric, as far as known. */
export function mayHave(r: Run, key: string): boolean {
	if (key.startsWith(FORMULA) || r.metrics[key] !== undefined) return true;
	return heldMetrics.value !== null && !heldMetrics.value.has(key);
}

/** Last part of a key, unless two shown keys share it. */
export function shortKey(key: string): string {
	const tail = key.slice(key.lastIndexOf('/') + 1);
	const clash = metricKeys.value.some((k) => k !== key && k.endsWith('/' + tail) && !k.startsWith('phase/'));
	return clash || key.startsWith('train/') ? key.replace(/^epoch\//, '') : tail;
}

/** What the runs say about which value of a metric is best. */
export const said = computed(() => saidOf(runs.value));

export const goal = computed<Goal | null>(() => {
	const v = view.value;
	if (v.goal !== null) return { key: v.goal, dir: v.dir ?? directionOf(v.goal, said.value) };
	const known = kept.of === names.value ? kept.goal : null;
	if (known && (keyRuns.value.has(known.key) || !runs.value.length)) return known;
	const goalNow = defaultGoal(keyRuns.value, runs.value.length, said.value);
	if (goalNow && heldNames() === names.value) kept = { of: names.value, goal: goalNow };
	return goalNow;
});

/** The default goal at page load; it does not change later. */
let kept: { of: string; goal: Goal | null } = { of: '', goal: null };

/** A better default goal that has appeared since; null if the goal is current or chosen by the user. */
export const betterGoal = computed(() => {
	const fresh = view.value.goal === null ? defaultGoal(keyRuns.value, runs.value.length, said.value) : null;
	return fresh && fresh.key !== goal.value?.key ? fresh : null;
});

/** Which value of a metric is best: the user's choice, what the runs say, what its name says; null: unknown. */
export function dirOf(key: string): Direction | null {
	return goal.value?.key === key ? goal.value.dir : directionOf(key, said.value);
}

let keptCurve: { of: string; key: string | null } = { of: '', key: null };

export const curve = computed(() => {
	const of = `${names.value}\n${goal.value?.key}`;
	if (keptCurve.of === of && keptCurve.key !== null) return keptCurve.key;
	const key = defaultCurve(metricKeys.value, goal.value?.key ?? null);
	if (heldNames() === names.value) keptCurve = { of, key };
	return key;
});
export const split = computed(() => splitParams(runs.value));

export const paramKeys = computed(() => [...split.value.differ, ...split.value.same.map(([k]) => k)].sort(byName));

/** The tag of archived runs. */
export const ARCHIVED = 'dptrack.archived';

export const isArchived = (r: Run) => r.tags[ARCHIVED] === 'true';

const named = (ids: readonly string[]) => (r: Run) => ids.some((p) => r.id.startsWith(p));

/** Runs that the table may list, before the filter. */
const listed = computed<Run[]>(() => {
	const { archived, only, shown } = view.value;
	const list = archived ? runs.value : runs.value.filter((r) => !isArchived(r));
	return only && shown ? list.filter(named(shown)) : list;
});

/** Returns true if all words occur in the run's name, status, notes, params, tags or alerts. */
export function hasWords(r: Run, words: string): boolean {
	return matchesWords(words, [r.name, r.status, r.notes, r.id.slice(0, 8),
		...Object.entries(r.params).map(([k, v]) => k + '=' + v), ...Object.values(r.tags),
		...r.alerts.map((a) => a.text)]);
}

export const rows = computed<Run[]>(() => {
	const words = view.value.filter;
	let list = listed.value;
	if (words !== '' && !isExpression(words)) list = list.filter((r) => hasWords(r, words));
	const { sort, desc, then, thenDesc } = view.value;
	return orderRuns(list, goal.value, sort, desc, then === null ? null : { id: then, desc: thenDesc }, said.value);
});

/** The table's runs by the fields of the view, sorted by name. */
export const allGroups = computed<RunGroup[]>(() => {
	const { group, page } = view.value;
	return group.length && page === 'compare' ? groupRuns(rows.value, group, tagsOf) : [];
});

/** Runs with another one in their group; the others remain runs. */
export const inGroups = computed(() =>
	new Set(allGroups.value.flatMap((g) => (g.runs.length > 1 ? g.runs.map((r) => r.id) : []))));

/** The table and the charts show groups of runs. */
export const isGrouped = computed(() => inGroups.value.size > 0);

/** Best run of the table by the goal. */
export const best = computed(() => bestRun(rows.value, goal.value));

/** The baseline run chosen by the user. */
export const baseline = computed(() => {
	const id = view.value.baseline;
	return id === null ? null : runs.value.find(named([id])) ?? null;
});

/** Returns true if its row is pinned. */
export function isPinned(r: Run): boolean {
	return view.value.pins.length > 0 && named(view.value.pins)(r);
}

export function togglePin(r: Run): void {
	const { pins } = view.value;
	go({ pins: isPinned(r) ? pins.filter((p) => !r.id.startsWith(p)) : [...pins, r.id.slice(0, 8)] });
}

/** Makes the run the baseline, or the best run again. */
export function toggleBaseline(r: Run): void {
	go({ baseline: baseline.value?.id === r.id ? null : r.id.slice(0, 8) });
}

/** Lists only charted runs, or all. */
export function toggleOnly(): void {
	const { only } = view.value;
	go({ only: !only, shown: only ? view.value.shown : shown.value.map((r) => r.id.slice(0, 8)) });
}

/** Display name of a run: its name, or the start of its id. */
export function nameOf(id: string, r: Run | undefined = runs.value.find((o) => o.id === id)): string {
	return r?.name || id.slice(0, 8);
}

/** Returns true if any run has its parent in the list. */
export const haveParents = computed(() => {
	const ids = new Set(runs.value.map((r) => r.id));
	return runs.value.some((r) => ids.has(parentOf(r) ?? ''));
});

/** Index of the first excluded run when sorted by a metric. */
export const fallenFrom = computed(() => partition(rows.value, view.value.sort));

const chosen = computed<Set<string>>(() => {
	const v = view.value.shown;
	const list = rows.value;
	if (v === EVERY) return new Set(list.slice(0, SHOW_MAX).map((r) => r.id));
	if (v !== null) return new Set(list.filter((r) => v.some((p) => r.id.startsWith(p))).map((r) => r.id));
	if (isGrouped.value) {
		const alone = list.filter((r) => !inGroups.value.has(r.id)).slice(0, SHOWN_MANY);
		return new Set([...[...inGroups.value].slice(0, MEMBERS_MAX), ...alone.map((r) => r.id)]);
	}
	if (list.length <= SHOWN_ALL) return new Set(list.map((r) => r.id));
	const set = new Set(list.slice(0, SHOWN_MANY).map((r) => r.id));
	for (const r of list) if (r.status === 'running' && set.size < SHOWN_ALL) set.add(r.id);
	return set;
});

/** Params considered for looks while some params are not loaded; null: all. Later params change no colour. */
export const lookParams = signal<ReadonlySet<string> | null>(null);

/** All runs that the page has held: a filter on the server changes no look. */
const known = new Map<string, Run>();

/** The runs of these experiments that the page has held, whatever the filter. */
export const knownRuns = computed<readonly Run[]>(() => {
	const of = heldNames()?.split('\n');
	for (const [id, r] of known) if (of && !of.includes(r.experiment)) known.delete(id);
	for (const r of runs.value) known.set(r.id, r);
	return [...known.values()];
});

/** Which params differ, whatever the filter: the columns of the table. */
export const knownSplit = computed(() => splitParams([...knownRuns.value]));

let seenKeys: { of: string | undefined; keys: Set<string> } = { of: undefined, keys: new Set() };

/** The metrics of the experiments, whatever the filter. */
export const knownMetrics = computed<ReadonlySet<string>>(() => {
	const of = heldNames() ?? seenKeys.of;
	seenKeys = { of, keys: new Set([...of === seenKeys.of ? seenKeys.keys : [], ...metricKeys.value]) };
	return seenKeys.keys;
});

/** Number of runs that the filter chooses from, also if it is one that the server applies. */
export const totalRuns = computed(() => (!isExpression(view.value.filter) ? runs.value.length
	: Math.max(knownRuns.value.length, (experiments.value ?? []).filter((e) =>
		shownExperiments.value.includes(e.name)).reduce((sum, e) => sum + e.run_count, 0))));

export function isParam(key: string): boolean {
	return knownRuns.value.some((r) => r.params[key] !== undefined);
}

/** Returns true for the name of a param or metric, which a filter compares without a prefix. */
export function isKnown(key: string): boolean {
	return knownMetrics.value.has(key) || isParam(key);
}

/** Token of the last change that the page knows: of the first list of runs, then of each report of changes. */
export const changesToken = signal<string | null>(null);

/** The deleted runs of the experiment that the server knows: their looks are taken. */
export const deletedRuns = signal<readonly Run[]>([]);

/** Depends on the runs, also deleted ones, and the params that the user chose, not on what is listed or charted. */
export const autoLooks = computed(() => {
	const { hue, dash } = view.value;
	const list = knownRuns.value;
	return assignLooks([...list, ...deletedRuns.value.filter((r) => !known.has(r.id))],
		{ hue, dash, among: lookParams.value });
});

/** The looks, with the colours that the user gave to runs. */
export const looks = computed(() => {
	const { colours } = view.value;
	const byRun = new Map(autoLooks.value.byRun);
	for (const [id, look] of byRun) {
		const own = colours[id.slice(0, 8)];
		if (own === undefined) continue;
		const light = '#' + (0x1000000 + own).toString(16).slice(1);
		byRun.set(id, { ...look, light, dark: light });
	}
	return { ...autoLooks.value, byRun };
});

/** Charted runs, in table order. */
export const shown = computed(() => rows.value.filter((r) => chosen.value.has(r.id)));

/** Maximum of runs side by side. */
export const COMPARED_MAX = 12;

/** Puts runs side by side. */
export function compareRuns(list: readonly Run[]): void {
	go({ page: 'side', shown: list.map((r) => r.id.slice(0, 8)) }, true);
}

/** Ids of the selected runs: what the next action is for. They need not be charted. */
export const selected = signal<ReadonlySet<string>>(new Set());
let lastSelected = '';

/** The selected runs of the table, in its order. */
export const chosenRuns = computed(() => (selected.value.size ? rows.value.filter((r) => selected.value.has(r.id))
	: []));

export function toggleSelected(id: string): void {
	lastSelected = id;
	const set = new Set(selected.value);
	if (!set.delete(id)) set.add(id);
	selected.value = set;
}

/** Selects the run and all up to the last one that was toggled. */
export function selectTo(id: string, list: readonly Run[]): void {
	const [a, b] = [lastSelected, id].map((i) => list.findIndex((r) => r.id === i)) as [number, number];
	if (a < 0) return toggleSelected(id);
	const between = list.slice(Math.min(a, b), Math.max(a, b) + 1).map((r) => r.id);
	selected.value = new Set([...selected.value, ...between]);
}

export function selectRuns(list: readonly Run[]): void {
	selected.value = new Set(list.map((r) => r.id));
}

/** The open run. */
export const opened = signal<RunDetail | null>(null);

/** Runs that the charts draw: those of the table, or the open run. */
export const drawn = computed<readonly Run[]>(() => {
	if (view.value.page !== 'run') return shown.value;
	const one = opened.value;
	return one ? [runs.value.find((r) => r.id === one.id) ?? one] : [];
});

/** Shows or hides all of the runs. */
export function showAll(ids: readonly string[], on: boolean): void {
	const set = new Set(chosen.value);
	for (const id of ids) if (on) set.add(id);
		else set.delete(id);
	setShown(set);
}

export function isShown(id: string): boolean {
	return chosen.value.has(id);
}

export function toggleShown(id: string): void {
	lastToggled = id;
	const set = new Set(chosen.value);
	if (!set.delete(id)) set.add(id);
	setShown(set);
}

/** Charts only this run. */
export function showOnly(id: string): void {
	lastToggled = id;
	setShown(new Set([id]));
}

/** Charts the run and all up to the last toggled one. */
export function showTo(id: string, list: readonly Run[]): void {
	const [a, b] = [lastToggled, id].map((i) => list.findIndex((r) => r.id === i)) as [number, number];
	if (a < 0) return toggleShown(id);
	const between = list.slice(Math.min(a, b), Math.max(a, b) + 1).map((r) => r.id);
	setShown(new Set([...chosen.value, ...between]));
}

let lastToggled = '';

export function setShown(set: Set<string> | null): void {
	go({ shown: set === null ? null : [...set].map((id) => id.slice(0, 8)) });
}
