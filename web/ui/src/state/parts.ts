// Parts of the page that its first screen does not need: scripts of their own, loaded when they are first wanted. What
// stands in the way is told apart: the server is away (they are loaded once it is back), it has another version of the
// page (only loading the page again helps), or this once something went wrong.
import { effect, signal, type ReadonlySignal } from '@preact/signals';
import * as api from './server/api.ts';
import { away } from './runs.ts';

type Lost = 'newer' | 'failed';

export interface Part<T> {
	/** null until it is there. */
	value: ReadonlySignal<T | null>;
	/** Why it is not there; null while it is loaded or nobody wanted it. */
	lost: ReadonlySignal<Lost | null>;
	/** Loads it unless it is there; never fails, lost says how it went. */
	load(): Promise<void>;
	/**
	 * For a reader who asks again: a browser may remember that a script could not be had, then the page is loaded
	 * again.
	 */
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
