// The pages, one module each. A new page is a module, a line here and a name in base/url.ts.
export { Compare } from './compare.tsx';
export { RunPage } from './run.tsx';
export { Experiments } from './experiments.tsx';
export { theme } from './bits.tsx';
