// SPDX-License-Identifier: Apache-2.0
// A button with dots that opens a menu of rare or destructive actions.
import { useSignal } from '@preact/signals';
import { Opener, Panel } from './bits.tsx';
import { Icon, type IconName } from './icon.tsx';

export interface MenuItem {
	word: string;
	icon: IconName;
	act: () => void;
	danger?: boolean;
}

/** label names what it is for: "More for resnet". */
export function Menu({ label, items }: { label: string; items: readonly MenuItem[] }) {
	const open = useSignal(false);
	return <Opener word={label} icon="more" bare open={open} panel={(close) => (
		<Panel label={label} close={close}><ul class="menu">{items.map((i) => (
			<li key={i.word}><button type="button" class={'item' + (i.danger ? ' danger' : '')}
				onClick={() => {
				close();
				i.act();
			}}><Icon name={i.icon} />{i.word}</button></li>))}</ul></Panel>
	)} />;
}
