// SPDX-License-Identifier: Apache-2.0
// The tabs of a run's page, and which series each of them charts.

import { Str } from '../../strings/en.ts';

export const TABS = [
	['', Str.Overview], ['charts', Str.Charts], ['system', Str.System], ['media', Str.Media], ['console',
		Str.Console],
	['files', Str.Files], ['compare', Str.Compare], ['timeline', Str.Timeline],
] as const;

/** Series about the machine and the program, not about the model. */
const SYSTEM = /^(system|memory|data|dptrack|gpu|cpu|comm)\//;
/** Series of layers and derived ones, which a metrics table shows last. */
const INNER = /^(dead_units|grad_norm|update_ratio|phase|system|memory|data|dptrack)\//;

export const isSystem = (key: string) => SYSTEM.test(key);
export const isInner = (key: string) => INNER.test(key);
