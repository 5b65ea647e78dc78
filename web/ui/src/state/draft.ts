// SPDX-License-Identifier: Apache-2.0
// What was typed and is not stored by the server, kept in the browser.
import type { ApiError } from './server/api.ts';

/** A text, and the entity tag of the stored one that its author saw. */
export interface Draft {
	text: string;
	etag: string;
}

const keyOf = (of: string) => 'dptrack-draft-' + of;

/** The draft of a run's notes or of a report, by its id; null: none. */
export function readDraft(of: string): Draft | null {
	try {
		return JSON.parse(localStorage.getItem(keyOf(of)) ?? 'null') as Draft | null;
	} catch {
		return null;
	}
}

export function keepDraft(of: string, draft: Draft | null): void {
	try {
		if (draft) localStorage.setItem(keyOf(of), JSON.stringify(draft));
		else localStorage.removeItem(keyOf(of));
	} catch {
		// without storage it is lost when the page is left
	}
}

/** What the server has, if it refused a change because its author had not seen that. */
export const storedBy = (e: Error) => (e as ApiError).stored ?? null;

/** The word under which the texts of one editor are one edition. */
export const wordOfEditing = () => Math.random().toString(36).slice(2);
