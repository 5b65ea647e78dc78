// SPDX-License-Identifier: Apache-2.0
// Search for the goal among thousands of metrics.
import { useSignal } from '@preact/signals';
import { matchesWords } from '../../base/url.ts';
import { Panel } from '../base/bits.tsx';
import '../base/later.ts';

const MOST = 60;

interface Options {
	keys: readonly string[];
	choose: (key: string) => void;
	close: () => void;
}

export function GoalPicker({ keys, choose, close }: Options) {
	const words = useSignal('');
	const found = keys.filter((k) => matchesWords(words.value, [k]));
	const take = (key: string) => {
		choose(key);
		close();
	};
	return (
		<Panel label="Goal" close={close}>
			<input type="search" placeholder={`Find among ${keys.length} metrics`}
				aria-label="Find a goal"
				value={words.value} onInput={(e) => (words.value = e.currentTarget.value)}
				onKeyDown={(e) => e.key === 'Enter' && found[0] && take(found[0])} />
			<ul class="files">{found.slice(0, MOST).map((k) => (
				<li key={k}><button type="button" class="quiet"
					onClick={() => take(k)}>{k}</button></li>
			))}</ul>
			{found.length > MOST && <span class="dim">{found.length - MOST} more</span>}
			{!found.length && <span class="dim">No metric contains “{words.value}”.</span>}
		</Panel>
	);
}
