// The charts of the first screen; parts that are loaded later import theirs (heat.ts, parallel.ts) from its own module, so that it
// comes with them. A chart gets an element or plain numbers and knows nothing of runs, state or requests.
export { LineChart } from './line.ts';
export { fitRange, lastPoint } from './geometry.ts';
export type { ChartLine, Flag } from './geometry.ts';
export { sparkPath } from './spark.ts';
export { stack, phaseClass } from './stack.ts';
export type { Segment } from './stack.ts';
