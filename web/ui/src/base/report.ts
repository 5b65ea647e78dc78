// SPDX-License-Identifier: Apache-2.0
// Text of a report: Markdown with panels as fenced blocks. A panel has one setting per line: "metrics: train/loss,
// val/loss", "runs: 1a2b3c4d 5e6f7a8b" or "filter: params.lr > 0.1", and optionally "x: epoch", "range: 100 200" of x,
// "xscale: log", "limits: 0 auto" of y, "scale: log", "full: yes", "smooth: 0.6", "title: …", "experiment: …";
// "group: model, t:team" draws a line for each group of runs, "band: std" and "line: median" say which. A frozen panel
// has "frozen: 2" and is drawn from the block "frozen 2" at the end of the text, which holds the REST replies of that
// time.
import type { Band, Limits, Middle } from './url.ts';

type PanelX = 'step' | 'elapsed' | 'epoch' | 'clock';
const X_AXES: readonly string[] = ['step', 'elapsed', 'epoch', 'clock'];
const BANDS: readonly string[] = ['minmax', 'std', 'se', 't95'];

/** The axes of a panel. */
export interface PanelAxes {
	x: PanelX;
	logX: boolean;
	/** The drawn part of x; null: all of it. */
	range: [number, number] | null;
	log: boolean;
	limits: Limits;
	/** Extends y to isolated spikes and excluded runs. */
	full: boolean;
	/** From 0, not smoothed, to below 1. */
	smooth: number;
}

/** How the groups of a panel are drawn. */
interface PanelGroups {
	/** Fields to group by, as in the view; without any each run has its line. */
	group: string[];
	band: Band;
	line: Middle;
}

export interface ReportPanel extends PanelAxes, PanelGroups {
	title: string;
	metrics: string[];
	/** '' is the report's experiment. */
	experiment: string;
	/** Prefixes of run ids; if empty, the newest runs of the filter. */
	runs: string[];
	filter: string;
	/** Number of its data block; null for a live panel. */
	frozen: number | null;
	/** Lines that are not recognised. */
	wrong: string[];
}

type ReportPart = { text: string } | { panel: ReportPanel; lines: string[] };

interface ReportText {
	parts: ReportPart[];
	/** JSON of the data blocks, by number. */
	data: Map<number, string>;
}

const OPEN = /^```(panel|frozen (\d{1,6}))\s*$/;
const CLOSE = /^```\s*$/;

const listOf = (words: string): string[] => words.split(',').map((w) => w.trim()).filter(Boolean);

/** Parses two numbers in ascending order, where "auto" is null; null: something else. */
function limitsOf(value: string): Limits | null {
	const list = value.split(/[\s,]+/).map((w) => (w === 'auto' ? null : Number(w)));
	const [low, high] = list as Limits;
	return list.length === 2 && list.every((v) => v === null || Number.isFinite(v))
		&& (low === null || high === null || low < high) ? [low, high] : null;
}

/** Parses a line on the axes or groups of a panel; returns false if it is another. */
function takeLook(p: ReportPanel, name: string, value: string): boolean {
	const limits = limitsOf(value);
	if (name === 'x' && X_AXES.includes(value)) p.x = value as PanelX;
	else if (name === 'scale' && /^(log|linear)$/.test(value)) p.log = value === 'log';
	else if (name === 'xscale' && /^(log|linear)$/.test(value)) p.logX = value === 'log';
	else if (name === 'limits' && limits) p.limits = limits;
	else if (name === 'range' && limits && !limits.includes(null)) p.range = limits as [number, number];
	else if (name === 'full' && /^(yes|no)$/.test(value)) p.full = value === 'yes';
	else if (name === 'smooth' && Number(value) >= 0 && Number(value) < 1) p.smooth = Number(value);
	else if (name === 'group') p.group = listOf(value);
	else if (name === 'band' && BANDS.includes(value)) p.band = value as Band;
	else if (name === 'line' && /^(mean|median)$/.test(value)) p.line = value as Middle;
	else return false;
	return true;
}

/** Parses one line of a panel; returns false if it is unknown. */
function takeLine(p: ReportPanel, name: string, value: string): boolean {
	if (name === 'metrics') p.metrics = listOf(value);
	else if (name === 'runs') p.runs = value.split(/[\s,]+/).filter((id) => /^[0-9a-f]{4,32}$/.test(id));
	else if (name === 'title' || name === 'experiment' || name === 'filter') p[name] = value;
	else if (name === 'frozen' && /^\d{1,6}$/.test(value)) p.frozen = Number(value);
	else return takeLook(p, name, value);
	return true;
}

function panelFrom(lines: readonly string[]): ReportPanel {
	const p: ReportPanel = { title: '', metrics: [], experiment: '', runs: [], filter: '', x: 'step', log: false,
		logX: false, range: null, limits: [null, null], full: false, smooth: 0, group: [], band: 'minmax',
		line: 'mean', frozen: null, wrong: [] };
	for (const line of lines) {
		const m = /^\s*(\w+)\s*:\s*(.*?)\s*$/.exec(line);
		if (line.trim() && !(m && takeLine(p, m[1]!, m[2]!))) p.wrong.push(line.trim());
	}
	return p;
}

export function readReport(text: string): ReportText {
	const lines = text.split('\n');
	const out: ReportText = { parts: [], data: new Map() };
	let plain: string[] = [];
	const flush = () => {
		if (plain.join('').trim()) out.parts.push({ text: plain.join('\n') });
		plain = [];
	};
	for (let i = 0; i < lines.length; i++) {
		const m = OPEN.exec(lines[i]!);
		const end = m ? lines.findIndex((l, k) => k > i && (CLOSE.test(l) || OPEN.test(l))) : -1;
		if (!m || end < 0 || !CLOSE.test(lines[end]!)) {
			plain.push(lines[i]!);
			continue;
		}
		const inner = lines.slice(i + 1, end);
		flush();
		if (m[2] === undefined) out.parts.push({ panel: panelFrom(inner), lines: inner });
		else out.data.set(Number(m[2]), inner.join('\n'));
		i = end;
	}
	flush();
	return out;
}

const fenced = (name: string, lines: readonly string[]): string => ['```' + name, ...lines, '```'].join('\n');

/** Serialises the report, with data only for frozen panels. */
function writeReport({ parts, data }: ReportText): string {
	const used = new Set(parts.flatMap((p) => ('panel' in p && p.panel.frozen !== null ? [p.panel.frozen] : [])));
	const body = parts.map((p) => ('text' in p ? p.text : fenced('panel', p.lines)));
	const kept = [...data].filter(([n]) => used.has(n)).map(([n, json]) => fenced(`frozen ${n}`, [json]));
	return [...body, ...kept].join('\n') + (kept.length ? '\n' : '');
}

interface PanelWords extends Partial<PanelAxes & PanelGroups> {
	metrics: string;
	title?: string;
	/** Prefixes of run ids; without: the runs of the filter. */
	runs?: readonly string[];
	filter?: string;
}

function groupWords({ group, band, line }: PanelWords): string[] {
	return group?.length ? [`group: ${group.join(', ')}`, ...band ? [`band: ${band}`] : [],
		...line ? [`line: ${line}`] : []] : [];
}

function axesWords({ x, logX, range, log, limits, full, smooth }: PanelWords): string[] {
	const line = (of: string, value: string) => `${of}: ${value}`;
	return [...x && x !== 'step' ? [`x: ${x}`] : [], ...logX ? [line('xscale', 'log')] : [],
		...range ? [`range: ${range.join(' ')}`] : [], ...log ? [line('scale', 'log')] : [],
		...limits?.some((v) => v !== null) ? [`limits: ${limits.map((v) => v ?? 'auto').join(' ')}`] : [],
		...full ? [line('full', 'yes')] : [], ...smooth ? [`smooth: ${smooth}`] : []];
}

/** The text of a live panel. */
export function panelBlock(p: PanelWords): string {
	const { metrics, title, runs, filter } = p;
	const one = (text: string) => text.replace(/\s+/g, ' ').trim();
	return fenced('panel', [
		...title ? [`title: ${one(title)}`] : [], `metrics: ${one(metrics)}`,
		...runs?.length ? [`runs: ${runs.join(' ')}`] : [], ...filter ? [`filter: ${one(filter)}`] : [],
		...groupWords(p), ...axesWords(p),
	]);
}

/** The text with a panel at its end. */
export function withPanel(text: string, words: PanelWords): string {
	return withBody(text, bodyOf(text).replace(/\n*$/, '\n\n') + panelBlock(words) + '\n');
}

/** The text as its author edits it: without data blocks. */
export function bodyOf(text: string): string {
	const { parts } = readReport(text);
	return writeReport({ parts, data: new Map() });
}

/** The text with another body and the same data. */
export function withBody(text: string, body: string): string {
	return writeReport({ parts: readReport(body).parts, data: readReport(text).data });
}

/** The text with its n-th part frozen to json, or live again (null). */
export function withFrozen(text: string, at: number, json: string | null): string {
	const { parts, data } = readReport(text);
	const part = parts[at];
	if (!part || !('panel' in part)) return text;
	const lines = part.lines.filter((l) => !/^\s*frozen\s*:/.test(l));
	const number = Math.max(0, ...data.keys()) + 1;
	if (json !== null) {
		lines.push(`frozen: ${number}`);
		data.set(number, json);
	}
	const fresh = parts.map((p, i) => (i === at ? { panel: panelFrom(lines), lines } : p));
	return writeReport({ parts: fresh, data });
}
