// SPDX-License-Identifier: Apache-2.0
// The menu at a column's head: sort, second sort, filter by value, group, pin, move, hide. Arrows move in it.
import { useSignal } from '@preact/signals';
import { EXPERIMENT, TAG_FIELD } from '../../base/group.ts';
import * as s from '../../state/index.ts';
import { Panel } from '../base/bits.tsx';
import { Icon, type IconName } from '../base/icon.tsx';
import { fix, hide, place } from './arrange.ts';
import type { Column } from './column.ts';
import { columns } from './columns.tsx';
import { OwnColour } from './owncolour.tsx';
import { filterField, ValueFilter } from './valuefilter.tsx';

interface Item {
	word: string;
	icon: IconName;
	act: () => void;
	/** It is chosen already. */
	on?: boolean;
	/** A line above it. */
	apart?: boolean;
	/** The menu stays open. */
	stays?: boolean;
}

function sorts(c: Column): Item[] {
	if (!c.sortable) return [];
	const v = s.view.value;
	const [up, down] = c.number ? ['low to high', 'high to low'] : ['A to Z', 'Z to A'];
	const first = (desc: boolean): Item => ({ word: `Sort ${desc ? down : up}`, icon: desc ? 'descend'
		: 'ascend',
		on: v.sort === c.id && v.desc === desc, act: () => s.go({ sort: c.id, desc,
			...v.then === c.id ? { then: null, thenDesc: false } : {} }) });
	const second = (desc: boolean): Item => ({ word: `Then ${desc ? down : up}`, icon: desc ? 'descend'
		: 'ascend',
		apart: !desc, on: v.then === c.id && v.thenDesc === desc,
		act: () => s.go({ then: c.id, thenDesc: desc }) });
	const clear: Item = { word: 'Sort by the goal', icon: 'close', act: () =>
		s.go({ sort: null, desc: false, then: null, thenDesc: false }) };
	return [first(false), first(true), ...v.sort === c.id ? [] : [second(false), second(true)],
		...v.sort !== null || v.then !== null ? [clear] : []];
}

function groups(c: Column): Item[] {
	const field = c.id.startsWith('p:') ? c.id.slice(2) : c.id.startsWith('t:') ? TAG_FIELD + c.id.slice(2)
		: c.id === 'experiment' ? EXPERIMENT : null;
	const { group } = s.view.value;
	if (field === null) return [];
	const on = group.includes(field);
	return [{ word: on ? 'No longer group by this' : 'Group by this', icon: 'runs', act: () =>
		s.go({ group: on ? group.filter((g) => g !== field) : [...group, field] }) }];
}

function places(c: Column): Item[] {
	const at = columns.value.findIndex((o) => o.id === c.id);
	if (at < 1) return [];
	const { fixed } = s.view.value;
	const inside = (to: number) => to > 0 && to < columns.value.length
		&& fixed.includes(columns.value[to]!.id) === fixed.includes(c.id);
	const move = (by: number, word: string, icon: IconName): Item[] => (inside(at + by)
		? [{ word, icon, act: () => void place(at, at + by), stays: true }] : []);
	return [{ word: fixed.includes(c.id) ? 'Unpin' : 'Pin to the left', icon: 'pin', apart: true,
		act: () => fix(c.id) }, ...move(-1, 'Move left', 'back'), ...move(1, 'Move right', 'move'),
	{ word: 'Hide', icon: 'eye', act: () => hide(c.id) }];
}

function Line({ of, close }: { of: Item; close: () => void }) {
	return <button type="button" class="item" aria-pressed={of.on} onClick={() => {
		if (!of.stays) close();
		of.act();
	}}><Icon name={of.icon} />{of.word}</button>;
}

export function HeadMenu() {
	const at = s.menuOf.value!;
	const filtering = useSignal(false);
	const c = columns.value.find((o) => o.id === at.id);
	const close = () => (s.menuOf.value = null);
	if (at.id.startsWith(s.RUN))
		return <OwnColour key={at.id} id={at.id.slice(s.RUN.length)} at={at} close={close} />;
	if (!c) return null;
	const filter: Item[] = filterField(c) === null ? [] : [{ word: 'Filter by value', icon: 'filter', apart: true,
		act: () => (filtering.value = true), stays: true }];
	const items = [...sorts(c), ...filter, ...groups(c), ...places(c)];
	return (
		<span class="pop headpop" style={{ left: at.left + 'px', top: at.top + 'px' }}>
			{filtering.value ? <Panel key="filter" label={`Filter by ${c.title}`} close={close}>
				<ValueFilter c={c} close={close} /></Panel>
				: <Panel key="menu" label={`Column ${c.title}`} close={close}>
					<ul class="menu">{items.map((i) => (
						<li key={i.word} class={i.apart ? 'apart' : ''}><Line of={i}
							close={close} /></li>))}</ul></Panel>}
		</span>
	);
}
