// SPDX-License-Identifier: Apache-2.0
// Line chart of many runs: its class and the helpers that prepare and describe lines.
export { LineChart } from './line.ts';
export { fitRange, lastPoint } from './geometry.ts';
export { NAME_APART, NAME_MARGIN, nameWidth } from './names.ts';
export type { ChartLine, Flag } from './geometry.ts';
export type { LineData, LineEvents, NearLine, Pane } from './pane.ts';
