// SPDX-License-Identifier: Apache-2.0
// Work that need not be in the first frame.

/** Calls a function after the next frame; returns the function that cancels it. */
export function afterFrame(act: () => void): () => void {
	let timer = 0;
	const frame = requestAnimationFrame(() => (timer = window.setTimeout(act)));
	return () => {
		cancelAnimationFrame(frame);
		clearTimeout(timer);
	};
}
