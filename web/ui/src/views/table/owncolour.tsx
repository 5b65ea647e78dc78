// SPDX-License-Identifier: Apache-2.0
// The colour of a run: one of a palette, which has contrast in both themes, any other, or the automatic one.
import * as s from '../../state/index.ts';
import { Panel } from '../base/bits.tsx';
import { colourOf } from '../base/theme.ts';
import '../base/later.ts';

const PALETTE = { Red: '#de3b3d', Orange: '#d76900', Gold: '#b08505', Olive: '#778b20', Green: '#139948',
	Teal: '#0e9a94', Cyan: '#0e94ba', Blue: '#2279dc', Indigo: '#6159e1', Violet: '#9751d7', Magenta: '#cd3f9b',
	Grey: '#787b7d' };
/** Pixels of the panel and its distance to the lower edge of the window. */
const HEIGHT = 190;

/** Sets a colour (#rrggbb); null: automatic. */
function setColour(id: string, to: string | null): void {
	const { [id]: _, ...others } = s.view.value.colours;
	s.go({ colours: to === null ? others : { ...others, [id]: parseInt(to.slice(1), 16) } });
}

export function OwnColour({ id, at, close }: { id: string; at: { left: number; top: number }; close: () => void }) {
	const run = s.knownRuns.value.find((r) => r.id === id);
	if (!run) return null;
	const name = s.nameOf(id, run);
	const short = id.slice(0, 8);
	const now = colourOf(s.looks.value.byRun.get(id));
	const own = s.view.value.colours[short] === undefined ? null : now;
	const choice = (word: string, to: string | null) => (
		<label title={word}><input type="radio" name="colour" aria-label={word} checked={own === to}
			style={{ background: to ?? colourOf(s.autoLooks.value.byRun.get(id)) }}
			onChange={() => setColour(short, to)} />{to === null && word}</label>
	);
	return (
		<span class="pop headpop" style={{ left: at.left + 'px',
			top: Math.max(8, Math.min(at.top, innerHeight - HEIGHT)) + 'px' }}>
			<Panel label={`Colour of ${name}`} close={close}>
				<b>{name}</b>
				<div class="palette" role="radiogroup" aria-label="Colour">
					{choice('Automatic', null)}
					{Object.entries(PALETTE).map(([word, c]) => choice(word, c))}</div>
				<label class="choice"><input type="color" value={now}
					onInput={(e) => setColour(short, e.currentTarget.value)} />
				Another colour</label>
			</Panel>
		</span>
	);
}
