// SPDX-License-Identifier: Apache-2.0
// What a token may do in which experiments: in words, and as a form.
import type { Signal } from '@preact/signals';
import * as s from '../../state/index.ts';
import { Icon } from '../base/icon.tsx';

/** A grant: the name of an experiment, or the beginning of names and a star. */
export interface Grant {
	name: string;
	level: string;
}

/** Levels as REST has them, in words. */
const LEVELS: readonly [string, string][] = [['none', 'Nothing'], ['read', 'Read'], ['write', 'Read and write'],
	['write+create', 'Read, write, create below'], ['admin', 'Administer']];
const WORDS = new Map(LEVELS);
const rank = (level: string): number => LEVELS.findIndex(([l]) => l === level);

/** The grants of a text; null: the scope in all experiments. */
export function grantsOf(text: string | null, scope: string): Grant[] {
	if (text === null) return [{ name: '*', level: scope }];
	return (text.match(/(?:\\.|[^,\\])+/g) ?? []).map((part) => {
		const [, name = '', level = ''] = /^(.*)=([a-z+]+)$/s.exec(part) ?? [];
		return { name: name.replace(/\\(.)/gs, '$1'), level };
	});
}

/** The text of grants, '' for none. A star at the end makes a prefix. */
export function grantsText(list: readonly Grant[]): string {
	return list.filter((g) => g.name.trim()).map((g) => {
		const name = g.name.trim();
		const prefix = name.endsWith('*');
		return (prefix ? name.slice(0, -1) : name).replace(/[\\,*=]/g, '\\$&') + (prefix ? '*=' : '=') +
			g.level;
	}).join(',');
}

/** Where grants hold. */
export function whereText(names: readonly string[]): string {
	const begin = names.filter((n) => n.endsWith('*')).map((n) => n.slice(0, -1));
	return names.includes('*') ? 'all experiments' : [...names.filter((n) => !n.endsWith('*')),
		...begin.length ? ['all that begin with ' + begin.join(' or ')] : []].join(', ');
}

/** What may be done, a line for each level; of several grants for the same name the highest. */
export function MayDo({ list }: { list: readonly Grant[] }) {
	const by = new Map<string, string>();
	for (const g of list) if (rank(g.level) >= rank(by.get(g.name) ?? '')) by.set(g.name, g.level);
	return <ul class="maydo">{LEVELS.map(([level, word]) => {
		const names = [...by].filter(([, l]) => l === level).map(([n]) => n);
		return names.length > 0 && <li key={level}><b>{word}</b>: {whereText(names)}</li>;
	})}</ul>;
}

export const levelWord = (level: string): string => WORDS.get(level) ?? level;

/** A line for each grant, and an empty one for the next. */
export function GrantsForm({ list, scope }: { list: Signal<readonly Grant[]>; scope: string }) {
	const set = (at: number, g: Grant | null) =>
		(list.value = list.value.flatMap((o, i) => i !== at ? [o] : g ?? []));
	return (
		<fieldset><legend>In these experiments; a star at the end: all that begin so</legend>
			<datalist id="granted">{s.experiments.value?.map((e) => <option
				key={e.id} value={e.name} />)}</datalist>
			{list.value.map((g, i) => (
				<div class="grant" key={i}>
					<input aria-label={`Experiment ${i + 1}`} placeholder="name, or beginning*"
						list="granted"
						value={g.name} onInput={(e) => set(i, { ...g, name:
							e.currentTarget.value })} />
					<select aria-label={`May do in experiment ${i + 1}`} value={g.level}
						onChange={(e) => set(i, { ...g, level: e.currentTarget.value })}>
						{LEVELS.map(([id, word]) => <option key={id} value={id}
							disabled={id === 'write+create' ? scope === 'read' ||
								!g.name.endsWith('*')
								: rank(id) > rank(scope)}>{word}</option>)}
					</select>
					{list.value.length > 1 && <button type="button" class="quiet"
						aria-label={`Remove experiment ${i + 1}`}
						onClick={() => set(i, null)}><Icon name="close" /></button>}
				</div>))}
			<button type="button" class="quiet" onClick={() =>
				(list.value = [...list.value, { name: '', level: 'read' }])}>Another experiment</button>
		</fieldset>
	);
}
