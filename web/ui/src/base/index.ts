// The parts of the page that need no browser, as one module for views and for the tests.
export * from './types.ts';
export * from './format.ts';
export * from './goal.ts';
export * from './rank.ts';
export * from './nest.ts';
export * from './order.ts';
export * from './params.ts';
export * from './series.ts';
export * from './colour.ts';
export * from './url.ts';
export * from './words.ts';
export * from './heat.ts';
export * from './markdown.ts';
export * from '../charts/geometry.ts';
export * from '../charts/scale.ts';
export * from '../charts/ticks.ts';
