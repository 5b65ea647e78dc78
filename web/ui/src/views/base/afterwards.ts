// SPDX-License-Identifier: Apache-2.0
// What the page does after its first screen.
import { effect } from '@preact/signals';
import * as s from '../../state/index.ts';
import type { View } from '../../base/url.ts';
import { forgetShare, shared } from '../../state/shares.ts';
import { keepFocus } from './keepfocus.ts';
import './later.ts';

/** A page that a link opened offers only what the link shows (see later.part.css), and says that it is one. */
function markShared(): void {
	const note = document.createElement('p');
	note.className = 'sharednote';
	note.setAttribute('role', 'note');
	effect(() => {
		const by = s.session.value?.share;
		document.documentElement.toggleAttribute('data-share', shared.value);
		note.textContent = by ? `Shared${by.person && ` by ${by.person}`}: ${by.name}` : '';
		if (by) document.body.append(note);
		forgetShare();
	});
}

export function afterwards(first: View): void {
	keepFocus(first);
	markShared();
}
