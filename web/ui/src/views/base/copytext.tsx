// SPDX-License-Identifier: Apache-2.0
// Copies a table as text for papers and issues, and the link of a page.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { latexTable, markdownTable, type TextTable } from '../../base/text/texttable.ts';
import { emptyView, type View } from '../../base/url.ts';
import * as s from '../../state/index.ts';
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

function Selected({ text, label, rows }: { text: string; label: string; rows: number }) {
	const box = useRef<HTMLTextAreaElement>(null);
	useFocus(box, [], { select: true, of: text });
	return <textarea ref={box} readOnly rows={rows} aria-label={label} value={text} />;
}

/** Copies the address of a view; shows it selected if the browser does not allow that. */
export function CopyLink({ to }: { to: Partial<View> }) {
	const left = useSignal('');
	const said = useSignal('');
	const take = async () => {
		const link = new URL(s.addressOf({ ...emptyView, ...to }), location.href).href;
		const copied = await copy(link);
		left.value = copied ? '' : link;
		const near = /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(location.hostname);
		said.value = !copied ? 'The text is selected: Ctrl+C copies it'
			: near ? 'Copied. It opens on this computer only.' : 'Copied';
	};
	return (
		<>
			<button type="button" onClick={() => void take()}>Copy link</button>
			<span class="dim" role="status">{said.value}</span>
			{left.value && <Selected text={left.value} label="Link of the report" rows={2} />}
		</>
	);
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
		said.value = (await copy(text.value)) ? 'Copied' : 'The text is selected: Ctrl+C copies it';
	};
	return (
		<Panel label={label} close={close}>
			<span class="options">
				<button type="button" onClick={() => void take(markdownTable)}>Markdown</button>
				<button type="button" onClick={() => void take(latexTable)}>LaTeX</button>
				<span class="dim" role="status">{said.value}</span>
			</span>
			{text.value && <Selected text={text.value} label="The table as text" rows={8} />}
		</Panel>
	);
}
