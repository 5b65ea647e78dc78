// The pages, one module each. A new page is a module, a line here (or in main.tsx, for one that is loaded when it is wanted)
// and a name in base/url.ts.
export { Compare } from './compare/compare.tsx';
export { Experiments } from './experiments.tsx';
export { Header } from './header/header.tsx';
export { lazy } from './base/lazy.tsx';
export { theme } from './base/bits.tsx';
