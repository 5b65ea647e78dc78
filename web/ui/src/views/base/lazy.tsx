// A component that is loaded when it is first shown, and what stands in its place until then or when it cannot be had.
import type { ComponentChildren, ComponentType } from 'preact';
import { useMemo } from 'preact/hooks';
import { part, type Part } from '../../state/index.ts';

/** The line that says so, with the button that helps. */
function LostPart({ of }: { of: Part<unknown> }) {
	if (of.lost.value === null) return null;
	return <p class="lost" role="alert">{of.lost.value === 'newer'
		? 'The server has a newer version of this page.'
		: 'A part of this page could not be loaded.'} <button type="button" onClick={() => of.again()}>
		{of.lost.value === 'newer' ? 'reload' : 'try again'}</button></p>;
}

interface Lazy<P> {
	(props: P & { meanwhile?: ComponentChildren }): ComponentChildren;
	/** Loads it before it is shown. */
	ahead(): Promise<void>;
}

/** meanwhile stands in its place until it is there, and below the line that says why it is not. */
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
