// SPDX-License-Identifier: Apache-2.0
// A component that is loaded when first shown, with a placeholder and an error message.
import type { ComponentChildren, ComponentType } from 'preact';
import { useMemo } from 'preact/hooks';
import { part, type Part } from '../../state/index.ts';

/** The error message with its button. */
function LostPart({ of }: { of: Part<unknown> }) {
	if (of.lost.value === null) return null;
	return <p class="lost" role="alert">{of.lost.value === 'newer'
		? 'The server has a newer version of this page.'
		: 'A part of this page could not be loaded.'} <button type="button" onClick={() => of.again()}>
		{of.lost.value === 'newer' ? 'Reload' : 'Try again'}</button></p>;
}

interface Lazy<P> {
	(props: P & { meanwhile?: ComponentChildren }): ComponentChildren;
	/** Loads it in advance. */
	ahead(): Promise<void>;
}

/** meanwhile: the placeholder until it is loaded, and below an error. */
export function lazy<P extends object>(ask: () => Promise<ComponentType<P>>): Lazy<P> {
	const p = part(ask);
	const shown = (props: P & { meanwhile?: ComponentChildren }) => {
		// at once, not after the first frame: nothing can be shown without it
		useMemo(() => void p.load(), []);
		const Loaded = p.value.value;
		return Loaded ? <Loaded {...props} /> : <><LostPart of={p} />{props.meanwhile}</>;
	};
	return Object.assign(shown, { ahead: p.load });
}
