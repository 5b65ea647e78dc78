// SPDX-License-Identifier: Apache-2.0
// Heat map on one canvas, coloured relative to a reference or between two limits. Rows beyond the height share pixels,
// which show the most extreme cell, so no slow rank is lost.

interface HeatData {
	cells: readonly (readonly number[])[];
	/** -1 to 1 for a cell: 0 is the background, 1 warm, -1 cold; NaN is empty. */
	shade(value: number, column: number): number;
	warm: string;
	cold: string;
}

/** Row and column at a position, or null outside. */
export function cellAt(d: { rows: number; columns: number; width: number; height: number }, x: number,
	y: number): [number, number] | null {
	const [row, column] = [Math.floor((y / d.height) * d.rows), Math.floor((x / d.width) * d.columns)];
	return row >= 0 && row < d.rows && column >= 0 && column < d.columns ? [row, column] : null;
}

function furthest(d: HeatData, first: number, last: number, column: number): number {
	let far = NaN;
	for (let r = first; r <= last; r++) {
		const s = d.shade(d.cells[r]![column]!, column);
		if (Number.isFinite(s) && !(Math.abs(far) >= Math.abs(s))) far = s;
	}
	return far;
}

export function drawHeat(canvas: HTMLCanvasElement, d: HeatData, width: number, height: number): void {
	const scale = devicePixelRatio || 1;
	canvas.width = Math.round(width * scale);
	canvas.height = Math.round(height * scale);
	const g = canvas.getContext('2d')!;
	const rows = d.cells.length;
	const columns = d.cells[0]?.length ?? 0;
	const lines = Math.min(rows, canvas.height);
	for (let line = 0; line < lines; line++) {
		const [first, last] = [Math.floor((line * rows) / lines), Math.ceil(((line + 1) * rows) / lines) - 1];
		const top = Math.round((line * canvas.height) / lines);
		const bottom = Math.round(((line + 1) * canvas.height) / lines);
		for (let c = 0; c < columns; c++) {
			const s = furthest(d, first, last, c);
			if (!Number.isFinite(s)) continue;
			const left = Math.round((c * canvas.width) / columns);
			const right = Math.round(((c + 1) * canvas.width) / columns);
			g.globalAlpha = Math.min(1, Math.abs(s));
			g.fillStyle = s > 0 ? d.warm : d.cold;
			g.fillRect(left, top, right - left,
				bottom - top - (rows <= 64 && scale * height / rows > 4 ? 1 : 0));
		}
	}
}
