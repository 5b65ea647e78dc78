// SPDX-License-Identifier: Apache-2.0
// Versions of a registered model with their runs: the metric of each, and what changed since the previous version.
// Needs no browser.
import { bestOf, type Goal } from './goal.ts';
import { natural } from './format.ts';
import type { Run } from './types.ts';

export interface Version {
	version: number;
	/** None, Staging, Production, Archived. */
	stage: string;
	/** URI of its files. */
	source: string;
	/** Id of the run that created it, or null if unknown. */
	run: string | null;
	description: string;
	user: string;
	/** READY, or the reason why it cannot be used. */
	status: string;
	created: number;
	aliases: string[];
	tags: Record<string, string>;
}

export interface Change {
	name: string;
	/** null if one of the two lacks it. */
	was: string | null;
	now: string | null;
}

export interface VersionLine {
	version: Version;
	/** null if the run is not available. */
	run: Run | null;
	/** Best value of the goal metric, the last if unknown, or null. */
	value: number | null;
	/** Number of the previous version with a value, and the difference to it. */
	since: number | null;
	step: number | null;
	/** Differences to the run of the previous version; null if a run is not available. */
	changes: Change[] | null;
}

const COMMIT = 'mlflow.source.git.commit';
const COMMIT_DIGITS = 10;

/** Params and commit of a run. */
function madeWith(r: Run): Map<string, string> {
	const all = new Map(Object.entries(r.params));
	const commit = r.tags[COMMIT];
	if (commit) all.set('commit', commit.slice(0, COMMIT_DIGITS));
	return all;
}

/** Entries that only one of two runs has or that differ, by name. */
function changesBetween(was: Run, now: Run): Change[] {
	const [a, b] = [madeWith(was), madeWith(now)];
	const names = [...new Set([...a.keys(), ...b.keys()])].sort(natural);
	return names.filter((n) => a.get(n) !== b.get(n))
		.map((name) => ({ name, was: a.get(name) ?? null, now: b.get(name) ?? null }));
}

/** One row per version, newest first. */
export function versionLines(versions: readonly Version[], runs: ReadonlyMap<string, Run>,
	goal: Goal | null): VersionLine[] {
	const lines: VersionLine[] = [];
	let valued: VersionLine | null = null;
	let before: Run | null | undefined;
	for (const version of [...versions].sort((a, b) => a.version - b.version)) {
		const run = version.run === null ? null : runs.get(version.run) ?? null;
		const value: number | null = run && goal ? bestOf(run.metrics[goal.key], goal.dir) : null;
		const line: VersionLine = { version, run, value, since: null, step: null,
			changes: before && run ? changesBetween(before, run) : null };
		if (value !== null && valued) {
			line.since = valued.version.version;
			line.step = value - valued.value!;
		}
		if (value !== null) valued = line;
		before = run;
		lines.push(line);
	}
	return lines.reverse();
}
