// SPDX-License-Identifier: Apache-2.0
// Model registry: models, versions and aliases, through MLflow's routes. Loaded with the page of models.
import { signal } from '@preact/signals';
import { defaultGoal, directionOf, saidOf, type Goal } from '../../base/goal.ts';
import type { Version } from '../../base/registry.ts';
import type { Run } from '../../base/types.ts';
import { changes } from '../access.ts';
import { ApiError, getRuns, request, type Json } from '../server/api.ts';
import { report, view } from '../index.ts';

const MODELS_MAX = 500;
/** Number of versions loaded with their runs. */
const VERSIONS_MAX = 100;

export interface ModelHead {
	name: string;
	description: string;
	changed: number;
	/** The highest version number, 0 without any. */
	newest: number;
	aliases: { alias: string; version: number }[];
	tags: Record<string, string>;
}

export interface Model extends ModelHead {
	/** The session may set its aliases. */
	mayWrite: boolean;
	/** The newest versions. */
	versions: Version[];
	/** Older versions exist. */
	more: boolean;
	/** Runs that created these versions, by id. */
	runs: ReadonlyMap<string, Run>;
	/** Number of these runs with each metric. */
	keys: ReadonlyMap<string, number>;
	/** Metric of the versions. */
	goal: Goal | null;
}

interface ModelList {
	models: ModelHead[];
	/** More models exist. */
	more: boolean;
}

/** Models whose name contains the words, null until loaded. */
export const models = signal<ModelList | null>(null);

const ask = (path: string, body?: unknown, method?: string) =>
	request('../../ajax-api/2.0/mlflow/' + path, body, method);

const list = (v: unknown) => (v ?? []) as Json[];

function tagsOf(v: unknown): Record<string, string> {
	return Object.fromEntries(list(v).map((t) => [String(t.key), String(t.value)]));
}

function headOf(m: Json): ModelHead {
	const newest = list(m.latest_versions).map((v) => Number(v.version));
	return {
		name: String(m.name), description: String(m.description ?? ''),
		changed: Number(m.last_updated_timestamp),
		newest: Math.max(0, ...newest), tags: tagsOf(m.tags),
		aliases: list(m.aliases).map((a) => ({ alias: String(a.alias), version: Number(a.version) })),
	};
}

/** Aliases are part of the model. */
function versionOf(v: Json, aliases: ModelHead['aliases']): Version {
	const version = Number(v.version);
	return {
		version, stage: String(v.current_stage ?? 'None'), source: String(v.source ?? ''),
		run: (v.run_id as string) || null, description: String(v.description ?? ''),
		user: String(v.user_id ?? ''),
		status: String(v.status ?? ''), created: Number(v.creation_timestamp),
		aliases: aliases.filter((a) => a.version === version).map((a) => a.alias), tags: tagsOf(v.tags),
	};
}

/** Quotes a text for a filter; a text with both kinds of quotes cannot be expressed. */
function quoted(text: string): string {
	if (!text.includes("'")) return `'${text}'`;
	if (text.includes('"'))
		throw new ApiError(`Cannot search for a name with both kinds of quotes: ${text}`, 0, null);
	return `"${text}"`;
}

const search = (of: string, filter: string, most: number, order: string) => ask(`${of}/search?`
	+ new URLSearchParams({ max_results: String(most), order_by: order, ...(filter && { filter }) }));

export async function loadModels(words: string): Promise<void> {
	try {
		const filter = words && `name ILIKE ${quoted(`%${words}%`)}`;
		const r = await search('registered-models', filter, MODELS_MAX, 'name');
		models.value = { models: list(r.registered_models).map(headOf), more: r.next_page_token !== undefined };
	} catch (e) {
		report(e);
	}
}

/** Loads runs by id with the view's metric, else with the metric that most of them have. */
async function runsBehind(ids: readonly string[]): Promise<Pick<Model, 'runs' | 'keys' | 'goal'>> {
	if (!ids.length) return { runs: new Map(), keys: new Map(), goal: null };
	const asked = { ids, limit: ids.length };
	const { runs, keys } = await getRuns({ ...asked, keys: true, metrics: [''] });
	const { goal: key, dir } = view.value;
	const said = saidOf(runs);
	const goal = key === null ? defaultGoal(keys, runs.length, said) : { key, dir: dir ?? directionOf(key, said) };
	const measured = goal ? (await getRuns({ ...asked, metrics: [goal.key], fields: ['metrics'] })).runs : [];
	const metrics = new Map(measured.map((r) => [r.id, r.metrics]));
	return { keys, goal, runs: new Map(runs.map((r) => [r.id, { ...r, metrics: metrics.get(r.id) ?? {} }])) };
}

/** Loads a model with its newest versions and their runs. Throws if the server refuses, as all of these do. */
export async function getModel(name: string): Promise<Model> {
	const [got, found, may] = await Promise.all([ask('registered-models/get?' + new URLSearchParams({ name })),
		search('model-versions', `name = ${quoted(name)}`, VERSIONS_MAX, 'version_number DESC'),
		request('session?' + new URLSearchParams({ experiment: name }))]);
	const head = headOf(got.registered_model as Json);
	const versions = list(found.model_versions).map((v) => versionOf(v, head.aliases));
	const ids = new Set(versions.flatMap((v) => v.run ?? []));
	return { ...head, versions, mayWrite: changes(String(may.may)), more: found.next_page_token !== undefined,
		...(await runsBehind([...ids])) };
}

/** Versions created by a run, by model name. */
export async function versionsOf(run: string): Promise<{ name: string; version: number }[]> {
	const r = await search('model-versions', `run_id = '${run}'`, VERSIONS_MAX, 'version_number DESC');
	return list(r.model_versions).map((v) => ({ name: String(v.name), version: Number(v.version) }));
}

/** Registers a version of a model from a folder of a run's artifacts; creates the model if needed. */
export async function registerVersion(name: string, run: string, path: string): Promise<number> {
	try {
		await ask('registered-models/create', { name });
	} catch (e) {
		if (!/exist/i.test((e as Error).message)) throw e;
	}
	const made = await ask('model-versions/create', { name, source: `runs:/${run}${path && '/' + path}`,
		run_id: run });
	return Number((made.model_version as Json).version);
}

/** Points an alias at a version, replacing its target. */
export async function setAlias(name: string, alias: string, version: number): Promise<void> {
	await ask('registered-models/alias', { name, alias, version: String(version) });
}

export async function dropAlias(name: string, alias: string): Promise<void> {
	await ask('registered-models/alias', { name, alias }, 'DELETE');
}
