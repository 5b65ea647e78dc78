// SPDX-License-Identifier: Apache-2.0
// Table of groups of runs with number, mean and standard deviation per column; open groups list their runs. Keys as in
// the table of runs.
import { batch, useSignalEffect } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { count } from '../../base/format.ts';
import { PLUS_MINUS } from '../../base/group.ts';
import type { Run } from '../../base/types.ts';
import { groupLooks } from '../../state/grouped.ts';
import * as s from '../../state/index.ts';
import { Key } from '../base/bits.tsx';
import '../base/later.ts';
import '../charts/grouplines.ts';
import { GROUP } from '../charts/lines.ts';
import { columns, shownMetrics } from './columns.tsx';
import { active, isForField, sortBy, sortThen, tip, unfocused, useChase } from './focus.ts';
import { groupColumns, orderGroups, sizeOf, type Group, type GroupColumn } from './groupcells.tsx';
import { HeadCell, kindOf, leftOf, Row, ROW } from './row.tsx';
import { openGroups } from './rows.ts';
import { template } from './table.tsx';
import { made, reveal, useScrolled } from './window.ts';

/** A row: a group, or a run of the group above. */
interface Item {
	group: Group;
	run: Run | null;
}

function itemsOf(groups: readonly Group[]): Item[] {
	return groups.flatMap((group) => group.alone ? [{ group, run: group.all[0]! }] : [{ group, run: null },
		...openGroups.value.has(group.name) ? group.all.map((run) => ({ group, run })) : []]);
}

function toggleOpen(name: string): void {
	const set = new Set(openGroups.value);
	if (!set.delete(name)) set.add(name);
	openGroups.value = set;
}

const toggleShown = (g: Group) => s.showAll(g.all.map((r) => r.id), !g.runs.length);

/** Handles a key on a row; returns true if bound. */
function act(key: string, item: Item | undefined, col: number, shift: boolean): boolean {
	if (!item) {
		const c = columns.value[col];
		if (c?.sortable && (key === 'Enter' || key === ' ')) (shift ? sortThen : sortBy)(c);
		return key === 'Enter' || key === ' ';
	}
	const { group, run } = item;
	const open = openGroups.value.has(group.name);
	if (key === ' ' && run) s.toggleSelected(run.id);
	else if (key === 'v' && run) s.toggleShown(run.id);
	else if (key === 'v') toggleShown(group);
	else if (key === 'Enter' && run) s.openRun(run.id);
	else if (!run && (key === 'Enter' || key === (open ? '-' : '+'))) toggleOpen(group.name);
	else return key === ' '; // it does not scroll the page
	return true;
}

/** The position that a key moves to. */
function moved(key: string, { row, col }: { row: number; col: number }, rows: number): { row: number; col: number } {
	const to: Record<string, [number, number]> = {
		ArrowDown: [row + 1, col], j: [row + 1, col], ArrowUp: [row - 1, col], k: [row - 1, col],
		ArrowLeft: [row, col - 1], ArrowRight: [row, col + 1], Home: [row, 0], End: [row, Infinity],
		PageDown: [row + 10, col], PageUp: [row - 10, col],
	};
	const [r, c] = to[key] ?? [row, col];
	return { row: Math.max(-1, Math.min(rows - 1, r)), col: Math.max(0, Math.min(columns.value.length - 1, c)) };
}

function useKeys(box: RefObject<HTMLDivElement | null>, items: readonly Item[]): (e: KeyboardEvent) => void {
	const chase = useChase(box);
	const a = active.value;
	return (e) => {
		if (e.ctrlKey || e.metaKey || e.altKey || isForField(e)) return;
		const to = moved(e.key, a, items.length);
		if (to.row !== a.row || to.col !== a.col) {
			chase.current = true;
			active.value = to;
			if (to.row >= 0) reveal(box.current!, to.row);
			light(items[to.row]);
		} else if (!act(e.key, items[a.row], a.col, e.shiftKey)) return;
		e.preventDefault();
	};
}

/** Keys start from the focused cell. */
function focused({ target, relatedTarget }: FocusEvent, items: readonly Item[]): void {
	const m = /^(-?\d+):(\d+)$/.exec((target as HTMLElement).dataset.cell ?? '');
	if (!m) return;
	active.value = { row: Number(m[1]), col: Number(m[2]) };
	if (relatedTarget) light(items[Number(m[1])]);
}

function light(item: Item | undefined): void {
	s.lit.value = !item ? null : item.group.alone ? item.run!.id : GROUP + item.group.name;
}

function NameCell({ g }: { g: Group }) {
	const open = openGroups.value.has(g.name);
	return (
		<>
			<span class="eye" title={open ? 'Fold its runs away (−)' : 'List its runs (+)'}
				onClick={() => toggleOpen(g.name)}>{open ? '▾' : '▸'}</span>
			<span class="eye" title={g.runs.length ? 'Hide in the charts (v)' : 'Show in the charts (v)'}
				onClick={() => toggleShown(g)}>
				<Key look={groupLooks.value.get(g.name)} on={g.runs.length > 0} /></span>
			<b class="cut"><span>{g.title}</span></b>
			<span class="dim" title={PLUS_MINUS}>{sizeOf(g)}</span>
		</>
	);
}

function GroupRow({ g, n, cols }: { g: Group; n: number; cols: readonly GroupColumn[] }) {
	const a = active.value;
	const kind = (s.lit.value === GROUP + g.name ? ' lit' : '') + (g.runs.length ? '' : ' off');
	return (
		<div role="row" class={'row' + kind} aria-rowindex={n + 2} aria-level={1} data-group={g.name}
			aria-selected={g.runs.length > 0} aria-expanded={openGroups.value.has(g.name)}
			style={{ top: n * ROW + 'px' }} onMouseEnter={() => (s.lit.value = GROUP + g.name)}>
			{cols.map((c, i) => (
				<div key={c.of.id} role={i ? 'gridcell' : 'rowheader'} aria-colindex={i + 1}
					data-cell={n + ':' + i} class={kindOf(c.of, i)} style={leftOf(c.of)}
					tabIndex={a.row === n && a.col === i ? 0 : -1} title={i ? c.full(g) : g.name}
					onClick={() => i > 0 && (active.value = { row: n, col: i })}>
					{i ? c.cell(g) : <NameCell g={g} />}</div>
			))}
		</div>
	);
}

/** Groups for narrow screens: name, number of runs, goal. */
function GroupCards({ groups, cols }: { groups: readonly Group[]; cols: readonly GroupColumn[] }) {
	const goal = cols.find((c) => s.goal.value && c.of.id === 'm:best:' + s.goal.value.key);
	return (
		<ol class="cards" aria-label="Groups of runs">{groups.map((g) => (
			<li key={g.name} class="card run">
				<button type="button" class="eye" aria-pressed={g.runs.length > 0}
					aria-label={`${g.title} in the charts`} onClick={() => toggleShown(g)}>
					<Key look={groupLooks.value.get(g.name)} on={g.runs.length > 0} /></button>
				<b class="name">{g.title}</b>
				<span class="value">{goal?.cell(g)}</span>
				<span class="what">{count(g.runs.length, 'run')}{g.fallen
					&& `, mean of ${g.counted.length}${g.fallen}`}</span>
			</li>
		))}</ol>
	);
}

export function Grouped({ narrow }: { narrow: boolean }) {
	const box = useRef<HTMLDivElement>(null);
	const cols = groupColumns.value;
	const groups = orderGroups(s.runGroups.value, cols);
	useSignalEffect(() => void s.needMetrics(shownMetrics.value));
	useEffect(() => batch(() => {
		active.value = { row: 0, col: 0 };
		tip.value = null;
	}), []);
	return narrow ? <GroupCards groups={groups} cols={cols} /> : <Grid box={box} items={itemsOf(groups)}
		cols={cols} />;
}

interface GridOptions {
	box: RefObject<HTMLDivElement | null>;
	items: readonly Item[];
	cols: readonly GroupColumn[];
}

function Grid({ box, items, cols }: GridOptions) {
	useScrolled(box);
	const onKey = useKeys(box, items);
	const { indexes } = made(items.length, active.value.row);
	const shown = cols.map((c) => c.of);
	return (
		<div class="grid grouped" role="treegrid" ref={box} aria-label="Groups of runs"
			aria-multiselectable="true"
			aria-rowcount={items.length + 1} aria-colcount={cols.length} onKeyDown={onKey}
			onFocusIn={(e) => focused(e, items)} onFocusOut={unfocused}
			onMouseLeave={() => light(undefined)}
			style={{ '--cols': template(shown), '--min': shown.reduce((w, c) => w + c.width, 0) + 'px' }}>
			<div class="row head" role="row"
				aria-rowindex={1}>{shown.map((c, i) => <HeadCell key={c.id} c={c} i={i} />)}</div>
			<div class="body" role="rowgroup" style={{ height: items.length * ROW + 'px' }}>
				{indexes.map((n) => {
					const { group, run } = items[n]!;
					return run
						? <Row key={run.id} r={run} n={n} at={n} cols={shown} divide={false} />
						: <GroupRow key={group.name} g={group} n={n} cols={cols} />;
				})}
			</div>
		</div>
	);
}
