// SPDX-License-Identifier: Apache-2.0
// All state of the page as signals. Views read it and call its functions; nothing else changes it. State of parts that
// load later has separate modules: run.ts, tagging.ts, grouped.ts, and saved/.
export * from './view.ts';
export * from './runs.ts';
export * from './axis.ts';
export * from './parts.ts';
export * from './phases.ts';
export * from './removal.ts';
export * from './series.ts';
export { isReserved, tagsOf } from './tags.ts';
export * from './sidebar.ts';
export { endSession, getRuns, signedOut } from './server/api.ts';
export { askRanks } from './points.ts';
export { groupCurves, runGroups, wantGroups } from './groups.ts';
export { start } from './live.ts';
export { FIRST_PAGE, HELD_MAX, NEXT_PAGE, PARAMS_MAX } from './load.ts';
export { loadExperiments, needMetrics, openSaved, reloadRuns } from './load.ts';
