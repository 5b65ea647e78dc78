// The columns of the comparison table: which there are, which are shown by default, how wide, what a cell says.
import { computed, signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { decimalsFor, duration, fixed, natural, paramText, short, signed, when } from '../../base/format.ts';
import { bestOf, bestRun, bestStep, directionOf, fellOut, inPoints, isLoss } from '../../base/goal.ts';
import { nest, type Nested } from '../../base/nest.ts';
import { tellingParams } from '../../base/params.ts';
import { metricColumn, metricValue, runTime } from '../../base/rank.ts';
import { valueAt } from '../../base/series.ts';
import { alertText, firstWords, Shape, statements } from '../base/bits.tsx';
import { jumpTo } from '../base/jump.ts';
import { PhaseBar, phasesOf } from '../base/phases.tsx';

export interface Column {
	id: string;
	title: string;
	/** Second, smaller line of the header's meaning, for the title attribute. */
	hint: string;
	width: number;
	/** Width that it takes where there is room. */
	wanted?: number;
	number: boolean;
	sortable: boolean;
	cell(r: Run): ComponentChildren;
	/** Whole value for the title attribute and for copying. */
	full(r: Run): string;
}

const PAD = 14;
const SAMPLE = 300;
const ruler = document.createElement('canvas').getContext('2d')!;

/** A header in one or two lines, broken near its middle. */
export function twoLines(title: string): string[] {
	const words = title.split(' ');
	if (words.length < 2) return [title];
	let best = 1;
	const long = (i: number) => Math.max(words.slice(0, i).join(' ').length, words.slice(i).join(' ').length);
	for (let i = 2; i < words.length; i++) if (long(i) < long(best)) best = i;
	return [words.slice(0, best).join(' '), words.slice(best).join(' ')];
}

/** Column width from the texts that it shows, in the page's own font. */
function widthOf(title: string, texts: Iterable<string>, max: number): number {
	const family = getComputedStyle(document.documentElement).fontFamily;
	ruler.font = '600 11.5px ' + family;
	let n = 0;
	for (const line of twoLines(title)) n = Math.max(n, ruler.measureText(line).width + 2);
	ruler.font = '600 12.5px ' + family;
	for (const t of new Set(texts)) n = Math.max(n, ruler.measureText(t).width);
	return Math.ceil(Math.min(max, Math.max(34, n + PAD)));
}

function* sample<T>(list: readonly Run[], f: (r: Run) => T): Generator<T> {
	for (let i = 0; i < Math.min(list.length, SAMPLE); i++) yield f(list[i]!);
}

export const best = computed(() => bestRun(s.rows.value, s.goal.value));

function paramColumn(key: string): Column {
	const list = s.rows.value;
	const numeric = list.every((r) => r.params[key] === undefined || !Number.isNaN(Number(r.params[key])));
	return {
		id: 'p:' + key, title: key.replace(/_/g, ' '), hint: 'param ' + key, number: numeric, sortable: true,
		width: widthOf(key.replace(/_/g, ' ').slice(0, 18), sample(list, (r) => paramText(r.params[key] ?? '')), 150),
		cell: (r) => paramText(r.params[key] ?? ''),
		full: (r) => r.params[key] ?? '',
	};
}

function tagColumn(key: string): Column {
	const text = (r: Run) => s.tagsOf(r)[key] ?? '';
	return {
		id: 't:' + key, title: key, hint: 'tag ' + key, number: false, sortable: true,
		width: widthOf(key.slice(0, 18), sample(s.rows.value, text), 150), cell: text, full: text,
	};
}

/** Last part of a key unless two shown keys share it. */
export function shortKey(key: string): string {
	const tail = key.slice(key.lastIndexOf('/') + 1);
	const clash = s.metricKeys.value.some((k) => k !== key && k.endsWith('/' + tail) && !k.startsWith('phase/'));
	return clash || key.startsWith('train/') ? key.replace(/^epoch\//, '') : tail;
}

function metricCol(id: string): Column | null {
	const c = metricColumn(id);
	if (!c) return null;
	const dir = s.goal.value?.key === c.key ? s.goal.value.dir : directionOf(c.key);
	const list = s.rows.value;
	const values = [...sample(list, (r) => metricValue(r.metrics[c.key], c.what, dir) ?? NaN)];
	const d = decimalsFor(values);
	const what = c.what === 'best' ? (dir === 'max' ? 'max' : 'min') : c.what;
	const top = c.what === 'best' && s.goal.value?.key === c.key ? best.value : null;
	return {
		id, title: `${shortKey(c.key)} ${c.what}`, hint: `${c.key}, ${what}`, number: true, sortable: true,
		width: widthOf(`${shortKey(c.key)} ${c.what}`.slice(0, 16), values.map((v) => fixed(v, d)), 130),
		cell: (r) => {
			const v = metricValue(r.metrics[c.key], c.what, dir);
			if (v === undefined) return <span class="none">–</span>;
			const text = fixed(v, d);
			return top && r.id === top.id ? <b class="best">{text}</b> : Number.isNaN(v) ? <span class="bad">NaN</span> : text;
		},
		full: (r) => {
			const m = r.metrics[c.key];
			const v = metricValue(m, c.what, dir);
			if (v === undefined) return '';
			const at = c.what === 'best' ? bestStep(m, dir) : c.what === 'last' ? m!.last_step : null;
			return fixed(v, null) === '' ? '' : String(v) + (at === null ? '' : ` at step ${at}`);
		},
	};
}

function deltaColumn(): Column | null {
	const g = s.goal.value;
	const top = best.value;
	const ref = top ? bestOf(top.metrics[g!.key], g!.dir) : null;
	if (!g || ref === null) return null;
	const list = s.rows.value;
	const points = inPoints(g.key, [...sample(list, (r) => bestOf(r.metrics[g.key], g.dir) ?? NaN)]);
	const delta = (r: Run) => {
		const v = bestOf(r.metrics[g.key], g.dir);
		return v === null ? null : (v - ref) * (points ? 100 : 1);
	};
	const d = decimalsFor([...sample(list, (r) => delta(r) ?? NaN)].filter((v) => v !== 0).map(Math.abs));
	const digits = d === null ? null : Math.min(d, points ? 1 : 6);
	return {
		id: 'delta', title: points ? 'Δ points' : 'Δ best', number: true, sortable: false, width: 74,
		hint: `difference to the best run's ${g.key}` + (points ? ', in hundredths' : '') + '; while the pointer is in a chart, the value under it',
		cell: (r) => {
			if (readout.value && !cursorColumnShown.value) return <span class="reading">{reading(r)}</span>;
			const v = delta(r);
			return v === null ? <span class="none">–</span> : top!.id === r.id ? <span class="best">best</span> : signed(v, digits);
		},
		full: (r) => String(delta(r) ?? ''),
	};
}

/** Decimals of the read-out, from what the chart shows. */
const readout = computed(() => {
	const c = s.cursor.value;
	void s.seriesRev.value;
	if (!c) return null;
	const by = new Map<string, number | null>();
	for (const r of s.shown.value) {
		const series = s.seriesFor(r.id, c.key);
		by.set(r.id, series ? valueAt(series, c.x) : null);
	}
	const values = [...by.values()].filter((v): v is number => v !== null && Number.isFinite(v)).sort((a, b) => a - b);
	// a lone spike must not take the digits from the others
	return { key: c.key, x: c.x, by, decimals: decimalsFor(values.slice(0, Math.ceil(values.length * 0.8))) };
});

/** Values under the cursor by run, for the order of the rows while the pointer is in a chart. */
export function cursorValues(): Map<string, number | null> | null {
	return readout.value?.by ?? null;
}

export const cursorTitle = computed(() => {
	const c = s.cursor.value;
	if (!c) return 'at cursor';
	const unit = s.unitOf(c.key);
	const x = unit === 'time' ? duration(c.x * 1000) : unit === 'epoch' ? 'epoch ' + short(Number(c.x.toFixed(1)))
		: String(Math.round(c.x));
	return `${shortKey(c.key)} @ ${x}`;
});

function reading(r: Run): string {
	const c = readout.value;
	const v = c?.by.get(r.id);
	return c && v !== undefined && v !== null ? fixed(v, c.decimals) : '';
}

/** The read-out has a column of its own when the user picked it; else it takes the place of the difference. */
export const cursorColumnShown = computed(() => s.view.value.columns?.includes('cursor') ?? false);

function cursorColumn(): Column {
	const text = reading;
	return {
		id: 'cursor', title: 'at cursor', hint: 'value where the pointer stands in a chart', number: true,
		sortable: false, width: 74, cell: text, full: text,
	};
}

function statusColumn(): Column {
	return {
		id: 'status', title: 'status', hint: 'how the run ended, and what to look at', number: false, sortable: true,
		width: widthOf('status', sample(s.rows.value, (r) => statements(r).map((t) => t.text + 'xxxx').join('')), 280),
		cell: (r) => statements(r).map((t) => t.alert ? (
			<button type="button" class={'say ' + t.kind} tabIndex={-1} title={t.alert.text || alertText(t.alert)}
				onClick={(e) => {
					e.stopPropagation();
					jumpTo(r, t.alert!);
				}}><Shape kind={t.kind} />{t.text}</button>
		) : <span class={'say ' + t.kind}><Shape kind={t.kind} />{t.text}</span>),
		full: (r) => statements(r).map((t) => t.text).join('; '),
	};
}

function notesColumn(): Column {
	return {
		id: 'notes', title: 'notes', hint: 'first words; the whole note on the run\'s page', number: false, sortable: true,
		width: 100, cell: (r) => firstWords(r.notes), full: (r) => r.notes,
	};
}

function timeColumn(id: 'time' | 'start'): Column {
	const text = (r: Run) => {
		const t = runTime(r);
		return id === 'start' ? when(r.start_time) : t === undefined ? '' : duration(t);
	};
	return {
		id, title: id === 'time' ? 'duration' : 'started', hint: id, number: true, sortable: true,
		width: id === 'time' ? 74 : 128, cell: text, full: text,
	};
}

function phaseColumn(): Column {
	const text = (r: Run) => (phasesOf(r) ?? []).map((p) => `${p.name} ${Math.round(p.share * 100)}%`).join(', ');
	return {
		id: 'phase', title: 'phases', hint: 'share of each phase in the time of a step', number: false,
		sortable: false, width: 88, cell: (r) => <PhaseBar run={r} />, full: text,
	};
}

const NAME_MAX = 190;
/** Pixels for each parent above a run; the deepest stand no further in, names need the room. */
export const INDENT = 14;
export const DEEPEST = 6;

function nameColumn(): Column {
	let indent = s.haveParents.value ? 14 : 0;
	for (const n of nesting.value?.values() ?? []) indent = Math.max(indent, INDENT + Math.min(n.depth, DEEPEST) * INDENT + 7);
	const wanted = 36 + indent + widthOf('run', sample(s.rows.value, (r) => r.name), 600);
	return {
		id: 'name', title: 'run', hint: 'name; Enter opens the run', number: false, sortable: true,
		width: Math.min(36 + indent + NAME_MAX, wanted), wanted,
		cell: (r) => r.name || r.id.slice(0, 8), full: (r) => r.name,
	};
}

function make(id: string): Column | null {
	if (id.startsWith('p:')) return paramColumn(id.slice(2));
	if (id.startsWith('t:')) return tagColumn(id.slice(2));
	if (id.startsWith('m:')) return metricCol(id);
	switch (id) {
	case 'name': return nameColumn();
	case 'delta': return deltaColumn();
	case 'cursor': return cursorColumn();
	case 'status': return statusColumn();
	case 'notes': return notesColumn();
	case 'time': case 'start': return timeColumn(id);
	case 'phase': return phaseColumn();
	default: return null;
	}
}

/** Column ids without the user's say: what differs, the goal, the cursor, a loss or two, time, status, notes. */
export const defaultColumns = computed<string[]>(() => {
	const keys = new Set(s.metricKeys.value);
	const g = s.goal.value;
	const ids = tellingParams(s.split.value, 8).map((k) => 'p:' + k);
	if (g) ids.push('m:best:' + g.key, 'delta', 'm:last:' + g.key);
	const extra = [...keys].filter((k) => k !== g?.key && /^(epoch|val|eval|test)\//.test(k) && /loss|perplexity/.test(k)
		&& !/train/.test(k)).slice(0, 1).map((k) => 'm:best:' + k);
	if (!extra.length && s.curve.value && isLoss(s.curve.value)) extra.push('m:last:' + s.curve.value);
	if (keys.has('epoch/samples_per_s')) extra.push('m:last:epoch/samples_per_s');
	if (keys.has('epoch/seconds')) extra.push('m:last:epoch/seconds');
	else extra.push('time');
	ids.push(...extra);
	if (s.rows.value.some((r) => phasesOf(r))) ids.push('phase');
	ids.push('status');
	if (s.rows.value.some((r) => r.notes)) ids.push('notes');
	return ids;
});

export const columns = computed<Column[]>(() => {
	const ids = ['name', ...(s.view.value.columns ?? defaultColumns.value)];
	return ids.map(make).filter((c): c is Column => c !== null);
});

/** Every column that can be picked, in groups. */
export const pickable = computed<{ id: string; label: string }[]>(() => [
	...s.paramKeys.value.map((k) => ({ id: 'p:' + k, label: k })),
	...['status', 'delta', 'cursor', 'time', 'start', 'phase', 'notes'].map((id) => ({ id, label: id })),
	...s.tagKeys.value.map((k) => ({ id: 't:' + k, label: 'tag ' + k })),
	...s.metricKeys.value.flatMap((k) => (['best', 'last', 'min', 'max', 'first'] as const)
		.map((w) => ({ id: `m:${w}:${k}`, label: `${k} ${w}` }))),
]);

/** While the pointer is in a chart for a moment, rows are in the order of the values under it. */
export const byCursor = signal(false);

/** Parents whose children are folded away. */
const folded = signal<ReadonlySet<string>>(new Set());

export function toggleFold(id: string): void {
	const set = new Set(folded.value);
	if (!set.delete(id)) set.add(id);
	folded.value = set;
}

export function isFolded(id: string): boolean {
	return folded.value.has(id);
}

/** Runs below their parents, by id; null while the rows are in one list. */
export const nesting = computed<ReadonlyMap<string, Nested> | null>(() => (!s.view.value.nest || byCursor.value || !s.haveParents.value ? null
	: new Map(nest(s.rows.value, folded.value).map((n) => [n.run.id, n]))));

export const visibleRows = computed<Run[]>(() => {
	const list = s.rows.value;
	if (nesting.value) return [...nesting.value.values()].map((n) => n.run);
	const at = byCursor.value ? cursorValues() : null;
	const c = s.cursor.value;
	if (!at || !c) return list;
	const down = directionOf(c.key) === 'max';
	const rank = (r: Run) => {
		const v = at.get(r.id);
		return v === undefined || v === null ? Infinity : Number.isNaN(v) ? 1e308 : down ? -v : v;
	};
	return [...list].sort((a, b) => rank(a) - rank(b) || natural(a.name, b.name));
});

export function isFallen(r: Run): boolean {
	return fellOut(r);
}
