// SPDX-License-Identifier: Apache-2.0
// Width of the sidebar, which the first request for points must know.
import { signal } from '@preact/signals';

const KEPT = 'dptrack-nav';
/** Widths in pixels, and those of the window up to which it has icons alone or is at the bottom; as in the styles. */
const WIDE = 208;
const SLIM = 53;
const ICONS_TO = 1180;
const BAR_TO = 720;

function kept(): boolean {
	try {
		return localStorage.getItem(KEPT) === 'slim';
	} catch {
		return false;
	}
}

/** Icons alone, as chosen by the user. */
export const slimSidebar = signal(kept());

export function toggleSidebar(): void {
	slimSidebar.value = !slimSidebar.value;
	try {
		localStorage.setItem(KEPT, slimSidebar.value ? 'slim' : '');
	} catch {
		// without storage it is lost on reload
	}
}

/** Pixels of the window that the sidebar leaves. */
export function pageWidth(): number {
	return innerWidth - (innerWidth <= BAR_TO ? 0 : innerWidth <= ICONS_TO || slimSidebar.value ? SLIM : WIDE);
}
