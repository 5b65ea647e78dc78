// SPDX-License-Identifier: Apache-2.0
// What the session may do; the page offers nothing else. Loaded with the first part that offers a change.
import type { Level } from './server/api.ts';
import { experiments, session } from './runs.ts';

/** What it may do in an experiment; null: in every one, also in future ones. */
export function levelIn(name: string | null): Level {
	return experiments.value?.find((e) => e.name === name)?.may ?? session.value?.all ?? 'none';
}

export const changes = (level: Level): boolean => level === 'write' || level === 'admin';
export const mayWrite = (name: string | null): boolean => changes(levelIn(name));

/** May delete for ever, share and set rules; with null also tokens, gc and the audit log. */
export const mayRule = (name: string | null): boolean => levelIn(name) === 'admin';
