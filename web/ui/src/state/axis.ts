// The unit of x: that of the view, and of single charts that count epochs where the view counts steps.
import { computed } from '@preact/signals';
import type { Run } from '../base/types.ts';
import { drawn, runs } from './runs.ts';
import { view } from './view.ts';

/** steps_per_epoch of a run; null when it has none. */
export function stepsPerEpoch(r: Run | undefined): number | null {
	const n = Number(r?.params.steps_per_epoch);
	return n > 0 ? n : null;
}

/** The x of a chart: series named epoch/… of runs that say how long an epoch is count epochs. */
export function unitOf(key: string): 'step' | 'time' | 'epoch' {
	const x = view.value.x;
	if (x === 'step' && key.startsWith('epoch/') && runs.value.some((r) => stepsPerEpoch(r) !== null))
		return 'epoch';
	return x;
}

/** Steps in one epoch when all shown runs agree, for moving a cursor or a zoom between the two units. */
const commonEpoch = computed(() => {
	const set = new Set(drawn.value.map(stepsPerEpoch));
	const [only] = set;
	return set.size === 1 ? only ?? null : null;
});

/** Moves x from the unit of the view to that of a chart; null when there is no way. */
export function toUnit(key: string, x: number): number | null {
	if (unitOf(key) === view.value.x) return x;
	return commonEpoch.value === null ? null : x / commonEpoch.value;
}

export function fromUnit(key: string, x: number): number | null {
	if (unitOf(key) === view.value.x) return x;
	return commonEpoch.value === null ? null : x * commonEpoch.value;
}

/** The view's zoom in the unit of a chart; null for the whole range. */
export function zoomOf(key: string): [number, number] | null {
	const z = view.value.zoom;
	const a = z ? toUnit(key, z[0]) : null;
	const b = z ? toUnit(key, z[1]) : null;
	return a === null || b === null ? null : [a, b];
}
