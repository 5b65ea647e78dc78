// SPDX-License-Identifier: Apache-2.0
// Complete runs for the side-by-side page: requested once each, and again when one changes.
import { signal } from '@preact/signals';
import type { SideFile } from '../base/side.ts';
import type { Artifact, RunDetail } from '../base/types.ts';
import { report } from './runs.ts';
import { getArtifacts, getRun } from './run.ts';
import { getCode } from './records.ts';

/** Maximum of runs side by side. */
export const SIDE_MAX = 12;
/** Maximum of listed files and of visited folders of a run. */
const FILES_MAX = 2000;
const FOLDERS_MAX = 60;

export interface Side {
	run: RunDetail;
	/** commit, branch, diff, packages, … */
	code: Record<string, string>;
	files: Record<string, SideFile>;
	/** More files exist. */
	more: boolean;
}

/** By run; absent until loaded. */
export const sides = signal<ReadonlyMap<string, Side>>(new Map());

/** Lists all files of a run, folder by folder. */
async function allFiles(run: RunDetail): Promise<{ files: Record<string, SideFile>; more: boolean }> {
	const files: Record<string, SideFile> = {};
	const folders: Artifact[] = [];
	const take = (list: readonly Artifact[]) => {
		for (const f of list)
			if (f.folder) folders.push(f);
			else files[f.path] = { bytes: f.bytes ?? 0, sha256: f.sha256 };
	};
	if (run.artifacts.length) take(await getArtifacts(run.id, '', true));
	let looked = 0;
	while (folders.length && looked < FOLDERS_MAX && Object.keys(files).length < FILES_MAX) {
		looked++;
		take(await getArtifacts(run.id, folders.shift()!.path, true));
	}
	return { files, more: folders.length > 0 };
}

async function load(id: string): Promise<Side> {
	const [run, code] = await Promise.all([getRun(id), getCode(id).catch(() => ({}))]);
	return { run, code, ...await allFiles(run) };
}

/** Loads missing runs; all of them again if fresh. */
export async function wantSides(ids: readonly string[], fresh: boolean): Promise<void> {
	const lacking = ids.filter((id) => fresh || !sides.value.has(id));
	await Promise.all(lacking.map(async (id) => {
		try {
			const side = await load(id);
			sides.value = new Map([...sides.value, [id, side]]);
		} catch (e) {
			report(e);
		}
	}));
}
