// SPDX-License-Identifier: Apache-2.0
// A colour from blue over violet to gold, when there are too many runs for a colour each.
import { theme } from '../base/theme.ts';

/** The stops from the worst to the best, in the light and the dark theme. */
const STOPS = { light: [[98, 140, 205], [140, 92, 170], [196, 68, 82], [176, 120, 0]],
	dark: [[76, 112, 190], [160, 100, 200], [230, 100, 110], [250, 200, 70]] };

/** By the share of runs that are worse. */
export function gradeOf(share: number): string {
	const stops = STOPS[theme()];
	const at = Math.min(stops.length - 2, Math.floor(share * (stops.length - 1)));
	const [from, to] = [stops[at]!, stops[at + 1]!];
	const part = (v: number, i: number) => Math.round(v + (to[i]! - v) * (share * (stops.length - 1) - at));
	return '#' + from.map((v, i) => part(v, i).toString(16).padStart(2, '0')).join('');
}
