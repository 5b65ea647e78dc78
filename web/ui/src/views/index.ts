// SPDX-License-Identifier: Apache-2.0
// The pages. To add one: a room (or module), a line here (or in main.tsx if loaded on demand) and a name in
// base/url.ts.
export { Compare } from './compare/compare.tsx';
export { Header } from './header/header.tsx';
export { Nav } from './header/nav.tsx';
export { lazy } from './base/lazy.tsx';
export { theme } from './base/theme.ts';
