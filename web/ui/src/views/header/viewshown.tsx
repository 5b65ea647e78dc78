// SPDX-License-Identifier: Apache-2.0
// Says which saved view the screen shows, and leads out of it.
import { useEffect } from 'preact/hooks';
import * as s from '../../state/index.ts';
import { isChanged, loadSaved, savedNow } from '../../state/saved/saved.ts';
import { shared } from '../../state/shares.ts';
import { cut } from '../../base/format.ts';
import { WithoutView } from '../saved/saved.tsx';
import '../base/later.ts';

export function ViewShown() {
	const { saved } = s.view.value;
	useEffect(() => {
		if (!shared.value) void loadSaved(); // a link shows one view alone
	}, [s.experiment.value, saved]);
	const v = savedNow();
	if (!v) return null;
	return (
		<span class="viewshown">{v.preferred ? 'default view' : 'view'} <b title={v.name}>{cut(v.name)}</b>
			{isChanged(v) && <>, changed: <button type="button" class="quiet"
				onClick={() => s.openSaved(v)}>Reset</button></>} <WithoutView /></span>
	);
}
