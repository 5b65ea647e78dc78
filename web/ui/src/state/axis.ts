// SPDX-License-Identifier: Apache-2.0
// The unit of x: that of the view, and of charts that count epochs while the view counts steps.
import { computed } from '@preact/signals';
import type { Run } from '../base/types.ts';
import type { XAxis } from '../base/url.ts';
import { drawn, runs } from './runs.ts';
import { go, view } from './view.ts';

/** steps_per_epoch of a run, or null. */
export function stepsPerEpoch(r: Run | undefined): number | null {
	const n = Number(r?.params.steps_per_epoch);
	return n > 0 ? n : null;
}

/** Series named epoch/… count epochs if a run has at least two steps for each of their points' positions. Other tools
 * log them at optimiser steps. */
const inEpochs = computed(() => {
	const known = new Map<string, boolean>();
	for (const r of runs.value)
		for (const [key, m] of Object.entries(r.metrics)) {
			if (!key.startsWith('epoch/') || r.last_step === null || known.get(key) === false) continue;
			known.set(key, m.last_step * 2 <= r.last_step);
		}
	return known;
});

/** The x unit of a chart. */
export function unitOf(key: string): XAxis {
	const x = view.value.x;
	return x === 'step' && key.startsWith('epoch/') && inEpochs.value.get(key) !== false ? 'epoch' : x;
}

/** Steps per epoch if all shown runs agree, to convert a cursor or a zoom. */
const commonEpoch = computed(() => {
	const set = new Set(drawn.value.map(stepsPerEpoch));
	const [only] = set;
	return set.size === 1 ? only ?? null : null;
});

/** Returns true if a chart has its own unit, which cannot be converted to the view's. */
const isApart = (key: string): boolean => unitOf(key) !== view.value.x && commonEpoch.value === null;

/** Converts x from the unit of the view to that of a chart; null if impossible. */
export function toUnit(key: string, x: number): number | null {
	if (unitOf(key) === view.value.x) return x;
	return commonEpoch.value === null ? null : x / commonEpoch.value;
}

export function fromUnit(key: string, x: number): number | null {
	if (unitOf(key) === view.value.x) return x;
	return commonEpoch.value === null ? null : x * commonEpoch.value;
}

/** The view's zoom in the unit of a chart; null for the whole range. Charts with their own unit have their own zoom. */
export function zoomOf(key: string): [number, number] | null {
	if (isApart(key)) return view.value.epochZoom;
	const z = view.value.zoom;
	const a = z ? toUnit(key, z[0]) : null;
	const b = z ? toUnit(key, z[1]) : null;
	return a === null || b === null ? null : [a, b];
}

/** Steps are integers; a zoom within two steps is kept. */
function whole(a: number, b: number): [number, number] {
	return view.value.x === 'step' && b - a > 2 ? [Math.round(a), Math.round(b)] : [a, b];
}

/** Zooms to a range in the unit of a chart. */
export function zoomTo(key: string, from: number, to: number): void {
	const a = fromUnit(key, from);
	const b = fromUnit(key, to);
	if (a !== null && b !== null) go({ zoom: whole(a, b) });
	else go({ epochZoom: [from, to] });
}
