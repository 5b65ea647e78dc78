// A run's files, folder by folder; a click shows what is in them.
import { useSignal } from '@preact/signals';
import { bytes } from '../../base/format.ts';
import type { Artifact, RunDetail } from '../../base/types.ts';
import { artifactAddress, getArtifacts } from '../../state/run.ts';
import { followed } from '../base/bits.tsx';
import { lazy } from '../base/lazy.tsx';

const Preview = lazy(() => import('./preview.tsx').then((m) => m.Preview));

/** The folder around one; '' is the topmost. */
function above(folder: string): string {
	return folder.split('/').slice(0, -1).join('/');
}

interface EntryOptions {
	run: string;
	f: Artifact;
	open: (folder: string) => Promise<void>;
	show: (f: Artifact) => void;
}

function Entry({ run, f, open, show }: EntryOptions) {
	const name = f.path.split('/').pop()!;
	if (f.folder)
		return <button type="button" class="quiet" onClick={() => void open(f.path)}>{name}/</button>;
	return <><a href={artifactAddress(run, f.path)} onClick={followed(() => show(f))}>{name}</a>{' '}
		<span class="dim">{bytes(f.bytes ?? 0)}</span></>;
}

export function Artifacts({ r }: { r: RunDetail }) {
	const folder = useSignal('');
	const files = useSignal<Artifact[]>(r.artifacts);
	const wrong = useSignal('');
	const shown = useSignal<Artifact | null>(null);
	const open = async (path: string) => {
		try {
			files.value = path ? await getArtifacts(r.id, path) : r.artifacts;
			folder.value = path;
			wrong.value = '';
		} catch (e) {
			wrong.value = (e as Error).message;
		}
	};
	if (!r.artifacts.length) return null;
	return (
		<section class="box artifacts">
			<h2>Artifacts {folder.value && <span class="dim">{folder.value}</span>}</h2>
			<ul class="files">
				{folder.value && <li><button type="button" class="quiet"
					onClick={() => void open(above(folder.value))}>…</button></li>}
				{files.value.map((f) => <li key={f.path}><Entry run={r.id} f={f} open={open}
					show={(one) => (shown.value = one)} /></li>)}
			</ul>
			{shown.value && <Preview run={r.id} f={shown.value} close={() => (shown.value = null)} />}
			{wrong.value && <span class="problem" role="alert">{wrong.value}</span>}
		</section>
	);
}
