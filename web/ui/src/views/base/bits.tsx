// SPDX-License-Identifier: Apache-2.0
// Shared elements: a run's key (colour and dash), names, status shapes, empty pages, folding sections, buttons with
// panels, internal links.
import { useSignal, type Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Look } from '../../base/colour.ts';
import { stepItems, useFocus, usePlace } from './focus.ts';
import { Icon, type IconName } from './icon.tsx';
import { colourOf } from './theme.ts';

/** Of a dash in a neutral colour. */
export const DIM = { light: 'var(--dim)', dark: 'var(--dim)' };

/** The run's line style; hollow if it is hidden in the charts. */
export function Key({ look, on }: { look: Look | undefined; on: boolean }) {
	return (
		<svg class="key" width="24" height="12" viewBox="0 0 24 12" aria-hidden="true">
			<line x1="1" y1="6" x2="23" y2="6" stroke={on ? colourOf(look) : 'var(--faint)'}
				stroke-width={on ? 3 : 1.5} stroke-dasharray={(look?.dash ?? []).join(' ')} />
		</svg>
	);
}

/** The colours of several runs, next to each other. */
export function Shades({ looks }: { looks: readonly Look[] }) {
	const colours = [...new Set(looks.map(colourOf))];
	const x = (i: number) => 1 + (22 * i) / colours.length;
	return (
		<svg class="key" width="24" height="12" viewBox="0 0 24 12" aria-hidden="true">{colours.map((c, i) => (
			<line key={c} x1={x(i)} y1="6" x2={x(i + 1)} y2="6" stroke={c} stroke-width="3" />))}</svg>
	);
}

const TAIL = 12;
const RTL = /[֐-ࣿ]/;

/** A name that is shortened in the middle if it does not fit, since names usually differ at their ends. Split text
 * from right to left would change the places of its digits. */
export function Name({ text, tail = TAIL }: { text: string; tail?: number }) {
	const at = text.length > 2 * tail && !RTL.test(text) ? text.length - tail : text.length;
	return <span class="cut"><span>{text.slice(0, at)}</span>{text.slice(at)}</span>;
}

/** A name that breaks after its separators first, not within a word. */
export function Breaking({ text }: { text: string }) {
	return <>{text.split(/(?<=[/_.-])(?=.)/).flatMap((part, i) => (i ? [<wbr key={i} />, part] : [part]))}</>;
}

const SHAPES: Record<string, string> = {
	finished: 'M2 6.5 5 9.5 10 3',
	running: 'M3.5 2v8l6.5-4z',
	failed: 'M2.5 2.5l7 7M9.5 2.5l-7 7',
	killed: 'M2.5 2.5h7v7h-7z',
	deleted: 'M2 3.5h8M4.5 3.5v-1.5h3v1.5M3 3.5l.7 7h4.6l.7-7',
	preempted: 'M4 2.5v7M8 2.5v7',
	scheduled: 'M6 2a4 4 0 1 0 .01 0M6 3.5V6l2 1',
	nan: 'M6 2.5a3.5 3.5 0 1 0 .01 0M3 9.5l6-7',
	diverged: 'M2 10C6 9 8 7 9.5 2M6.5 3.5l3-1.5 1 3',
	spike: 'M1.5 9.5h3L6 2l1.5 7.5h3',
};

export function Shape({ kind }: { kind: string }) {
	return (
		<svg class={'shape ' + kind} width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
			<path d={SHAPES[kind] ?? SHAPES.finished!} />
		</svg>
	);
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
	return (
		<div class="empty">
			<h2>{title}</h2>
			{children}
		</div>
	);
}

interface GroupOptions {
	open: boolean;
	toggle: () => void;
	name: string;
	/** Number of items, in words. */
	count: ComponentChildren;
}

const FOLLOW_MS = 3000;

/** Brings a section that opens into view, also while it loads, until the reader acts. */
function follow(section: Element): void {
	const watch = new ResizeObserver(() => section.scrollIntoView({ block: 'nearest' }));
	watch.observe(section);
	const end = () => watch.disconnect();
	setTimeout(end, FOLLOW_MS);
	for (const kind of ['wheel', 'pointerdown', 'keydown']) addEventListener(kind, end, { once: true });
}

/** Heading of a folding section. */
export function GroupHead({ open, toggle, name, count }: GroupOptions) {
	return (
		<h2><button type="button" class="quiet" aria-expanded={open} onClick={(e) => {
			toggle();
			const section = e.currentTarget.closest('section');
			if (!open && section) follow(section);
		}}><span aria-hidden="true">{open ? '▾' : '▸'}</span> {name} <span class="dim">{count}</span>
		</button></h2>
	);
}

interface OpenerOptions {
	word: string;
	icon?: IconName;
	/** The icon alone is shown. */
	bare?: boolean;
	open: Signal<boolean>;
	panel: (close: () => void) => ComponentChildren;
}

/** A button with the panel that it opens. */
export function Opener({ word, icon, bare = false, open, panel }: OpenerOptions) {
	return (
		<span class="pop">
			<button type="button" aria-expanded={open.value} aria-label={bare ? word : undefined}
				title={bare ? word : undefined} class={bare ? 'bare' : ''}
				onClick={() => (open.value = !open.value)}>{icon && <Icon name={icon} />}
				{!bare && word}</button>
			{open.value && panel(() => (open.value = false))}
		</span>
	);
}

/** A panel below its button; Escape and a press elsewhere close it, arrows move among its items. Focuses its first
 * field, else its first button. */
export function Panel({ label, close, children }: { label: string; close: () => void; children: ComponentChildren }) {
	const box = useRef<HTMLDivElement>(null);
	usePlace(box);
	useFocus(box, ['input', 'button']);
	useEffect(() => {
		const away = (e: MouseEvent) => {
			if (!box.current?.parentElement?.contains(e.target as Node)) close();
		};
		addEventListener('mousedown', away);
		return () => removeEventListener('mousedown', away);
	}, []);
	return (
		<div class="picker" ref={box} tabIndex={-1} role="dialog" aria-label={label}
			onKeyDown={(e) => (e.key === 'Escape' ? close() : stepItems(e))}>{children}</div>
	);
}

/** Click handler of an internal link; with a modifier key the browser opens a new tab. */
export function followed(act: () => void): (e: MouseEvent) => void {
	return (e) => {
		if (e.ctrlKey || e.metaKey || e.shiftKey) return;
		e.preventDefault();
		act();
	};
}

/** Loads data, again when one of the values of deps changes; null until loaded. The last data is kept until the next
 * is loaded, and where ask returns null. wrong is the error of the last answer, or ''. */
export function useLoaded<T>(ask: () => Promise<T> | null, deps: unknown[]): { value: T | null; wrong: string } {
	const got = useSignal<{ value: T | null; wrong: string }>({ value: null, wrong: '' });
	useEffect(() => {
		let here = true;
		ask()?.then((value) => here && (got.value = { value, wrong: '' }),
			(e: Error) => here && (got.value = { ...got.value, wrong: e.message }));
		return () => void (here = false);
	}, deps);
	return got.value;
}

/** Loads data as useLoaded does; fail gets every error. */
export function useAsked<T>(ask: () => Promise<T> | null, deps: unknown[], fail: (e: Error) => void = () => {}) {
	return useLoaded(() => ask()?.catch((e: Error) => {
		fail(e);
		throw e;
	}) ?? null, deps).value;
}

/** Evenly spaced items, at most `most`, with the first and the last. */
export function evenly<T>(list: readonly T[], most: number): readonly T[] {
	return list.length <= most ? list
		: Array.from({ length: most }, (_, i) => list[Math.round((i * (list.length - 1)) / (most - 1))]!);
}
