// SPDX-License-Identifier: Apache-2.0
// Controls of grouping: the fields, and how a group's line and band are computed.
import { useSignal } from '@preact/signals';
import { EXPERIMENT, fieldText, TAG_FIELD } from '../../base/group.ts';
import { allButSeed } from '../../base/repeats.ts';
import { matchesWords, type Band, type Middle } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { Panel } from '../base/bits.tsx';
import '../base/later.ts';

const BANDS: [Band, string][] = [['minmax', 'Min to max'], ['std', '± std'], ['se', '± std error'],
	['t95', '95 % interval']];
const MIDDLES: [Middle, string][] = [['mean', 'mean'], ['median', 'median']];
const COUNTED: ['sound' | 'all', string][] = [['sound', 'sound runs'], ['all', 'all runs']];
const LISTED = 100;

const isSame = (a: readonly string[], b: readonly string[]) => [...a].sort().join('\n') === [...b].sort().join('\n');

/** Choice of params and tags to group by. */
function Fields({ close }: { close: () => void }) {
	const words = useSignal('');
	const { group } = s.view.value;
	const params = s.split.value.differ;
	const all = [...group, ...s.view.value.also.length ? [EXPERIMENT] : [], ...params,
		...s.tagKeys.value.map((k) => TAG_FIELD + k)];
	const found = [...new Set(all)].filter((k) => matchesWords(words.value, [fieldText(k)]));
	const toggle = (k: string) => s.go({ group: group.includes(k) ? group.filter((g) => g !== k) : [...group, k] });
	return (
		<Panel label="Group by" close={close}>
			<input type="search" placeholder="Find a param or a tag" aria-label="Find a param or a tag"
				value={words.value} onInput={(e) => (words.value = e.currentTarget.value)} />
			<ul class="files">{found.slice(0, LISTED).map((k) => (
				<li key={k}><label class="choice"><input type="checkbox" checked={group.includes(k)}
					onChange={() => toggle(k)} /> {fieldText(k)}
				{k.startsWith(TAG_FIELD) && <span class="dim"> tag</span>}</label></li>
			))}</ul>
			{group.length > 0 && <button type="button" onClick={() => s.go({
				group: [] })}>No groups</button>}
		</Panel>
	);
}

interface ChoiceOptions<T extends string> {
	label: string;
	title: string;
	value: T;
	list: readonly [T, string][];
	set: (to: T) => void;
}

function Choice<T extends string>({ label, title, value, list, set }: ChoiceOptions<T>) {
	return (
		<select aria-label={label} title={title} value={value} onChange={(e) =>
			set(e.currentTarget.value as T)}>
			{list.map(([v, text]) => <option key={v} value={v}>{text}</option>)}
		</select>
	);
}

export function Grouping() {
	const open = useSignal(false);
	const { group, band, middle, everyRun } = s.view.value;
	const repeats = allButSeed(s.split.value);
	const on = group.length > 0 && isSame(group, repeats);
	return (
		<span class="grouping">
			{repeats.length > 0 && <button type="button" aria-pressed={on}
				title="Repeats of the same setting together: one line and one row for all seeds"
				onClick={() => s.go({ group: on ? [] : repeats })}>Group by all but seed</button>}
			<span class="pop">
				<button type="button" aria-expanded={open.value} aria-pressed={group.length > 0 && !on}
					title="One line and one row for all runs of the same values"
					onClick={() => (open.value = !open.value)}>Group by{group.length > 0 && !on
						? ' ' + group.map(fieldText).join(', ').slice(0, 24) : ''}</button>
				{open.value && <Fields close={() => (open.value = false)} />}
			</span>
			{group.length > 0 && <Choice label="Line" title="What the line of a group is" value={middle}
				list={MIDDLES} set={(to) => s.go({ middle: to })} />}
			{group.length > 0 && <Choice label="Of"
				title="Whether runs that failed or diverged count in means"
				value={everyRun ? 'all' : 'sound'} list={COUNTED}
				set={(to) => s.go({ everyRun: to === 'all' })} />}
			{group.length > 0 && <Choice label="Band" title="What is drawn around a group's line"
				value={band} list={BANDS} set={(to) => s.go({ band: to })} />}
		</span>
	);
}
