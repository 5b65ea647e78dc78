// SPDX-License-Identifier: Apache-2.0
// Links that show one thing: making them, and whether a link opened this page.
import { computed } from '@preact/signals';
import { mayRule } from './access.ts';
import { experiment, session } from './runs.ts';
import { request } from './server/api.ts';

export type ShareKind = 'run' | 'comparison' | 'view' | 'report';

export const SHARED_MAX = 100;
const DAY_MS = 86_400_000;
/** A cookie that a link sets (web/api/native/api_shares.c). */
const MARK = 'dptrack_share=';

/** A link opened this page: only what it shows can be asked for. Until the session is known, its cookie says so. */
export const shared = computed(() => (session.value ? !!session.value.share : document.cookie.includes(MARK)));
/** The experiment of the page can be shared: the server needs tokens, and its administrator asks. */
export const mayShare = computed(() => !!session.value?.scope && mayRule(experiment.value));

/** Makes a link; returns its address, which the server does not show again. */
export async function makeShare(kind: ShareKind, target: readonly string[], days: number): Promise<string> {
	const made = await request('shares', { kind, target, expires_time: Date.now() + days * DAY_MS });
	return new URL(String(made.path), location.href).href;
}

/** Forgets a link that opened an earlier page, once the browser has a session of its own. */
export function forgetShare(): void {
	if (session.value && !session.value.share && document.cookie.includes(MARK))
		document.cookie = MARK + '; Path=/; Max-Age=0';
}
