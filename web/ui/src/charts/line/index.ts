// The line chart of many runs: its class, and what prepares or describes its lines. Knows nothing of runs, state or
// requests.
export { LineChart } from './line.ts';
export { fitRange, lastPoint } from './geometry.ts';
export type { ChartLine, Flag } from './geometry.ts';
export type { LineData } from './pane.ts';
