// SPDX-License-Identifier: Apache-2.0
// Sets one tag of many runs: the charted ones, or all in the table.
import { useSignal } from '@preact/signals';
import { count } from '../../base/format.ts';
import * as s from '../../state/index.ts';
import { changeTag, keyProblem } from '../../state/tagging.ts';
import { Panel } from '../base/bits.tsx';
import { meant, Which } from './which.tsx';

interface Outcome {
	text: string;
	bad: boolean;
}

/** Sets the tag of the runs or removes it (null), and reports the result. */
async function change(all: boolean, key: string, value: string | null, onDone: (n: number) => void): Promise<Outcome> {
	const list = meant(all);
	const ids = list.filter((r) => value !== null || s.tagsOf(r)[key] !== undefined).map((r) => r.id);
	const refused = await changeTag(ids, key, value, onDone);
	if (refused.length) return { text: `${count(refused.length, 'run')} refused: ${refused[0]!.why}`, bad: true };
	return { text: `${value === null ? 'removed from' : 'set on'} ${count(ids.length, 'run')}`, bad: false };
}

export function BulkTag({ close }: { close: () => void }) {
	const key = useSignal('');
	const value = useSignal('');
	const all = useSignal(false);
	const done = useSignal<number | null>(null);
	const outcome = useSignal<Outcome | null>(null);
	const size = meant(all.value).length;
	const off = done.value !== null || !size;
	const begin = async (v: string | null) => {
		const wrong = keyProblem(key.value);
		if (wrong) return void (outcome.value = { text: wrong, bad: true });
		done.value = 0;
		outcome.value = null;
		const how = await change(all.value, key.value.trim(), v, (n) => (done.value = n));
		done.value = null;
		outcome.value = how;
	};
	return (
		<Panel label="Tag runs" close={close}><form class="bulktag" onSubmit={(e) => {
			e.preventDefault();
			void begin(value.value);
		}}>
			<input aria-label="Tag" placeholder="tag" list="bulkkeys" value={key.value}
				onInput={(e) => (key.value = e.currentTarget.value)} />
			<input aria-label="Value" placeholder="value" value={value.value}
				onInput={(e) => (value.value = e.currentTarget.value)} />
			<datalist id="bulkkeys">{s.tagKeys.value.map((k) => <option key={k} value={k} />)}</datalist>
			<Which all={all.value} set={(v) => (all.value = v)} />
			<span class="options">
				<button type="submit" disabled={off}>set</button>
				<button type="button" disabled={off} onClick={() => void begin(null)}>remove</button>
				<span role="status">
					{done.value !== null && <span class="dim">{done.value} of {size}</span>}
					{outcome.value && <span class={outcome.value.bad ? 'problem' : 'dim'}>
						{outcome.value.text}</span>}</span>
			</span>
		</form></Panel>
	);
}
