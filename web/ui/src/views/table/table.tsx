// The comparison table: an ARIA grid whose rows exist only while they are on the screen, with a fixed row height.
// One cell is in the tab order; arrows move it, space shows or hides the run, Enter opens it or does what the cell says.
import { batch, signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { parentOf } from '../../base/nest.ts';
import { metricColumn } from '../../base/rank.ts';
import { directionOf } from '../../base/goal.ts';
import { Key, Name, statements } from '../base/bits.tsx';
import { byCursor, columns, cursorColumnShown, cursorTitle, DEEPEST, INDENT, isFolded, nesting, toggleFold, twoLines, isFallen, visibleRows, type Column } from './columns.tsx';
import { jumpTo } from '../base/jump.ts';

export const ROW = 27;
const HEAD = 34;
const OVERSCAN = 6;

/** The cell that has or would get the focus; row -1 is the header. */
const active = signal({ row: 0, col: 0 });
const scrolled = signal({ top: 0, height: 600 });
/** The whole text of a focused cell that shows only its beginning. */
const tip = signal<{ text: string; left: number; top: number } | null>(null);

function fullText(el: HTMLElement): string {
	const m = /^(\d+):(\d+)$/.exec(el.closest<HTMLElement>('[data-cell]')?.dataset.cell ?? '');
	const r = m ? visibleRows.value[Number(m[1])] : undefined;
	return (r && columns.value[Number(m![2])]?.full(r)) ?? '';
}

function showTip(cell: HTMLElement): void {
	const text = cell.scrollWidth > cell.clientWidth ? fullText(cell) : '';
	const box = cell.getBoundingClientRect();
	tip.value = text === '' ? null : { text, left: Math.max(8, Math.min(box.left, innerWidth - 428)), top: box.bottom + 2 };
}

function sortBy(c: Column): void {
	const v = s.view.value;
	const g = s.goal.value;
	const m = metricColumn(c.id);
	if (m?.what === 'best' && g?.key === m.key && v.sort !== null) return s.go({ sort: null, desc: false });
	const start = m ? directionOf(m.key) === 'max' : false;
	if (v.sort !== c.id) s.go({ sort: c.id, desc: start });
	else if (v.desc === start) s.go({ desc: !start });
	else s.go({ sort: null, desc: false });
}

function ariaSort(c: Column): 'ascending' | 'descending' | 'none' {
	const v = s.view.value;
	const g = s.goal.value;
	const id = v.sort ?? (g ? 'm:best:' + g.key : 'start');
	if (id !== c.id) return 'none';
	return (v.sort === null ? g?.dir !== 'min' : v.desc) ? 'descending' : 'ascending';
}

function HeadCell({ c, i }: { c: Column; i: number }) {
	const order = ariaSort(c);
	const on = active.value.row === -1 && active.value.col === i;
	const reads = c.id === 'cursor' || (c.id === 'delta' && !cursorColumnShown.value && s.cursor.value !== null);
	const title = reads ? cursorTitle.value : c.title;
	return (
		<div role="columnheader" class={'cell' + (c.number ? ' num' : '') + (c.id === 'name' ? ' first' : '') + (reads ? ' reading' : '')}
			aria-colindex={i + 1} aria-sort={c.sortable ? order : undefined} title={c.hint} data-cell={'-1:' + i}
			tabIndex={on ? 0 : -1} onClick={() => c.sortable && sortBy(c)}>
			<span class="lines">{twoLines(title).map((l) => <span key={l}>{l}</span>)}</span>{order !== 'none' && <span class="arrow" aria-hidden="true">{order === 'descending' ? '▾' : '▴'}</span>}
		</div>
	);
}

function level(r: Run): number | undefined {
	const own = nesting.value?.get(r.id);
	return own ? own.depth + 1 : undefined;
}

function expanded(r: Run): boolean | undefined {
	return nesting.value?.get(r.id)?.below ? !isFolded(r.id) : undefined;
}

/** Where a run stands among parents and children: an indent and a switch. */
function Fold({ r }: { r: Run }) {
	const own = nesting.value?.get(r.id);
	return !own ? null : (
		<span class="fold" style={{ paddingLeft: Math.min(own.depth, DEEPEST) * INDENT + 'px' }}>
			{own.below > 0 && <span class="eye" title={`${isFolded(r.id) ? 'show' : 'hide'} the ${own.below} below (+ and − on the keyboard)`}
				onClick={() => toggleFold(r.id)}>{isFolded(r.id) ? '▸' : '▾'}</span>}
		</span>
	);
}

function Row({ r, n, cols, fallen }: { r: Run; n: number; cols: Column[]; fallen: boolean }) {
	const a = active.value;
	const shown = s.isShown(r.id);
	const look = s.looks.value.byRun.get(r.id);
	const parent = parentOf(r);
	return (
		<div role="row" class={'row' + (s.lit.value === r.id ? ' lit' : '') + (fallen ? ' divide' : '') + (shown ? '' : ' off')
			+ (isFallen(r) ? ' fallen' : '')}
			aria-rowindex={n + 2} aria-selected={shown} aria-level={level(r)} aria-expanded={expanded(r)} data-run={r.id} style={{ top: n * ROW + 'px' }}
			onMouseEnter={() => (s.lit.value = r.id)}>
			{cols.map((c, i) => (
				<div key={c.id} role={i === 0 ? 'rowheader' : 'gridcell'} aria-colindex={i + 1} data-cell={n + ':' + i}
					class={'cell c-' + c.id.replace(/:.*/, '') + (c.number ? ' num' : '') + (i === 0 ? ' first' : '')}
					tabIndex={a.row === n && a.col === i ? 0 : -1} title={c.full(r)}
					onClick={() => i > 0 && (active.value = { row: n, col: i })}>
					{i === 0 ? (
						<>
							<Fold r={r} />
							<span class="eye" title={shown ? 'shown in the charts' : 'hidden in the charts'}
								onClick={() => s.toggleShown(r.id)}><Key look={look} on={shown} /></span>
							<a href={s.addressOf({ page: 'run', run: r.id.slice(0, 12) })} tabIndex={-1} onClick={(e) => {
								if (e.ctrlKey || e.metaKey || e.shiftKey) return;
								e.preventDefault();
								s.openRun(r.id);
							}}><Name text={r.name || r.id.slice(0, 8)} /></a>
							{!nesting.value && parent !== null && <span class="child" title={`belongs to ${s.nameOf(parent)}`}>↳</span>}
						</>
					) : c.cell(r)}
				</div>
			))}
		</div>
	);
}

/** Acts on the focused cell; true when the key meant something. */
function act(key: string, n: number, col: number): boolean {
	const c = columns.value[col];
	if (n < 0) {
		if ((key === 'Enter' || key === ' ') && c?.sortable) sortBy(c);
		return key === 'Enter' || key === ' ';
	}
	const r = visibleRows.value[n];
	if (!r) return false;
	if (key === ' ') s.toggleShown(r.id);
	else if ((key === '+' || key === '-') && expanded(r) === (key === '-')) toggleFold(r.id);
	else if (key === 'Enter') {
		const say = c?.id === 'status' ? statements(r).find((t) => t.alert) : undefined;
		if (say) jumpTo(r, say.alert!);
		else s.openRun(r.id);
	} else return false;
	return true;
}

function move(key: string, page: number): boolean {
	const { row, col } = active.value;
	const rows = visibleRows.value.length - 1;
	const cols = columns.value.length - 1;
	const to: Record<string, [number, number]> = {
		ArrowDown: [row + 1, col], j: [row + 1, col], ArrowUp: [row - 1, col], k: [row - 1, col],
		ArrowLeft: [row, col - 1], ArrowRight: [row, col + 1], Home: [row, 0], End: [row, cols],
		PageDown: [row + page, col], PageUp: [Math.max(0, row - page), col],
	};
	const t = to[key];
	if (!t) return false;
	active.value = { row: Math.min(rows, Math.max(-1, t[0])), col: Math.min(cols, Math.max(0, t[1])) };
	return true;
}

export function Table() {
	const box = useRef<HTMLDivElement>(null);
	const chase = useRef(false);
	const list = visibleRows.value;
	const cols = columns.value;
	const { top, height } = scrolled.value;
	const from = Math.max(0, Math.floor(top / ROW) - OVERSCAN);
	const to = Math.min(list.length, Math.ceil((top + height) / ROW) + OVERSCAN);
	const divide = s.fallenFrom.value;
	const template = cols.map((c) => c.id === 'notes' ? `minmax(${c.width}px, 1fr)` : c.wanted ? `minmax(${c.width}px, ${c.wanted}px)` : c.width + 'px').join(' ')
		+ (cols.some((c) => c.id === 'notes') ? '' : ' 1fr');
	const a = active.value;

	useLayoutEffect(() => {
		const el = box.current!;
		const measure = () => (scrolled.value = { top: el.scrollTop, height: el.clientHeight });
		const watch = new ResizeObserver(measure);
		watch.observe(el);
		el.addEventListener('scroll', measure, { passive: true });
		return () => {
			watch.disconnect();
			el.removeEventListener('scroll', measure);
		};
	}, []);
	useEffect(() => {
		if (active.value.row >= list.length) active.value = { row: Math.max(0, list.length - 1), col: active.value.col };
	}, [list.length]);
	useEffect(() => {
		if (!chase.current) return;
		chase.current = false;
		const cell = box.current!.querySelector<HTMLElement>(`[data-cell="${a.row}:${a.col}"]`);
		cell?.focus({ preventScroll: true });
		cell?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
	}, [a.row, a.col, from]);

	const onKey = (e: KeyboardEvent) => {
		if (e.ctrlKey || e.metaKey || e.altKey || (e.target as HTMLElement).tagName === 'INPUT') return;
		const at = active.value;
		if (move(e.key, Math.floor(height / ROW) - 2)) {
			chase.current = true;
			const n = active.value.row;
			const el = box.current!;
			if (n >= 0 && n * ROW < el.scrollTop) el.scrollTop = n * ROW;
			else if (n >= 0 && (n + 2) * ROW > el.scrollTop + el.clientHeight) el.scrollTop = (n + 2) * ROW - el.clientHeight;
			if (n >= 0) s.lit.value = visibleRows.value[n]?.id ?? null;
			if (active.value.row === at.row && active.value.col === at.col) chase.current = false;
		} else if (!act(e.key, at.row, at.col)) return;
		e.preventDefault();
	};
	const onFocus = (e: FocusEvent) => {
		const m = /^(-?\d+):(\d+)$/.exec((e.target as HTMLElement).dataset.cell ?? '');
		if (!m) return;
		const at = { row: Number(m[1]), col: Number(m[2]) };
		showTip(e.target as HTMLElement);
		batch(() => {
			if (at.row !== active.value.row || at.col !== active.value.col) active.value = at;
			if (at.row >= 0) s.lit.value = visibleRows.value[at.row]?.id ?? null;
		});
	};
	const onCopy = (e: ClipboardEvent) => {
		if (getSelection()?.toString()) return;
		const text = fullText(e.target as HTMLElement);
		if (text === '') return;
		e.clipboardData?.setData('text/plain', text);
		e.preventDefault();
	};
	// the cell in the tab order must exist even when it has been scrolled away
	const far = a.row >= 0 && a.row < list.length && (a.row < from || a.row >= to) ? [a.row] : [];
	const indexes = [...far, ...Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i)];
	return (
		<div class="grid" role={nesting.value ? 'treegrid' : 'grid'} ref={box} aria-label="Runs" aria-rowcount={list.length + 1} aria-colcount={cols.length}
			aria-multiselectable="true" onKeyDown={onKey} onFocusIn={onFocus} onFocusOut={() => (tip.value = null)} onCopy={onCopy}
			onScroll={() => (tip.value = null)} onMouseLeave={() => (s.lit.value = null)}
			style={{ '--cols': template, '--min': cols.reduce((w, c) => w + c.width, 0) + 'px' }}>
			<div class="row head" role="row" aria-rowindex={1}>{cols.map((c, i) => <HeadCell key={c.id} c={c} i={i} />)}</div>
			<div class="body" role="rowgroup" style={{ height: list.length * ROW + 'px' }}>
				{indexes.map((n) => <Row key={list[n]!.id} r={list[n]!} n={n} cols={cols} fallen={n === divide && n > 0 && !byCursor.value && !nesting.value} />)}
			</div>
			{tip.value && <div class="tip" role="tooltip" style={{ left: tip.value.left + 'px', top: tip.value.top + 'px' }}>{tip.value.text}</div>}
		</div>
	);
}

/** Height of the whole table without scrolling, in pixels. */
export function tableHeight(): number {
	return HEAD + visibleRows.value.length * ROW + 2;
}
