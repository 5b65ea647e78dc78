// SPDX-License-Identifier: Apache-2.0
// Links to the tabs of a page; the arrow keys move between them.
import * as s from '../../../state/index.ts';
import { followed } from '../bits.tsx';

interface Options {
	label: string;
	/** Id and word of each, and what else the page keeps there. */
	tabs: readonly (readonly [string, string, ...unknown[]])[];
	tab: string;
}

export function Tabs({ label, tabs, tab }: Options) {
	const step = (e: KeyboardEvent) => {
		const by = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0;
		const to = by && tabs[tabs.findIndex(([id]) => id === tab) + by];
		if (!to) return;
		e.preventDefault();
		s.go({ tab: to[0] });
		const list = e.currentTarget as HTMLElement;
		queueMicrotask(() => list.querySelector<HTMLElement>('[aria-current]')?.focus());
	};
	return (
		<nav class="tabs" aria-label={label} onKeyDown={step}>{tabs.map(([id, word]) => (
			<a key={id} href={s.addressOf({ tab: id })} aria-current={id === tab ? 'page' : undefined}
				onClick={followed(() => s.go({ tab: id }, true))}>{word}</a>))}</nav>
	);
}
