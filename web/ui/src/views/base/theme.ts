// SPDX-License-Identifier: Apache-2.0
// Light or dark theme: the user's choice, else the system's; and a run's colour in it.
import { signal } from '@preact/signals';
import { lookAt, type Look } from '../../base/colour.ts';

type Theme = 'light' | 'dark';

const query = matchMedia('(prefers-color-scheme: dark)');
const saved = (): Theme | null => {
	try {
		const t = localStorage.getItem('dptrack-theme');
		return t === 'light' || t === 'dark' ? t : null;
	} catch {
		return null;
	}
};
const chosenTheme = signal<Theme | null>(saved());
const systemDark = signal(query.matches);
query.addEventListener('change', (e) => (systemDark.value = e.matches));

/** The page is being printed: in the light theme. */
export const printed = signal(false);

export function theme(): Theme {
	return printed.value ? 'light' : chosenTheme.value ?? (systemDark.value ? 'dark' : 'light');
}

export type ThemeChoice = Theme | 'system';

export function themeChoice(): ThemeChoice {
	return chosenTheme.value ?? 'system';
}

export function chooseTheme(to: ThemeChoice): void {
	chosenTheme.value = to === 'system' ? null : to;
	try {
		if (chosenTheme.value) localStorage.setItem('dptrack-theme', to);
		else localStorage.removeItem('dptrack-theme');
	} catch {
		// without storage the choice is lost on reload
	}
}

export function colourOf(look: Look | undefined): string {
	const known = look ?? lookAt(0);
	return theme() === 'dark' ? known.dark : known.light;
}
