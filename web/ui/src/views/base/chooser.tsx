// SPDX-License-Identifier: Apache-2.0
// A button that shows the current choice, with a searchable panel of options.
import { useSignal } from '@preact/signals';
import { matchesWords } from '../../base/url.ts';
import { Panel } from './bits.tsx';
import './later.ts';

const MOST = 80;

export interface Choice {
	id: string;
	label: string;
}

interface Options {
	/** What is chosen: "x", "colour". */
	name: string;
	/** The current choice in words. */
	now: string;
	list: readonly Choice[];
	choose: (id: string) => void;
	/** Multiple choice: the chosen ids; the panel stays open. */
	on?: readonly string[];
}

/** The panel of options. */
export function Choices({ name, list, choose, on, close }: Omit<Options, 'now'> & { close: () => void }) {
	const words = useSignal('');
	const found = list.filter((c) => matchesWords(words.value, [c.label]));
	const take = (id: string) => {
		choose(id);
		if (!on) close();
	};
	return (
		<Panel label={name} close={close}>
			<input type="search" placeholder={`Find among ${list.length}`}
				aria-label={`Find: ${name}`}
				value={words.value} onInput={(e) => (words.value = e.currentTarget.value)}
				onKeyDown={(e) => e.key === 'Enter' && found[0] && take(found[0].id)} />
			<ul class="files">{found.slice(0, MOST).map((c) => (
				<li key={c.id}>{on ? <label class="choice"><input type="checkbox"
					checked={on.includes(c.id)} onChange={() => take(c.id)} /> {c.label}</label>
					: <button type="button" class="quiet" onClick={() =>
						take(c.id)}>{c.label}</button>}</li>
			))}</ul>
			{found.length > MOST && <span class="dim">{found.length - MOST} more</span>}
			{!found.length && <span class="dim">Nothing contains “{words.value}”.</span>}
		</Panel>
	);
}

export function Chooser(o: Options) {
	const open = useSignal(false);
	return (
		<span class="pop chooser">
			<span class="dim">{o.name}</span>
			<button type="button" aria-expanded={open.value} aria-label={`${o.name}: ${o.now}`}
				onClick={() => (open.value = !open.value)}>{o.now}</button>
			{open.value && <Choices {...o} close={() => (open.value = false)} />}
		</span>
	);
}
