// SPDX-License-Identifier: Apache-2.0
// A sparkline: one small polyline without axes as an SVG path, for the cards of narrow screens.

/** SVG path of a polyline scaled to width x height; gaps are kept. */
export function sparkPath(xs: readonly number[], ys: readonly number[],
	range: { from: number; to: number; lo: number; hi: number },
	width: number, height: number): string {
	const w = range.to - range.from || 1;
	const h = range.hi - range.lo || 1;
	let pen = false;
	let d = '';
	for (let i = 0; i < xs.length; i++) {
		const y = ys[i]!;
		if (!Number.isFinite(y)) {
			pen = false;
			continue;
		}
		const px = (((xs[i]! - range.from) / w) * width).toFixed(1);
		const py = (height - (Math.min(1, Math.max(0, (y - range.lo) / h))) * height).toFixed(1);
		d += (pen ? 'L' : 'M') + px + ' ' + py;
		pen = true;
	}
	return d;
}
