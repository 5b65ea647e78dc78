// SPDX-License-Identifier: Apache-2.0
// What somebody typed and the server does not have, kept in the browser.

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

/** The word under which the texts of one editor are one edition. */
export const wordOfEditing = () => Math.random().toString(36).slice(2);
