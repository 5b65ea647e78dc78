// The pages. A new page is a room (or a module beside this one), a line here (or in main.tsx, where it is loaded when
// it is wanted) and a name in base/url.ts.
export { Compare } from './compare/compare.tsx';
export { Header } from './header/header.tsx';
export { lazy } from './base/lazy.tsx';
export { theme } from './base/theme.ts';
