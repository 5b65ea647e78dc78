// SPDX-License-Identifier: Apache-2.0
// A colour between pale and strong, when there are too many runs for a colour each.
import { theme } from '../base/theme.ts';

/** From pale to strong by the share of runs that are worse. */
export function gradeOf(share: number): string {
	const [from, to] = theme() === 'dark' ? [[70, 80, 92], [125, 184, 242]] : [[196, 206, 217], [10, 95, 180]];
	const part = (v: number, i: number) => Math.round(v + (to![i]! - v) * share ** 2).toString(16).padStart(2, '0');
	return '#' + from!.map(part).join('');
}
