// SPDX-License-Identifier: Apache-2.0
// Two people changed one text: both texts, and what becomes of them.
import { merged } from '../../base/text/merge.ts';

interface ConflictOptions {
	what: string;
	/** What this page began with, what it has now, and what is stored. */
	base: string;
	mine: string;
	theirs: string;
	/** Saves a text in place of theirs. */
	save: (text: string) => void;
	/** Drops this page's text. */
	drop: () => void;
}

export function Conflict({ what, base, mine, theirs, save, drop }: ConflictOptions) {
	const both = merged(base, mine, theirs);
	return (
		<div class="conflict" role="alert">
			<p class="problem">{what} changed while you typed. Nothing is lost: your text is above, the
				stored one is
				here.</p>
			<pre>{theirs || '(empty)'}</pre>
			<span class="options">
				{both !== null && <button type="button" class="primary" onClick={() => save(both)}>
					Keep both changes</button>}
				<button type="button" onClick={() => save(mine)}>Save mine instead</button>
				<button type="button" onClick={drop}>Use theirs</button></span>
		</div>
	);
}
