// SPDX-License-Identifier: Apache-2.0
// Versions of W&B's artifacts with the runs that made and use them, of a run or of an experiment.
import { when } from '../../../base/format.ts';
import * as s from '../../../state/index.ts';
import { getVersions, type ArtifactVersion, type Maker } from '../../../state/run.ts';
import { followed, useAsked } from '../bits.tsx';
import { List, type Column } from './list.tsx';

const Run = ({ r }: { r: Maker }) => <a href={s.runAddress(r.id)} onClick={followed(() => s.openRun(r.id))}>
	{r.name || r.id.slice(0, 8)}</a>;

const COLUMNS: readonly Column<ArtifactVersion>[] = [
	{ head: 'Artifact', cell: (v) => <>{v.collection}:v{v.version}{' '}
		{v.aliases.map((a) => <span key={a} class="alias">{a}</span>)}</> },
	{ head: 'Type', cell: (v) => v.type },
	{ head: 'Made by', cell: (v) => v.made_by && <Run r={v.made_by} /> },
	{ head: 'Used by', cell: (v) => v.used_by.flatMap((r, i) => (r ? [i > 0 && ', ', <Run key={r.id} r={r} />] :
		[])) },
	{ head: 'Made', cell: (v) => when(v.created_time), num: true },
];

export function Versions({ of, name }: { of: 'run' | 'experiment'; name: string }) {
	const got = useAsked(() => getVersions(of, name), [name, s.liveRev.value], s.report);
	if (!got?.versions.length) return null;
	return (
		<section aria-label="W&B artifacts"><h2>W&B artifacts {of === 'experiment'
			&& <small class="dim">of {name}</small>}</h2>
			<List label="Versions" rows={got.versions} id={(v) =>
				`${v.collection}:${v.version}`} columns={COLUMNS}
				texts={(v) => [v.collection, v.type, ...v.aliases]} />
			{got.more && <p class="dim">There are more: these are the first.</p>}</section>
	);
}
