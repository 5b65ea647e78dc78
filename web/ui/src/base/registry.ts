// Versions of a registered model beside the runs that made them: each one's number, and what has changed since the
// version before. No browser here.
import { bestOf, type Goal } from './goal.ts';
import { natural } from './format.ts';
import type { Run } from './types.ts';

export interface Version {
	version: number;
	/** None, Staging, Production, Archived. */
	stage: string;
	/** Where its files lie. */
	source: string;
	/** Id of the run that made it; null where nobody said so. */
	run: string | null;
	description: string;
	user: string;
	/** READY, or why it cannot be used. */
	status: string;
	created: number;
	aliases: string[];
	tags: Record<string, string>;
}

export interface Change {
	name: string;
	/** null where one of the two does not have it. */
	was: string | null;
	now: string | null;
}

export interface VersionLine {
	version: Version;
	/** null where the run is not here. */
	run: Run | null;
	/** The best value of the goal's metric; null without any. */
	value: number | null;
	/** The number of the version before that has a value too, and how much higher this one's is. */
	since: number | null;
	step: number | null;
	/** What differs between its run and that of the version before, null where one of them is not here. */
	changes: Change[] | null;
}

const COMMIT = 'mlflow.source.git.commit';
const COMMIT_DIGITS = 10;

/** What a run was made with: its params, and the commit. */
function madeWith(r: Run): Map<string, string> {
	const all = new Map(Object.entries(r.params));
	const commit = r.tags[COMMIT];
	if (commit) all.set('commit', commit.slice(0, COMMIT_DIGITS));
	return all;
}

/** What stands in one of two runs alone or differs in them, by name. */
function changesBetween(was: Run, now: Run): Change[] {
	const [a, b] = [madeWith(was), madeWith(now)];
	const names = [...new Set([...a.keys(), ...b.keys()])].sort(natural);
	return names.filter((n) => a.get(n) !== b.get(n))
		.map((name) => ({ name, was: a.get(name) ?? null, now: b.get(name) ?? null }));
}

/** A line for each version, the newest first. */
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
