// A table as text that can be pasted into papers and issues.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { latexTable, markdownTable, type TextTable } from '../../base/text/texttable.ts';
import { Panel } from './bits.tsx';

/** Puts a text where it can be pasted from; false where the browser does not let a page do that. */
async function copy(text: string): Promise<boolean> {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		return false;
	}
}

interface Options {
	label: string;
	table: () => TextTable;
	close: () => void;
}

export function CopyText({ label, table, close }: Options) {
	const text = useSignal('');
	const said = useSignal('');
	const box = useRef<HTMLTextAreaElement>(null);
	const take = async (form: (t: TextTable) => string) => {
		text.value = form(table());
		said.value = (await copy(text.value)) ? 'copied' : 'the text is selected: Ctrl+C copies it';
		box.current?.focus();
		box.current?.select();
	};
	return (
		<Panel label={label} close={close}>
			<span class="options">
				<button type="button" onClick={() => void take(markdownTable)}>Markdown</button>
				<button type="button" onClick={() => void take(latexTable)}>LaTeX</button>
				<span class="dim" role="status">{said.value}</span>
			</span>
			{text.value && <textarea ref={box} readOnly rows={8} aria-label="The table as text"
				value={text.value} />}
		</Panel>
	);
}
