// SPDX-License-Identifier: Apache-2.0
// Settings: theme, help on keys, end of the session.
import * as s from '../../state/index.ts';
import { Str } from '../../strings/en.ts';
import { Panel } from '../base/bits.tsx';
import { chooseTheme, themeChoice, type ThemeChoice } from '../base/theme.ts';
import '../base/later.ts';
import { asking } from '../base/asking.ts';

const THEMES: [ThemeChoice, string][] = [['system', Str.System], ['light', Str.Light], ['dark', Str.Dark]];

function signOut(): void {
	void s.endSession().then(() => location.reload(), s.report);
}

export function Settings({ close }: { close: () => void }) {
	return (
		<Panel label={Str.Settings} close={close}>
			<h2 id="themes">{Str.Theme}</h2>
			<span class="segmented" role="group" aria-labelledby="themes">{THEMES.map(([id, word]) => (
				<button key={id} type="button" aria-pressed={themeChoice() === id}
					onClick={() => chooseTheme(id)}>{word}</button>))}</span>
			<button type="button" class="item" onClick={() => {
				close();
				asking.value = true;
			}}>{Str.KeyboardShortcuts} <kbd>?</kbd></button>
			{s.session.value?.signedIn
				&& <button type="button" class="item" onClick={signOut}>{Str.SignOut}</button>}
		</Panel>
	);
}
