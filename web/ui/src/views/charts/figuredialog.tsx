// SPDX-License-Identifier: Apache-2.0
// The dialog that makes a figure of a chart: its settings, a preview that is the result, and its files. Loaded when it
// opens; what was set is kept until the page is left.
import { useSignal } from '@preact/signals';
import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { count } from '../../base/format.ts';
import type { LineChart } from '../../charts/line/index.ts';
import * as s from '../../state/index.ts';
import { saveBlob, saveCsv } from '../base/save.ts';
import { addStyles } from '../base/styles.ts';
import { Figure, firstSettings, onPaper, pixelsOf, PRESETS, printFigure, problemOf, sourceOf, templateNames,
	type FigureSettings, type Source } from './figure.ts';
import text from './figure.part.css';

addStyles(text);

/** Settings of the charts' figures by their names. */
const kept = new Map<string, FigureSettings>();
const PARAMS_SHOWN = 8;
/** Narrower figures are shown at twice their size. */
const SMALL_PX = 400;
const NO_ROOM = 'Nothing fits into this size: enlarge it.';
const UNITS = ['mm', 'px'];
const TIMES = [1, 2, 3, 4];
const LEGENDS: [FigureSettings['legend'], string][] = [['auto', 'Automatic'], ['ends', 'At the ends of lines'],
	['below', 'Below'], ['none', 'Hidden']];

interface Form {
	f: FigureSettings;
	set: (part: Partial<FigureSettings>) => void;
}

type TextKey = 'title' | 'x' | 'y' | 'template';
type NumberKey = 'from' | 'to' | 'low' | 'high';

function Field({ label, wide, children }: { label: string; wide?: boolean; children: ComponentChildren }) {
	return <label class={wide ? 'wide' : ''}><span>{label}</span>{children}</label>;
}

function TextField({ f, set, of, label }: Form & { of: TextKey; label: string }) {
	return <Field label={label} wide><input type="text" value={f[of]}
		onInput={(e) => set({ [of]: e.currentTarget.value })} /></Field>;
}

/** An empty field is automatic. */
function NumberField({ f, set, of, label }: Form & { of: NumberKey; label: string }) {
	return <Field label={label}><input type="number" step="any" placeholder="Auto" value={f[of] ?? ''}
		onInput={(e) => set({ [of]: Number.isNaN(e.currentTarget.valueAsNumber) ? null
			: e.currentTarget.valueAsNumber })} /></Field>;
}

/** A positive number of the size. */
function SizeField({ f, set, of, label }: Form & { of: 'width' | 'height' | 'font'; label: string }) {
	return <Field label={label}><input type="number" step="any" min="1" value={f[of]} onInput={(e) => {
		if (e.currentTarget.valueAsNumber > 0) set({ [of]: e.currentTarget.valueAsNumber });
	}} /></Field>;
}

function Check({ f, set, of, label }: Form & { of: 'logX' | 'log' | 'marks' | 'flags' | 'clear'; label: string }) {
	return <label class="choice"><input type="checkbox" checked={f[of]}
		onChange={(e) => set({ [of]: e.currentTarget.checked })} />{label}</label>;
}

const isSize = (f: FigureSettings, size: Partial<FigureSettings>) =>
	Object.entries(size).every(([k, v]) => f[k as keyof FigureSettings] === v);

function SizePart({ f, set }: Form) {
	return (
		<section aria-label="Size"><h3>Size</h3>
			<span class="segmented" role="group" aria-label="Preset">
				{Object.entries(PRESETS).map(([name, size]) => (
					<button key={name} type="button" aria-pressed={isSize(f, size)}
						onClick={() => set(size)}>{name}</button>))}</span>
			<div class="fields">
				<SizeField f={f} set={set} of="width" label="Width" />
				<SizeField f={f} set={set} of="height" label="Height" />
				<Field label="Unit"><select value={f.unit} onChange={(e) =>
					set({ unit: e.currentTarget.value as FigureSettings['unit'] })}>
					{UNITS.map((u) => <option key={u} value={u}>{u}</option>)}</select></Field>
				<SizeField f={f} set={set} of="font" label="Text, pt" />
			</div></section>
	);
}

/** axes: those of parallel ones, instead of x and y. */
function AxesPart({ f, set, axes }: Form & { axes: readonly string[] }) {
	const o = { f, set };
	return (
		<section aria-label="Title and axes"><h3>Title and axes</h3>
			<div class="fields">
				<TextField {...o} of="title" label="Title" />
				{axes.map((a) => <Field key={a} label={`Name of ${a}`} wide><input type="text"
					placeholder={a} value={f.names[a] ?? ''} onInput={(e) =>
						set({ names: { ...f.names, [a]: e.currentTarget.value } })} /></Field>)}
				{!axes.length && <>
					<TextField {...o} of="x" label="Name of X" />
					<NumberField {...o} of="from" label="X from" />
					<NumberField {...o} of="to" label="X to" />
					<Check {...o} of="logX" label="Log x" />
					<TextField {...o} of="y" label="Name of Y" />
					<NumberField {...o} of="low" label="Y from" />
					<NumberField {...o} of="high" label="Y to" />
					<Check {...o} of="log" label="Log y" /></>}
			</div></section>
	);
}

/** A line: whether it is drawn, its colour and its name. */
function LineRow({ f, set, line, name }: Form & { line: { id: string; colour: string }; name: string }) {
	const rest = f.hidden.filter((id) => id !== line.id);
	const shown = rest.length === f.hidden.length;
	return (
		<li>
			<input type="checkbox" checked={shown} aria-label={`Draw ${name}`}
				onChange={() => set({ hidden: shown ? [...rest, line.id] : rest })} />
			<input type="color" value={f.colours[line.id] ?? line.colour} aria-label={`Colour of ${name}`}
				onInput={(e) => set({ colours: { ...f.colours, [line.id]: e.currentTarget.value } })} />
			<input type="text" placeholder={name} value={f.names[line.id] ?? ''}
				aria-label={`Name of ${name}`}
				onInput={(e) => set({ names: { ...f.names, [line.id]: e.currentTarget.value } })} />
		</li>
	);
}

function LinesPart({ f, set, source, names }: Form & { source: Source; names: readonly string[] }) {
	const params = ['name', ...s.split.value.differ].slice(0, PARAMS_SHOWN);
	const isLines = source.kind === 'lines';
	const add = (k: string) => set({ template: (f.template === '{name}' ? '' : f.template + ' ') + `{${k}}` });
	return (
		<section aria-label="Lines"><h3>{source.kind === 'points' ? 'Points' : 'Lines'}</h3>
			<div class="fields">
				<TextField f={f} set={set} of="template" label="Names" />
				<p class="wide dim">Add {params.map((k) => <button key={k} type="button" class="quiet"
					onClick={() => add(k)}>{`{${k}}`}</button>)}</p>
				<Field label="Legend" wide><select value={f.legend} onChange={(e) =>
					set({ legend: e.currentTarget.value as FigureSettings['legend'] })}>
					{LEGENDS.filter(([k]) => isLines || k !== 'ends').map(([k, word]) =>
						<option key={k} value={k}>{word}</option>)}</select></Field>
			</div>
			<ul class="menu">{source.items.map((line, i) => (
				<LineRow key={line.id} f={f} set={set} line={line} name={names[i]!} />))}</ul>
			{isLines && <><Check f={f} set={set} of="marks"
				label="Marks of failed runs and clipped values" />
			<Check f={f} set={set} of="flags" label="Words of alerts above the plot" /></>}
			<Check f={f} set={set} of="clear" label="Transparent background" />
		</section>
	);
}

/** The figure of a source; it draws in a hidden element. */
function useFigure(source: Source, dialog: RefObject<HTMLDialogElement | null>): RefObject<Figure | null> {
	const figure = useRef<Figure | null>(null);
	useLayoutEffect(() => {
		const before = document.activeElement;
		const box = dialog.current!;
		box.showModal();
		figure.current = new Figure(box.querySelector('.figurehost')!, source);
		return () => {
			figure.current?.destroy();
			if (before instanceof HTMLElement) before.focus();
		};
	}, []);
	return figure;
}

interface FilesOptions extends Form {
	/** Draws now; returns the figure, and its picture as SVG. */
	draw: () => [Figure, string];
	name: string;
	off: boolean;
}

function Files({ f, set, draw, name, off }: FilesOptions) {
	const [wide, high] = pixelsOf(f).map((v) => Math.round(v * f.times));
	const button = (word: string, act: () => void) =>
		<button type="button" disabled={off} aria-label={`Save as ${word}`} onClick={act}>{word}</button>;
	return (
		<footer>
			<label class="choice">Pixels <select value={String(f.times)} onChange={(e) =>
				set({ times: Number(e.currentTarget.value) })}>{TIMES.map((n) =>
					<option key={n} value={n}>{n} ×</option>)}</select></label>
			<span class="dim">PNG of {wide} × {high}</span>
			<span class="grow" />
			{button('PNG', () => void draw()[0].png().then((b) => b && saveBlob(b, name, 'png')))}
			{button('SVG', () => saveBlob(new Blob([draw()[1]], { type: 'image/svg+xml' }), name, 'svg'))}
			{button('CSV', () => saveCsv(draw()[0].csv(f), name))}
			{button('PDF', () => printFigure(elementOf(draw()[1]), f))}
		</footer>
	);
}

const elementOf = (svg: string): Element => new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;

interface Options {
	source: Source;
	/** Display name of the chart and of its files. */
	name: string;
	close: () => void;
}

function Dialog({ source, name, close }: Options) {
	const dialog = useRef<HTMLDialogElement>(null);
	const preview = useRef<HTMLDivElement>(null);
	const now = useSignal(kept.get(name) ?? firstSettings(source));
	const said = useSignal('');
	const note = useSignal('');
	const figure = useFigure(source, dialog);
	const f = now.value;
	const runs = new Map([...s.runs.value, ...s.drawn.value].map((r) => [r.id, r]));
	const names = templateNames(source.items, f.template, runs);
	const problem = problemOf(f, source) || said.value;
	const set = (part: Partial<FigureSettings>) => kept.set(name, now.value = { ...f, ...part });
	const draw = (): [Figure, string] => [figure.current!, figure.current!.draw(f, names)];
	useEffect(() => {
		if (problemOf(f, source)) return;
		const [{ lost }, svg] = draw();
		said.value = !svg ? NO_ROOM : '';
		note.value = lost ? `${count(lost, 'name')} without room: enlarge the height, or hide lines.` : '';
		if (svg) preview.current!.replaceChildren(elementOf(svg));
	}, [f]);
	const [wide] = pixelsOf(f);
	const zoom = wide < SMALL_PX && wide < 0.3 * innerWidth ? 2 : 1;
	return (
		<dialog class="figurebox" ref={dialog} aria-label={`Figure of ${name}`} onClose={close}
			onKeyDown={(e) => e.stopPropagation()}>
			<header><h2>Figure of {name}</h2><span class="grow" />
				<button type="button" class="quiet" aria-label="Close"
					onClick={() => dialog.current!.close()}>✕</button></header>
			<div class="sheet" tabIndex={0}><div ref={preview} role="img" aria-label={`Preview of ${name}`}
				style={{ width: `${wide * zoom}px` }} />
				{problem ? <p class="problem" role="alert">{problem}</p>
					: <p class="dim">{f.width} × {f.height} {f.unit}
						{zoom > 1 && ', shown at twice its size'}
						{note.value && <span class="warn" role="status"> {note.value}</span>}
					</p>}</div>
			<div class="settings">
				<SizePart f={f} set={set} />
				<AxesPart f={f} set={set} axes={source.axes} />
				<LinesPart f={f} set={set} source={source} names={names} />
			</div>
			<Files f={f} set={set} draw={draw} name={name} off={problem !== ''} />
			<div class="figurehost" aria-hidden="true" />
		</dialog>
	);
}

/** Makes the source of a chart's figure; onPaper is that of figure.ts, which loads with the dialog. */
export type MakeSource = (paper: typeof onPaper) => Promise<Source | null>;

/** A figure of a chart as it is now: of lines, with the metric as of sourceOf, or made. */
export function FigureDialog({ of, metric, name, close }:
	{ of: LineChart | MakeSource | null; metric: string; name: string; close: () => void }) {
	const source = useSignal<Source | null>(null);
	const fail = (e?: unknown) => {
		if (e) s.report(e);
		close();
	};
	useEffect(() => {
		const made = typeof of === 'function' ? of(onPaper) : of && sourceOf(of, metric, name);
		Promise.resolve(made).then((m) => (m ? (source.value = m) : fail()), fail);
	}, []);
	return source.value && <Dialog source={source.value} name={name} close={close} />;
}
