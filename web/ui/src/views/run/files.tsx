// SPDX-License-Identifier: Apache-2.0
// Files next to a run's journals in the followed folder (weights, checkpoints): names, sizes and path; the server does
// not read them.
import type { RunDetail } from '../../base/types.ts';
import { getFiles } from '../../state/run.ts';
import { useAsked } from '../base/bits.tsx';
import { Folder } from './folder.tsx';

export function Files({ r }: { r: RunDetail }) {
	const got = useAsked(() => getFiles(r.id, ''), [r.id, r.status, r.last_step]);
	if (!got?.folder || !got.files.length) return null;
	return (
		<Folder title="Files" top={got.files} key={got.files.map((f) => f.path).join()}
			load={async (path) => (await getFiles(r.id, path)).files} name={(_, name) => name}>
			<p class="dim">Path: <code>{got.folder}</code></p>
		</Folder>
	);
}
