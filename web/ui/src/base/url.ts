// SPDX-License-Identifier: Apache-2.0
// Encodes the view as a short query string and parses it: everything that another reader must see, and nothing else.
import type { Direction } from './goal.ts';
import type { Panel } from './panel.ts';

/** side: runs side by side; report, models: one of them, or the list; settings: a tab of them. */
export type Page = 'compare'|'run'|'experiments'|'side'|'report'|'models'|'alerts'|'trash'|'settings';
/** time: since the run's start; clock: time of day. */
export type XAxis = 'step' | 'time' | 'epoch' | 'clock';
export type Band = 'minmax' | 'std' | 'se' | 't95';
export type Middle = 'mean' | 'median';
const BANDS: readonly string[] = ['std', 'se', 't95'];
export type Limits = [number | null, number | null];
/** In View.shown: all runs, also later ones, as far as charts draw them. */
export const EVERY: string[] = [''];
/** Maximum of charted runs that are not chosen one by one. */
export const SHOW_MAX = 100;
/** Value for "no saved view". */
export const PLAIN = '0';
export const PER_ROW_MAX = 6;
const X_AXES: readonly string[] = ['time', 'epoch', 'clock'];

/** Column ids; '' selects automatically, for the colour: that of the run. */
export interface Scatter {
	x: string;
	y: string;
	colour: string;
	/** Which axes are logarithmic. */
	log: '' | 'x' | 'y' | 'xy';
	/** Draws the Pareto front. */
	front: boolean;
}

/** Column ids of rows, columns and cells; '' selects automatically, for cells the goal. */
export interface Pivot {
	rows: string;
	columns: string;
	value: string;
}

export const emptyPivot: Pivot = { rows: '', columns: '', value: '' };
export const emptyScatter: Scatter = { x: '', y: '', colour: '', log: '', front: false };

export interface View {
	page: Page;
	experiment: string | null;
	/** Further experiments whose runs are shown with its. */
	also: string[];
	run: string | null;
	goal: string | null;
	dir: Direction | null;
	/** Column id, null: by the goal. */
	sort: string | null;
	desc: boolean;
	/** Column id of the second sort, null: none. */
	then: string | null;
	thenDesc: boolean;
	/** Chosen column ids, null: the default columns. */
	columns: string[] | null;
	/** Ids of the columns that stay in place while the others scroll. */
	fixed: string[];
	filter: string;
	/** Lists archived runs too. */
	archived: boolean;
	/** Lists only charted runs. */
	only: boolean;
	/** Ids (8 digits) of pinned rows, and of the baseline run. */
	pins: string[];
	baseline: string | null;
	/** Column widths in pixels by id, as set by the user. */
	widths: Record<string, number>;
	x: XAxis;
	log: boolean;
	/** Logarithmic x axis. */
	logX: boolean;
	smooth: number;
	full: boolean;
	zoom: [number, number] | null;
	/** Of charts that count epochs and have no relation to steps. */
	epochZoom: [number, number] | null;
	/** Params of colour and dash, null: automatic. */
	hue: string | null;
	dash: string | null;
	/** Colours of runs (0xrrggbb by the first 8 digits of the id), as set by the user. */
	colours: Record<string, number>;
	/** Fields (a param, or "t:" and a tag) to group by; table and charts then show groups instead of runs. */
	group: string[];
	/** The band around a group's line, and how the line is computed. */
	band: Band;
	middle: Middle;
	/** Means count runs that failed or diverged, too. */
	everyRun: boolean;
	/** Lists runs without their nesting. */
	flat: boolean;
	/** The parallel coordinates are open. */
	parallel: boolean;
	/** Column ids of the axes of the parallel coordinates, null: automatic. */
	axes: string[] | null;
	/** How those axes are scaled, if the user says: log, linear or quantile, by column id. */
	scales: Record<string, string>;
	/** The scatter plot: open or not, and its columns. */
	scatter: Scatter | null;
	/** The pivot table: open or not, and its fields. */
	pivot: Pivot | null;
	/** The importance panel is open. */
	importance: boolean;
	/** User-defined panels. */
	panels: Panel[];
	/** Search words for charts. */
	find: string;
	/** Number of open charts by group, if set by the user. */
	groups: Record<string, number>;
	/** Columns of the charts, 0: by the window. */
	perRow: number;
	/** Metrics of the charts at the top, null: the training curve and the goal. */
	tops: string[] | null;
	/** Metrics whose charts are hidden. */
	hidden: string[];
	/** Metrics whose charts come first in their groups. */
	order: string[];
	/** Sizes of charts by metric: columns (tens) and rows (units), 11 unless set by the user. */
	sizes: Record<string, number>;
	/** Step of all media in digits, null: each the last. */
	media: string | null;
	/** Brushed ranges of the parallel coordinates by axis title. */
	brushes: Record<string, [number, number]>;
	/** Limits of the y axis by chart, as set by the user; null: automatic. */
	limits: Record<string, Limits>;
	/** Ids (8 digits) of the charted runs or EVERY, null: the default selection. */
	shown: string[] | null;
	/** The open report; '' for the list. */
	report: string;
	/** The tab of a run's page or of the settings; '': the first. */
	tab: string;
	/** Name of the open registered model; '' for the list. */
	model: string;
	/** Version of the report, null: the newest. */
	edition: number | null;
	/** The saved view that this one started from; PLAIN: none, although the experiment has a default. */
	saved: string | null;
}

export const emptyView: View = {
	page: 'compare', experiment: null, also: [], run: null, goal: null, dir: null, sort: null, desc: false,
	then: null, thenDesc: false, columns: null, fixed: [], filter: '', archived: false, only: false, pins: [],
	baseline: null, widths: {},
	x: 'step', log: false, logX: false, smooth: 0, full: false, zoom: null, epochZoom: null, hue: null, dash: null,
	colours: {},
	flat: false, parallel: false, axes: null, scales: {}, scatter: null, pivot: null, importance: false, panels: [],
	find: '', groups: {}, perRow: 0, tops: null, hidden: [], order: [], sizes: {}, media: null, brushes: {},
	group: [], band: 'minmax', middle: 'mean', everyRun: false, limits: {}, shown: null,
	report: '', tab: '', model: '', edition: null, saved: null,
};

function num(s: string | null): number | null {
	if (s === null || s.trim() === '') return null;
	const v = Number(s);
	return Number.isFinite(v) ? v : null;
}

function zoomOf(s: string | null): [number, number] | null {
	const m = s?.split('~') ?? [];
	const a = num(m[0] ?? null);
	const b = num(m[1] ?? null);
	return a !== null && b !== null && a < b ? [a, b] : null;
}

function zoomText([from, to]: [number, number]): string {
	// times of day need seconds
	return [from, to].map((n) => Number(n.toPrecision(Math.abs(n) > 1e8 ? 12 : 7))).join('~');
}

/** Reads texts of a form, whose last part is a name. */
function byName<T>(list: readonly string[], form: RegExp, read: (...parts: string[]) => T | null): Record<string, T> {
	const out: Record<string, T> = {};
	for (const t of list) {
		const parts = form.exec(t)?.slice(1);
		const value = parts && read(...parts);
		if (value != null) out[parts!.at(-1)!] = value;
	}
	return out;
}

/** Parses "12.epoch" as epoch: 12. */
const numbersOf = (list: readonly string[]) => byName(list, /^(\d{1,8})\.(.+)$/, Number);

/** Parses "log.p:lr" as p:lr: log. */
const scalesOf = (list: readonly string[]) => byName(list, /^(log|linear|quantile)\.(.+)$/, String);

const RANGE = /^([^~]*)~([^~]*)~(.+)$/;

/** Parses "0.1~0.5~lr" as lr: [0.1, 0.5]. */
const brushesOf = (list: readonly string[]) => byName(list, RANGE, (from, to) => zoomOf(`${from}~${to}`));

/** Parses "0~~loss" as loss: [0, null]. */
const limitsOf = (list: readonly string[]) => byName(list, RANGE, (lo, hi): Limits => [num(lo!), num(hi!)]);

const LOGS: readonly string[] = ['x', 'y', 'xy'];

function scatterOf(p: URLSearchParams): Scatter | null {
	const log = p.get('scl') ?? '';
	const [x = '', y = '', colour = ''] = p.getAll('sc');
	return p.has('sc') ? { x, y, colour, log: LOGS.includes(log) ? log as Scatter['log'] : '',
		front: p.has('front') } : null;
}

function pivotOf(list: readonly string[]): Pivot | null {
	const [rows = '', columns = '', value = ''] = list;
	return list.length ? { rows, columns, value } : null;
}

/** Parses "train/loss,val/loss~lr": the metrics of a panel and its x metric. */
function panelOf(text: string): Panel {
	const at = text.lastIndexOf('~');
	return at < 0 ? { metrics: text, x: '' } : { metrics: text.slice(0, at), x: text.slice(at + 1) };
}

const panelText = (p: Panel): string => p.x || p.metrics.includes('~') ? `${p.metrics}~${p.x}` : p.metrics;

/** The query of an address that MLflow's clients print (#/experiments/1/runs/<id>), null for others. */
export function linkedQuery(hash: string): string | null {
	const m = /^#\/experiments\/\d+\/runs\/([0-9a-f]{32})(?:[/?].*)?$/.exec(hash);
	return m ? '?r=' + m[1]! : null;
}

/** Other targets of such an address: an experiment, or a logged model. */
export function linkedTarget(hash: string): { experiment: string; model: string | null } | null {
	const m = /^#\/experiments\/(\d+)(?:\/models\/(m-[0-9a-z-]+))?(?:[/?].*)?$/.exec(hash);
	return m && linkedQuery(hash) === null ? { experiment: m[1]!, model: m[2] ?? null } : null;
}

/** Parses "0123abcd.4567ef01" as id prefixes, "*" as EVERY. */
function idsOf(text: string | null): string[] | null {
	return text === null ? null : text === '*' ? EVERY : text.split('.').filter((s) => /^[0-9a-f]{1,32}$/.test(s));
}

/** A list that the user chose, null: automatic. Chosen empty it is one empty word. */
function listOf(p: URLSearchParams, k: string): string[] | null {
	return p.has(k) ? p.getAll(k).filter((c) => c !== '') : null;
}

export function parseView(query: string): View {
	const p = new URLSearchParams(query);
	const sort = p.get('s');
	const goal = p.get('g');
	const x = p.get('x');
	const run = p.get('r');
	return {
		page : p.has('report')	   ? 'report'
		       : p.has('models')   ? 'models'
		       : run !== null	   ? 'run'
		       : p.has('all')	   ? 'experiments'
		       : p.has('side')	   ? 'side'
		       : p.has('alerts')   ? 'alerts'
		       : p.has('trash')	   ? 'trash'
		       : p.has('settings') ? 'settings' : 'compare',
		experiment : p.get('e'),
		also : [...new Set(p.getAll('e'))].slice(1),
		run,
		goal : goal === null ? null : goal.replace(/^[+ -]/, ''),
		dir : goal?.[0] === '-'		 ? 'min'
		      : /^[+ ]/.test(goal ?? '') ? 'max' : null,
		sort : sort === null ? null : sort.replace(/^-/, ''),
		desc : sort !== null && sort[0] === '-',
		then : p.get('s2')?.replace(/^-/, '') ?? null,
		thenDesc : p.get('s2')?.[0] === '-',
		fixed : p.getAll('fix'),
		columns : listOf(p, 'c'),
		filter : p.get('q') ?? '',
		archived : p.has('arch'),
		only : p.has('only'),
		pins : idsOf(p.get('pin')) ?? [],
		baseline : idsOf(p.get('base'))?.[0] ?? null,
		widths : numbersOf(p.getAll('w')),
		x : x !== null && X_AXES.includes(x) ? x as XAxis : 'step',
		log : p.has('log'),
		logX : p.has('logx') && x !== 'clock',
		smooth : Math.min(0.99, Math.max(0, num(p.get('sm')) ?? 0)),
		full : p.has('full'),
		zoom : zoomOf(p.get('z')),
		epochZoom : zoomOf(p.get('ze')),
		hue : p.get('col'), dash : p.get('dash'),
		colours : numbersOf(p.getAll('oc')),
		group : p.getAll('by'),
		band : BANDS.includes(p.get('band') ?? '') ? p.get('band') as Band : 'minmax',
		middle : p.has('median') ? 'median' : 'mean',
		everyRun : p.has('every'),
		flat : p.has('flat'),
		parallel : p.has('par'),
		axes : listOf(p, 'ax'),
		scales : scalesOf(p.getAll('axs')),
		scatter : scatterOf(p),
		pivot : pivotOf(p.getAll('pv')),
		importance : p.has('imp'),
		panels : p.getAll('pn').map(panelOf),
		find : p.get('f') ?? '',
		groups : numbersOf(p.getAll('gr')),
		perRow : Math.min(PER_ROW_MAX, Math.max(0, Number(p.get('cols')) | 0)),
		tops : listOf(p, 'top'),
		hidden : p.getAll('hide'),
		order : p.getAll('ord'),
		sizes : numbersOf(p.getAll('sz')),
		media : p.get('at'),
		brushes : brushesOf(p.getAll('br')),
		limits : limitsOf(p.getAll('y')),
		report : p.get('report') ?? '',
		tab : p.get('settings') ?? (run === null ? '' : p.get('t') ?? ''),
		model : p.get('models') ?? '',
		edition : num(p.get('edition')),
		saved : p.get('v'),
		shown : idsOf(p.get('o')),
	};
}

/** Writes only non-default values; '/' and ',' stay readable. */
export function viewQuery(v: View): string {
	const out: string[] = [];
	const add = (k: string, val: string | number) => out.push(k + '=' + encodeURIComponent(val)
		.replace(/%2F/g, '/').replace(/%3A/g, ':').replace(/%2C/g, ',').replace(/%20/g, '+'));
	const all = (k: string, list: readonly string[] | null) => list?.forEach((val) => add(k, val));
	/** What listOf reads. */
	const chosen = (k: string, list: readonly string[] | null) => all(k, list?.length ? list : list && ['']);
	const numbers = (k: string, by: Record<string, number | string>) =>
		all(k, Object.entries(by).map(([id, n]) => `${n}.${id}`));
	if (v.page === 'experiments' || v.page === 'trash') return v.page === 'trash' ? '?trash' : '?all';
	if (v.page === 'settings') return '?settings' + (v.tab && '=' + v.tab);
	if (v.experiment !== null) all('e', [v.experiment, ...v.also]);
	if (v.page === 'side' || v.page === 'alerts') out.push(v.page);
	if (v.page === 'models') v.model ? add('models', v.model) : out.push('models');
	if (v.page === 'report') {
		out.push('report' + (v.report && '=' + v.report));
		if (v.edition !== null) add('edition', v.edition);
		return '?' + out.join('&');
	}
	if (v.page === 'run' && v.run !== null) add('r', v.run);
	if (v.page === 'run' && v.tab !== '') add('t', v.tab);
	if (v.goal !== null) add('g', (v.dir === 'min' ? '-' : v.dir ? '+' : '') + v.goal);
	if (v.sort !== null) add('s', (v.desc ? '-' : '') + v.sort);
	if (v.then !== null) add('s2', (v.thenDesc ? '-' : '') + v.then);
	all('fix', v.fixed);
	chosen('c', v.columns);
	if (v.filter !== '') add('q', v.filter);
	if (v.archived) out.push('arch');
	if (v.only) out.push('only');
	if (v.pins.length) add('pin', v.pins.join('.'));
	if (v.baseline !== null) add('base', v.baseline);
	numbers('w', v.widths);
	if (v.x !== 'step') add('x', v.x);
	if (v.log) out.push('log');
	if (v.logX) out.push('logx');
	if (v.smooth > 0) add('sm', v.smooth);
	if (v.full) out.push('full');
	if (v.zoom) add('z', zoomText(v.zoom));
	if (v.epochZoom) add('ze', zoomText(v.epochZoom));
	if (v.hue !== null) add('col', v.hue);
	if (v.dash !== null) add('dash', v.dash);
	numbers('oc', v.colours);
	all('by', v.group);
	if (v.band !== 'minmax') add('band', v.band);
	if (v.middle === 'median') out.push('median');
	if (v.everyRun) out.push('every');
	if (v.flat) out.push('flat');
	if (v.parallel) out.push('par');
	chosen('ax', v.axes);
	numbers('axs', v.scales);
	if (v.scatter) {
		for (const id of [v.scatter.x, v.scatter.y, v.scatter.colour]) add('sc', id);
		if (v.scatter.log) add('scl', v.scatter.log);
		if (v.scatter.front) out.push('front');
	}
	if (v.pivot) for (const id of [v.pivot.rows, v.pivot.columns, v.pivot.value]) add('pv', id);
	if (v.importance) out.push('imp');
	for (const p of v.panels) add('pn', panelText(p));
	if (v.find !== '') add('f', v.find);
	numbers('gr', v.groups);
	if (v.perRow) add('cols', v.perRow);
	chosen('top', v.tops);
	all('hide', v.hidden);
	all('ord', v.order);
	numbers('sz', v.sizes);
	if (v.media !== null) add('at', v.media);
	for (const [title, range] of Object.entries(v.brushes)) add('br', `${zoomText(range)}~${title}`);
	for (const [chart, [lo, hi]] of Object.entries(v.limits)) add('y', `${lo ?? ''}~${hi ?? ''}~${chart}`);
	if (v.shown !== null) add('o', v.shown.join('.') || (v.shown.length ? '*' : ''));
	if (v.saved !== null) add('v', v.saved);
	return out.length ? '?' + out.join('&') : '';
}

/** The saved view if the address contains nothing else, or null. */
export function savedAlone(query: string): string | null {
	return /^\?v=([1-9]\d*)$/.exec(query)?.[1] ?? null;
}

/** Only the experiment is set, and one alone. */
export function isBare(v: View): boolean {
	return v.page === 'compare' && !v.also.length && viewQuery({ ...v, experiment: null }) === '';
}

/** Returns true if all words occur in the run's name, a param, a tag, the status or the notes. */
export function matchesWords(words: string, hay: readonly string[]): boolean {
	if (words === '') return true; // called for thousands of names
	const text = hay.join('\n').toLowerCase();
	return words.toLowerCase().split(/\s+/).every((w) => w === '' || text.includes(w));
}
