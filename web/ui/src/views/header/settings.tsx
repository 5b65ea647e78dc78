// SPDX-License-Identifier: Apache-2.0
// Settings: theme, help on keys, end of the session.
import * as s from '../../state/index.ts';
import { Panel } from '../base/bits.tsx';
import { chooseTheme, themeChoice, type ThemeChoice } from '../base/theme.ts';
import '../base/later.ts';
import { asking } from '../base/asking.ts';

const THEMES: [ThemeChoice, string][] = [['system', 'System'], ['light', 'Light'], ['dark', 'Dark']];

function signOut(): void {
	void s.endSession().then(() => location.reload(), s.report);
}

export function Settings({ close }: { close: () => void }) {
	return (
		<Panel label="Settings" close={close}>
			<h2 id="themes">Theme</h2>
			<span class="segmented" role="group" aria-labelledby="themes">{THEMES.map(([id, word]) => (
				<button key={id} type="button" aria-pressed={themeChoice() === id}
					onClick={() => chooseTheme(id)}>{word}</button>))}</span>
			<button type="button" class="item" onClick={() => {
				close();
				asking.value = true;
			}}>Keyboard shortcuts <kbd>?</kbd></button>
			{s.session.value?.signedIn
				&& <button type="button" class="item" onClick={signOut}>Sign out</button>}
		</Panel>
	);
}
