// SPDX-License-Identifier: Apache-2.0
// Scripts that the first screen does not need, loaded on first use. A failure has one of three reasons: the server is
// unavailable (retried once it is back), it has another version of the page (reload), or a single error.
import { effect, signal, type ReadonlySignal } from '@preact/signals';
import * as api from './server/api.ts';
import { away } from './runs.ts';

type Lost = 'newer' | 'failed';

export interface Part<T> {
	/** null until loaded. */
	value: ReadonlySignal<T | null>;
	/** Reason why it is missing; null while it is loading or unused. */
	lost: ReadonlySignal<Lost | null>;
	/** Loads it unless loaded; never fails, see lost. */
	load(): Promise<void>;
	/** Retries on request. Browsers may remember a failed script; then the page is reloaded. */
	again(): void;
}

async function reasonOf(): Promise<Lost> {
	try {
		return (await api.pageIsOther()) ? 'newer' : 'failed';
	} catch {
		away.value = true;
		return 'failed';
	}
}

export function part<T>(ask: () => Promise<T>): Part<T> {
	const value = signal<T | null>(null);
	const lost = signal<Lost | null>(null);
	let busy: Promise<void> | null = null;
	let tries = 0;
	const once = async () => {
		tries++;
		try {
			value.value = await ask();
			lost.value = null;
		} catch {
			lost.value = await reasonOf();
		}
		busy = null;
	};
	const load = () => (value.value !== null ? Promise.resolve() : (busy ??= once()));
	let wasAway = false;
	effect(() => {
		const back = wasAway && !away.value;
		wasAway = away.value;
		if (back && lost.peek() === 'failed') void load();
	});
	return {
		value, lost, load,
		again: () => {
			if (lost.value === 'newer' || tries > 1) location.reload();
			else void load();
		},
	};
}
