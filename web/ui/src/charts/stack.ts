// Stacked horizontal bars, for the share of each phase in a step: one segment per part, widths in percent.

export interface Part {
	name: string;
	value: number;
}

export interface Segment extends Part {
	/** Share of the whole, 0 to 1. */
	share: number;
	/** Where the segment starts, 0 to 1. */
	start: number;
}

/** Order and class of the phases, the same everywhere; what is not listed comes last. */
const PHASES = ['data_wait', 'data', 'h2d', 'forward', 'backward', 'comm_exposed', 'allreduce', 'copy_exposed',
	'bubble', 'optimizer', 'eval', 'other'];
/** Phases that have the colour of another one. */
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
