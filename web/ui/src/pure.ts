// The parts of the page that need no browser, as one module for the tests.
export * from './base/types.ts';
export * from './base/format.ts';
export * from './base/goal.ts';
export * from './base/rank.ts';
export * from './base/nest.ts';
export * from './base/order.ts';
export * from './base/params.ts';
export * from './base/series.ts';
export * from './base/colour.ts';
export * from './base/url.ts';
export * from './base/words.ts';
export * from './base/heat.ts';
export * from './base/markdown.ts';
export * from './charts/line/geometry.ts';
export * from './charts/scale.ts';
export * from './charts/base/ticks.ts';
