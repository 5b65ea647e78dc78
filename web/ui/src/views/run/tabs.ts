// SPDX-License-Identifier: Apache-2.0
// The tabs of a run's page, and which series each of them charts.

export const TABS = [
	['', 'Overview'], ['charts', 'Charts'], ['system', 'System'], ['media', 'Media'], ['console', 'Console'],
	['files', 'Files'], ['compare', 'Compare'], ['timeline', 'Timeline'],
] as const;

/** Series about the machine and the program, not about the model. */
const SYSTEM = /^(system|memory|data|dptrack|gpu|cpu|comm)\//;
/** Series of layers and derived ones, which a metrics table shows last. */
const INNER = /^(dead_units|grad_norm|update_ratio|phase|system|memory|data|dptrack)\//;

export const isSystem = (key: string) => SYSTEM.test(key);
export const isInner = (key: string) => INNER.test(key);
