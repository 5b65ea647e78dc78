// SPDX-License-Identifier: Apache-2.0
// Diff of two runs' uncommitted code: lines that only one of them has.
import { useSignal } from '@preact/signals';
import { changeLines, diffSize } from '../../base/side.ts';
import * as s from '../../state/index.ts';
import type { Side } from '../../state/side.ts';
import { Lines } from '../records/edits.tsx';

function sizeText(diff: string | undefined): string {
	if (!diff) return 'as committed';
	const { added, removed, files } = diffSize(diff);
	return `+${added} −${removed} in ${files} file${files === 1 ? '' : 's'}`;
}

interface WhichOptions {
	label: string;
	list: readonly Side[];
	at: number;
	set: (at: number) => void;
}

function Which({ label, list, at, set }: WhichOptions) {
	return (
		<select aria-label={label} value={String(at)} onChange={(e) => set(Number(e.currentTarget.value))}>
			{list.map((x, i) => <option key={x.run.id} value={String(i)}>
				{s.nameOf(x.run.id, x.run)}: {sizeText(x.code.diff)}</option>)}
		</select>
	);
}

export function CodeDiff({ list }: { list: readonly Side[] }) {
	const [a, b] = [useSignal(0), useSignal(1)];
	if (!list.some((x) => x.code.diff)) return null;
	const [from, to] = [list[Math.min(a.value, list.length - 1)]!, list[Math.min(b.value, list.length - 1)]!];
	const texts = [from, to].map((x) => changeLines(x.code.diff ?? '').join('\n'));
	const commits = new Set([from, to].map((x) => x.code.commit ?? ''));
	return (
		<section class="box" aria-label="Code that differs">
			<h2>Uncommitted code</h2>
			<p class="options">
				<Which label="From" list={list} at={a.value} set={(i) => (a.value = i)} /> →
				<Which label="To" list={list} at={b.value} set={(i) => (b.value = i)} />
				{commits.size > 1 && <span class="warn">Their commits differ too</span>}
			</p>
			{texts[0] === texts[1] ? <p class="dim">Both ran the same code.</p> : <Lines from={texts[0]!}
				to={texts[1]!} />}
		</section>
	);
}
