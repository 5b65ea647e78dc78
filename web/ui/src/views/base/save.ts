// SPDX-License-Identifier: Apache-2.0
// Saves a file on the user's machine.

const LATER_MS = 60000;

/** File name from a title. */
export function saveBlob(blob: Blob, title: string, ending: string): void {
	const a = document.createElement('a');
	a.href = URL.createObjectURL(blob);
	a.download = title.replace(/[^\w.-]+/g, '-') + '.' + ending;
	a.click();
	setTimeout(() => URL.revokeObjectURL(a.href), LATER_MS);
}
