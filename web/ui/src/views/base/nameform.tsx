// SPDX-License-Identifier: Apache-2.0
// The form that renames something: a view, a report, a model, an experiment, a run.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { useFocus } from './focus.ts';

interface NameFormOptions {
	was: string;
	/** Throws if the server refuses. */
	save: (name: string) => Promise<void>;
	close: () => void;
}

/** Renames something in place. */
export function NameForm({ was, save, close }: NameFormOptions) {
	const text = useSignal(was);
	const wrong = useSignal('');
	const box = useRef<HTMLFormElement>(null);
	useFocus(box, ['input'], { select: true });
	const begin = async () => {
		if (text.value.trim() === '') return void (wrong.value = 'It needs a name.');
		try {
			await save(text.value.trim());
			close();
		} catch (e) {
			wrong.value = (e as Error).message;
		}
	};
	return (
		<form class="tagform rename" ref={box} onSubmit={(e) => {
			e.preventDefault();
			void begin();
		}} onKeyDown={(e) => {
			if (e.key !== 'Escape') return;
			e.stopPropagation(); // a surrounding panel stays open
			close();
		}}>
			<input aria-label="Name" value={text.value}
				onInput={(e) => (text.value = e.currentTarget.value)} />
			<button type="submit" class="primary">Save</button>
			<button type="button" class="quiet" onClick={close}>Cancel</button>
			{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}
		</form>
	);
}
