// SPDX-License-Identifier: Apache-2.0
// Why a run ended badly: one line, and the last lines of its console.
import { piecesOf } from '../../base/text/ansi.ts';
import type { RunDetail } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { getConsole, type ConsoleLine } from '../../state/records.ts';
import { followed, Shape, useAsked } from '../base/bits.tsx';
import { statements } from '../base/says.ts';

const LINES = 8;
/** A line that names an error; the last one wins. */
const ERROR = /\b(?:[A-Z]\w*(?:Error|Exception|Interrupt)\b|error:|fatal:|out of memory|killed|signal \d+|abort)/i;

/** The line of the console that says most about the end, or ''. */
function reasonIn(lines: readonly string[]): string {
	const found = lines.filter((l) => ERROR.test(l)).at(-1) ?? '';
	return found.trim().slice(0, 300);
}

/** The end of a run's console; null until loaded. */
function useLastLines(r: RunDetail): readonly ConsoleLine[] | null {
	return useAsked(() => getConsole(r.id, { from: -LINES * 4, limit: LINES * 4 }).then((c) => c.lines, () => []),
		[r.id, r.status, r.last_step]);
}

export function Failure({ r }: { r: RunDetail }) {
	const lines = useLastLines(r);
	if (r.status !== 'failed' && r.status !== 'killed') return null;
	const texts = (lines ?? []).map((l) => piecesOf(l.text).map((p) => p.text).join(''));
	const reason = r.reason || reasonIn(texts);
	const to = { tab: 'console' };
	return (
		<section class="box failure" aria-label="Why it failed">
			<h2><Shape kind={r.status} /> {statements(r)[0]?.text ?? r.status}{reason && <>: <code>
				{reason}</code></>}</h2>
			{texts.length > 0 && <pre tabIndex={0} aria-label="Last lines of the console"
				ref={(e) => void e?.scrollTo(0, e.scrollHeight)}>
				{texts.slice(-LINES).join('\n')}</pre>}
			{texts.length > 0 && <p><a href={s.addressOf(to)} onClick={followed(() => s.go(to, true))}>
				Open the console</a></p>}
			{lines?.length === 0 && <p class="dim">No console was recorded.</p>}
		</section>
	);
}
