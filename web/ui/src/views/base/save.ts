// A file for the reader to keep.

const LATER_MS = 60000;

/** Names the file by what it is of. */
export function saveBlob(blob: Blob, title: string, ending: string): void {
	const a = document.createElement('a');
	a.href = URL.createObjectURL(blob);
	a.download = title.replace(/[^\w.-]+/g, '-') + '.' + ending;
	a.click();
	setTimeout(() => URL.revokeObjectURL(a.href), LATER_MS);
}
