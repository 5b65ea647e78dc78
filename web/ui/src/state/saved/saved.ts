// SPDX-License-Identifier: Apache-2.0
// Saved views of the experiment. Loaded with their panel.
import { signal } from '@preact/signals';
import { viewQuery } from '../../base/url.ts';
import { request, type Json } from '../server/api.ts';
import { experiment, go, report, view } from '../index.ts';

export interface Saved {
	id: string;
	name: string;
	experiment: string;
	query: string;
	/** The experiment opens with it. */
	preferred: boolean;
}

/** Views of the experiment, null until loaded. */
export const savedViews = signal<Saved[] | null>(null);

function savedOf(v: Json): Saved {
	return { id: String(v.id), name: String(v.name), experiment: String(v.experiment), query: String(v.query),
		preferred: v.default === true };
}

/** The current view in the form that is saved: for the readers of its experiment, who may lack others. */
const present = (): string => viewQuery({ ...view.value, also: [], saved: null }) || '?';

/** The saved view that this one started from. */
export function savedNow(): Saved | null {
	return savedViews.value?.find((v) => v.id === view.value.saved) ?? null;
}

/** Returns true if the screen differs from it. */
export function isChanged(v: Saved): boolean {
	return v.query !== present();
}

export async function loadSaved(): Promise<void> {
	const of = experiment.value;
	if (of === null) return;
	try {
		const r = await request('views?experiment=' + encodeURIComponent(of));
		if (of === experiment.value) savedViews.value = (r.views as Json[]).map(savedOf);
	} catch (e) {
		report(e);
	}
}

/** Saves the current view under a name; throws if the server refuses. */
export async function saveView(name: string): Promise<void> {
	const made = savedOf(await request('views', { name, experiment: experiment.value ?? '', query: present() }));
	go({ saved: made.id });
	await loadSaved();
}

async function change(v: Saved, body: Json): Promise<void> {
	await request('views/' + v.id, body, 'PATCH');
	await loadSaved();
}

/** Replaces the view by the current one. */
export const replaceView = (v: Saved): Promise<void> => change(v, { query: present() });
export const renameView = (v: Saved, name: string): Promise<void> => change(v, { name });
/** Makes it the default of its experiment, or not. */
export const preferView = (v: Saved, on: boolean): Promise<void> => change(v, { default: on });

/** Deletes it; returns the function that restores it. */
export async function deleteView(v: Saved): Promise<() => Promise<void>> {
	await request('views/' + v.id, undefined, 'DELETE');
	if (view.value.saved === v.id) go({ saved: null });
	await loadSaved();
	return async () => {
		const { name, experiment: of, query } = v;
		await request('views', { name, experiment: of, query, default: v.preferred });
		await loadSaved();
	};
}
