// SPDX-License-Identifier: Apache-2.0
// Makes a link that shows one thing to everybody who has it, with an end.
import { useSignal } from '@preact/signals';
import { count } from '../../base/format.ts';
import { makeShare, mayShare, type ShareKind } from '../../state/shares.ts';
import { Opener, Panel } from './bits.tsx';
import { copy } from './copytext.tsx';

const DAYS = [1, 7, 30, 90, 365];
const SHOWS: Record<ShareKind, string> = {
	run: 'this run with its charts, media, console and files', comparison: 'these runs side by side',
	view: 'the runs that the view selects, as they are then', report: 'this report and the runs of its charts',
};

interface Options {
	kind: ShareKind;
	target: readonly string[];
}

export function ShareForm({ kind, target }: Options) {
	const days = useSignal(30);
	const link = useSignal('');
	const said = useSignal('');
	const take = async () => {
		said.value = await copy(link.value) ? 'Copied' : 'Select the link and copy it';
	};
	const make = async () => {
		said.value = '';
		try {
			link.value = await makeShare(kind, target, days.value);
			await take();
		} catch (e) {
			said.value = (e as Error).message;
		}
	};
	return (
		<form class="shareform" onSubmit={(e) => {
			e.preventDefault();
			void make();
		}}>
			<p>Without a token, the link shows {SHOWS[kind]}, and nothing else.</p>
			<span class="options"><label>Ends after <select value={days.value}
				onChange={(e) => (days.value = Number(e.currentTarget.value))}>{DAYS.map((n) => (
					<option key={n} value={n}>{count(n, 'day')}</option>))}</select></label>
				<button type="submit" class="primary">{link.value ? 'Make another link' : 'Make link'}
				</button></span>
			{link.value && <span class="options"><input readOnly aria-label="Link" value={link.value}
				onFocus={(e) => e.currentTarget.select()} />
				<button type="button" onClick={() => void take()}>Copy</button></span>}
			{link.value && <p class="dim">It is shown this once. Administrators list and revoke links.</p>}
			<span class="dim" role="status">{said.value}</span>
		</form>
	);
}

/** The button, for those who may; nothing for others. */
export function Share(o: Options) {
	const open = useSignal(false);
	if (!mayShare.value) return null;
	return <Opener word="Share" open={open} panel={(close) => (
		<Panel label="Share" close={close}><ShareForm {...o} /></Panel>)} />;
}
