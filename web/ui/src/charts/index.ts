// The charts of the page. A chart gets an element or plain numbers and knows nothing of runs, state or requests.
export { LineChart } from './line.ts';
export type { LineData, LineEvents, Drawn } from './line.ts';
export type { ChartLine, Flag } from './geometry.ts';
export { sparkPath } from './spark.ts';
export { stack, phaseClass, PHASES } from './stack.ts';
