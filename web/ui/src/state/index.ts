// All state of the page, as signals. Views read it and call its functions; nothing else changes it.
export * from './view.ts';
export * from './runs.ts';
export * from './series.ts';
export * from './parts.ts';
export * from './removal.ts';
export * from './tags.ts';
export { loadExperiments } from './load.ts';
export { liveRev, start } from './live.ts';
