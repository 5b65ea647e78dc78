// SPDX-License-Identifier: Apache-2.0
// Scope of a bulk change: the charted runs, or all in the table.
import { count } from '../../base/format.ts';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';

export const meant = (all: boolean): readonly Run[] => (all ? s.rows.value : s.shown.value);

export function Which({ all, set }: { all: boolean; set: (all: boolean) => void }) {
	const radio = (of: boolean) => <input type="radio" name="of" checked={all === of} onChange={() => set(of)} />;
	return (
		<>
			<label>{radio(false)} the {count(s.shown.value.length, 'run')} in the charts</label>
			<label>{radio(true)} all {count(s.rows.value.length, 'run')} of the table</label>
		</>
	);
}
