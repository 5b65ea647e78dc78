// SPDX-License-Identifier: Apache-2.0
// The name of the program, a link to all experiments.
import * as s from '../../state/index.ts';
import { followed } from '../base/bits.tsx';

export function Brand() {
	return (
		<a class="brand" href="?all" onClick={followed(() => s.go({ page: 'experiments' }, true))}
			title="All experiments">
			<svg width="20" height="20" viewBox="0 0 16 16" aria-hidden="true">
				<path d="M1 3c4 9 7 9 14 10" class="b1" />
				<path d="M1 13C6 5 9 4 15 3" class="b2" />
			</svg>
			<span>dptrack</span>
		</a>
	);
}
