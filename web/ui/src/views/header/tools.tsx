// SPDX-License-Identifier: Apache-2.0
// Tools of the table and the view: saved views, and a menu of the rest.
import { signal, useSignal, useSignalEffect, type Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import * as s from '../../state/index.ts';
import { Opener, Panel } from '../base/bits.tsx';
import { Icon, type IconName } from '../base/icon.tsx';
import { SavedViews } from '../saved/saved.tsx';
import { CopyTable } from '../table/copy.tsx';
import { saveTable } from '../table/csv.ts';
import { Picker } from '../table/picker.tsx';
import '../base/later.ts';

export { Also } from './also.tsx'; // in one part: one request

interface Tool {
	word: string;
	icon: IconName;
	panel: (close: () => void) => ComponentChildren;
	/** In the menu of narrow windows alone. */
	slim?: boolean;
}

const TOOLS: readonly Tool[] = [
	{ word: 'Columns', icon: 'columns', panel: (close) => <Picker close={close} />, slim: true },
	{ word: 'Saved views', icon: 'views', panel: (close) => <SavedViews close={close} />, slim: true },
	{ word: 'Copy table', icon: 'copy', panel: (close) => <CopyTable close={close} /> },
];
const viewing = signal(false);

function Items({ choose, close }: { choose: (t: Tool) => void; close: () => void }) {
	return (
		<Panel label="More" close={close}><ul class="menu">
			{TOOLS.map((t) => <li key={t.word} class={t.slim ? 'slim' : ''}><button type="button"
				class="item" onClick={() => choose(t)}><Icon name={t.icon} />{t.word}</button></li>)}
			<li><button type="button" class="item" title="Rows and columns as shown, with every digit"
				onClick={() => {
					saveTable(s.experiment.value ?? 'runs');
					close();
				}}><Icon name="download" />Download CSV</button></li>
		</ul></Panel>
	);
}

function More({ open }: { open: Signal<boolean> }) {
	const chosen = useSignal<Tool | null>(null);
	useSignalEffect(() => {
		if (!open.value) chosen.value = null;
	});
	return <Opener word="More" icon="more" bare open={open} panel={(close) => (chosen.value
		? chosen.value.panel(close) : <Items choose={(t) => (chosen.value = t)} close={close} />)} />;
}

export function Tools() {
	const open = useSignal(false);
	return (
		<>
			<span class="kept"><Opener word="Views" icon="views" open={viewing}
				panel={(close) => <SavedViews close={close} />} /></span>
			<span class="others"><More open={open} /></span>
		</>
	);
}
