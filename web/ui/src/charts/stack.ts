// SPDX-License-Identifier: Apache-2.0
// Stacked horizontal bars of the phases of a step; widths in percent.

export interface Part {
	name: string;
	value: number;
}

export interface Segment extends Part {
	/** Share of the whole, 0 to 1. */
	share: number;
	/** Start of the segment, 0 to 1. */
	start: number;
}

/** Fixed order and class of the phases; unlisted ones are last. */
const PHASES = ['data_wait', 'data', 'h2d', 'forward', 'backward', 'comm_exposed', 'allreduce', 'copy_exposed',
	'bubble', 'optimizer', 'eval', 'other'];
/** Phases that share the colour of another. */
const LIKE: Record<string, string> = {
	data: 'data_wait', allreduce: 'comm_exposed', copy_exposed: 'h2d', bubble: 'eval',
};

export function phaseClass(name: string): string {
	return 'ph-' + (PHASES.includes(name) ? LIKE[name] ?? name : 'other');
}

/** Segments in the fixed order; `whole` is the length of the full bar, at least the sum of the parts. */
export function stack(parts: readonly Part[], whole?: number): Segment[] {
	const rank = (n: string) => (PHASES.indexOf(n) + PHASES.length + 1) % (PHASES.length + 1);
	const list = parts.filter((p) => p.value > 0).sort((a, b) => rank(a.name) - rank(b.name));
	const sum = list.reduce((s, p) => s + p.value, 0);
	const all = Math.max(whole ?? 0, sum) || 1;
	let start = 0;
	return list.map((p) => {
		const s = { ...p, share: p.value / all, start };
		start += s.share;
		return s;
	});
}
