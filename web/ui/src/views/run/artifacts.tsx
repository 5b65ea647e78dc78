// SPDX-License-Identifier: Apache-2.0
// Artifacts of a run; a click previews a file.
import { useSignal } from '@preact/signals';
import type { Artifact, RunDetail } from '../../base/types.ts';
import { artifactAddress, getArtifacts } from '../../state/run.ts';
import { followed } from '../base/bits.tsx';
import { lazy } from '../base/lazy.tsx';
import { Folder } from './folder.tsx';

const Preview = lazy(() => import('./preview.tsx').then((m) => m.Preview));

export function Artifacts({ r }: { r: RunDetail }) {
	const shown = useSignal<Artifact | null>(null);
	if (!r.artifacts.length) return null;
	return (
		<Folder title="Artifacts" top={r.artifacts} load={(folder) => getArtifacts(r.id, folder)}
			name={(f, name) => <a href={artifactAddress(r.id, f.path)}
				onClick={followed(() => (shown.value = f))}>{name}</a>}>
			{shown.value && <Preview run={r.id} f={shown.value} close={() => (shown.value = null)} />}
		</Folder>
	);
}
