// SPDX-License-Identifier: Apache-2.0
// Fills a store before the page is measured.

/** How long the machine writes what a store was filled with; a page opened meanwhile waits for a processor. */
const SETTLE_MS = 10e3;

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Calls act n times, several at once. */
export async function each(n, atOnce, act) {
	let next = 0;
	await Promise.all(Array.from({ length: atOnce }, async () => {
		for (let i = next++; i < n; i = next++) await act(i);
	}));
}

/** Waits until the machine is at rest. */
export const rest = () => pause(SETTLE_MS);
