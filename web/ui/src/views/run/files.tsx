// SPDX-License-Identifier: Apache-2.0
// Files next to a run's journals in the followed folder (weights, checkpoints): names, sizes and path; the server does
// not read them.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Artifact, RunDetail } from '../../base/types.ts';
import { getFiles } from '../../state/run.ts';
import { Str } from '../../strings/en.ts';
import { Folder } from './folder.tsx';

export function Files({ r }: { r: RunDetail }) {
	const got = useSignal<{ folder: string | null; files: Artifact[] } | null>(null);
	useEffect(() => {
		let here = true;
		getFiles(r.id, '').then((g) => here && (got.value = g), () => undefined);
		return () => void (here = false);
	}, [r.id, r.status, r.last_step]);
	if (!got.value?.folder || !got.value.files.length) return null;
	return (
		<Folder title={Str.Files} top={got.value.files} key={got.value.files.map((f) => f.path).join()}
			load={async (path) => (await getFiles(r.id, path)).files} name={(_, name) => name}>
			<p class="dim">{Str.Path} <code>{got.value.folder}</code></p>
		</Folder>
	);
}
