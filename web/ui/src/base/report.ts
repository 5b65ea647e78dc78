// The text of a report: Markdown, with panels between as fenced blocks. A panel says what it shows, a line each:
// "metrics: train/loss, val/loss", "runs: 1a2b3c4d 5e6f7a8b" or "filter: params.lr > 0.1", and as one likes "x: epoch",
// "scale: log", "title: …", "experiment: …". One that is frozen says "frozen: 2" and is drawn from the block "frozen 2"
// at the text's end, which holds what REST said when it was frozen.

/** What x may stand for, as the server knows it. */
type PanelX = 'step' | 'elapsed' | 'epoch';
const X_AXES: readonly string[] = ['step', 'elapsed', 'epoch'];

export interface ReportPanel {
	title: string;
	metrics: string[];
	/** '' is that of the report. */
	experiment: string;
	/** Beginnings of ids; none: what the filter finds, the newest first. */
	runs: string[];
	filter: string;
	x: PanelX;
	log: boolean;
	/** Number of the block that holds its data; null: it is live. */
	frozen: number | null;
	/** Lines that say nothing that is known. */
	wrong: string[];
}

type ReportPart = { text: string } | { panel: ReportPanel; lines: string[] };

interface ReportText {
	parts: ReportPart[];
	/** JSON of the frozen blocks, by number. */
	data: Map<number, string>;
}

const OPEN = /^```(panel|frozen (\d{1,6}))\s*$/;
const CLOSE = /^```\s*$/;

function listOf(words: string): string[] {
	return words.split(',').map((w) => w.trim()).filter(Boolean);
}

/** Takes what one line of a panel says; false where it says nothing known. */
function takeLine(p: ReportPanel, name: string, value: string): boolean {
	if (name === 'metrics') p.metrics = listOf(value);
	else if (name === 'runs') p.runs = value.split(/[\s,]+/).filter((id) => /^[0-9a-f]{4,32}$/.test(id));
	else if (name === 'title' || name === 'experiment' || name === 'filter') p[name] = value;
	else if (name === 'x' && X_AXES.includes(value)) p.x = value as PanelX;
	else if (name === 'scale' && /^(log|linear)$/.test(value)) p.log = value === 'log';
	else if (name === 'frozen' && /^\d{1,6}$/.test(value)) p.frozen = Number(value);
	else return false;
	return true;
}

function panelFrom(lines: readonly string[]): ReportPanel {
	const p: ReportPanel = { title: '', metrics: [], experiment: '', runs: [], filter: '', x: 'step', log: false,
		frozen: null, wrong: [] };
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

function fenced(name: string, lines: readonly string[]): string {
	return ['```' + name, ...lines, '```'].join('\n');
}

/** The text again, with the data of those panels alone that are frozen. */
function writeReport({ parts, data }: ReportText): string {
	const used = new Set(parts.flatMap((p) => ('panel' in p && p.panel.frozen !== null ? [p.panel.frozen] : [])));
	const body = parts.map((p) => ('text' in p ? p.text : fenced('panel', p.lines)));
	const kept = [...data].filter(([n]) => used.has(n)).map(([n, json]) => fenced(`frozen ${n}`, [json]));
	return [...body, ...kept].join('\n') + (kept.length ? '\n' : '');
}

/** What an author sees of the text: all but the data of frozen panels. */
export function bodyOf(text: string): string {
	const { parts } = readReport(text);
	return writeReport({ parts, data: new Map() });
}

/** The text with another body, and the data that it had. */
export function withBody(text: string, body: string): string {
	return writeReport({ parts: readReport(body).parts, data: readReport(text).data });
}

/** The text with the n-th of its parts frozen to what json says, or live again (null). */
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
