// SPDX-License-Identifier: Apache-2.0
// Shows a table as text for papers and issues.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { latexTable, markdownTable, type TextTable } from '../../base/text/texttable.ts';
import { Str } from '../../strings/en.ts';
import { Panel } from './bits.tsx';
import { useFocus } from './focus.ts';

/** Copies text to the clipboard; false if the browser does not allow it. */
export async function copy(text: string): Promise<boolean> {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		return false;
	}
}

function Selected({ text }: { text: string }) {
	const box = useRef<HTMLTextAreaElement>(null);
	useFocus(box, [], { select: true, of: text });
	return <textarea ref={box} readOnly rows={8} aria-label={Str.TheTableAsText} value={text} />;
}

interface Options {
	label: string;
	table: () => TextTable;
	close: () => void;
}

export function CopyText({ label, table, close }: Options) {
	const text = useSignal('');
	const said = useSignal('');
	const take = async (form: (t: TextTable) => string) => {
		text.value = form(table());
		said.value = (await copy(text.value)) ? Str.Copied : Str.TheTextIsSelectedCtrl;
	};
	return (
		<Panel label={label} close={close}>
			<span class="options">
				<button type="button" onClick={() => void take(markdownTable)}>{Str.Markdown}</button>
				<button type="button" onClick={() => void take(latexTable)}>{Str.LaTeX}</button>
				<span class="dim" role="status">{said.value}</span>
			</span>
			{text.value && <Selected text={text.value} />}
		</Panel>
	);
}
