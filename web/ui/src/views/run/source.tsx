// SPDX-License-Identifier: Apache-2.0
// Source of a run as MLflow's clients record it: user, program, commit, data sets.
import { bytes, count, natural } from '../../base/format.ts';
import type { RunDetail } from '../../base/types.ts';

const DIGITS = 10;
const DIGEST = 16;
const TAGS: [string, string][] = [
	['mlflow.source.name', 'Source'], ['mlflow.source.type', 'Kind of source'],
	['mlflow.project.entryPoint', 'Entry point'], ['mlflow.source.git.branch', 'Branch'],
	['mlflow.source.git.repoURL', 'Repository'], ['mlflow.databricks.notebookPath', 'Notebook'],
];

interface Fact {
	name: string;
	/** Short and full form. */
	text: string;
	full: string;
}

function factsOf(r: RunDetail): Fact[] {
	const out: Fact[] = [];
	const add = (name: string, full: string | undefined, text = full) => {
		if (full) out.push({ name, text: text!, full });
	};
	add('User', r.tags['mlflow.user'] || r.user);
	for (const [tag, name] of TAGS) add(name, r.tags[tag]);
	const commit = r.tags['mlflow.source.git.commit'];
	add('Commit', commit, commit?.slice(0, DIGITS));
	return out;
}

/** Texts of a JSON source, as clients write it: the location of the data. */
function placeOf(source: string): string {
	try {
		const o = JSON.parse(source) as Record<string, unknown>;
		return String(o.uri ?? o.path ?? o.url ?? o.delta_table_name ?? '');
	} catch {
		return source;
	}
}

/** URI without the data set's name, its last part; '' for a local folder. */
const remote = (place: string) => /^\w+:\/\//.test(place) ? place : '';

/** Samples, shards and bytes of a profile as dptrain writes it. */
function sizesOf(profile: string): string {
	try {
		const o = JSON.parse(profile) as Record<string, unknown>;
		const of = (key: string, say: (n: number) => string) =>
			typeof o[key] === 'number' && o[key] > 0 ? [say(o[key])] : [];
		return [...of('samples', (n) => count(n, 'sample')), ...of('shards', (n) => count(n, 'shard')),
			...of('bytes', bytes)].join(', ');
	} catch {
		return '';
	}
}

export function Source({ r }: { r: RunDetail }) {
	const facts = factsOf(r);
	if (!facts.length && !r.inputs.length) return null;
	const inputs = [...r.inputs].sort((a, b) => natural(a.name, b.name));
	return (
		<section class="box">
			<h2>Source</h2>
			<dl class="pairs">
				{facts.map((f) => (
					<div key={f.name}><dt>{f.name}</dt><dd title={f.full}>{f.text}</dd></div>
				))}
				{inputs.map((i) => (
					<div key={i.name + i.digest}>
						<dt>Data{i.context && ', ' + i.context}</dt>
						<dd title={`${placeOf(i.source)}\n${i.digest}`}>
							{remote(placeOf(i.source)) || i.name} <span class="dim">
								{i.digest.slice(0, DIGEST)}</span>
							{' ' + sizesOf(i.profile)}</dd>
					</div>
				))}
			</dl>
		</section>
	);
}
