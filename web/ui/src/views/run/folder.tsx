// SPDX-License-Identifier: Apache-2.0
// File browser of a run.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { bytes } from '../../base/format.ts';
import type { Artifact } from '../../base/types.ts';

/** Parent of a folder; '' is the topmost. */
const above = (folder: string): string => folder.split('/').slice(0, -1).join('/');

interface FolderOptions {
	title: string;
	/** Entries of the topmost folder. */
	top: Artifact[];
	load: (folder: string) => Promise<Artifact[]>;
	/** Renders a file name. */
	name: (f: Artifact, name: string) => ComponentChildren;
	/** Below the list. */
	children?: ComponentChildren;
}

export function Folder({ title, top, load, name, children }: FolderOptions) {
	const folder = useSignal('');
	const files = useSignal<Artifact[]>(top);
	const wrong = useSignal('');
	const open = async (path: string) => {
		try {
			files.value = path ? await load(path) : top;
			folder.value = path;
			wrong.value = '';
		} catch (e) {
			wrong.value = (e as Error).message;
		}
	};
	const last = (f: Artifact) => f.path.split('/').pop()!;
	return (
		<section class="box artifacts" aria-label={title}>
			<h2>{title} {folder.value && <span class="dim">{folder.value}</span>}</h2>
			<ul class="files">
				{folder.value && <li><button type="button" class="quiet" aria-label="The folder above"
					onClick={() => void open(above(folder.value))}>…</button></li>}
				{files.value.map((f) => <li key={f.path}>{f.folder
					? <button type="button" class="quiet"
						onClick={() => void open(f.path)}>{last(f)}/</button>
					: <>{name(f, last(f))} <span class="dim">{bytes(f.bytes ?? 0)}</span></>}</li>)}
				{!files.value.length && <li class="dim">Nothing</li>}
			</ul>
			{children}
			{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}
		</section>
	);
}
