// SPDX-License-Identifier: Apache-2.0
// Maps positions from 0 to 1 on two axes to pixels of an element.

export interface Place {
	left: number;
	right: number;
	top: number;
	bottom: number;
	x(at: number): number;
	y(at: number): number;
}

export function xyPlace(width: number, height: number,
	pad: { left: number; right: number; top: number; bottom: number }): Place {
	const [left, right, top, bottom] = [pad.left, Math.max(pad.left + 10, width - pad.right), pad.top,
		Math.max(pad.top + 10, height - pad.bottom)];
	return {
		left, right, top, bottom,
		x: (at) => left + at * (right - left),
		y: (at) => bottom - at * (bottom - top),
	};
}
