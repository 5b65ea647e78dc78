// Every experiment of the store, the one last written first: opened, and by those who may write renamed and deleted.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import * as s from '../../state/index.ts';
import { deleteExperiment, renameExperiment } from '../../state/experiments.ts';
import { when } from '../../base/format.ts';
import type { Experiment } from '../../base/types.ts';
import { emptyView } from '../../base/url.ts';
import { Empty, followed, NameForm } from '../base/bits.tsx';
import { Header } from '../header/header.tsx';
import { Trash } from './trash.tsx';
import '../base/later.ts';

/** The experiment that is there from the start and cannot go. */
const FIRST = '0';

/** Another name, or away with it; says why where the server refuses. */
function Acts({ e, rename, wrong }: { e: Experiment; rename: () => void; wrong: (why: string) => void }) {
	const remove = () => deleteExperiment(e).catch((x: Error) => wrong(`It was not deleted: ${x.message}`));
	return (
		<>
			<button type="button" class="quiet" aria-label={`rename ${e.name}`}
				onClick={rename}>rename</button>
			<button type="button" class="quiet" aria-label={`delete ${e.name}`}
				onClick={() => void remove()}>delete</button>
		</>
	);
}

function Line({ e }: { e: Experiment }) {
	const naming = useSignal(false);
	const wrong = useSignal('');
	const mayChange = s.session.value?.mayWrite === true && e.id !== FIRST;
	return (
		<tr>
			<td>{naming.value ? <NameForm was={e.name} close={() => (naming.value = false)}
				save={(name) => renameExperiment(e, name)} />
				: <a href={s.addressOf({ ...emptyView, experiment: e.name })}
					onClick={followed(() => s.openExperiment(e.name))}>{e.name}</a>}
				{wrong.value && <span class="problem" role="alert"> {wrong.value}</span>}</td>
			<td class="num">{e.run_count}</td><td class="num">{e.running_count || ''}</td>
			<td class="num">{when(e.last_time)}</td>
			<td>{mayChange && <Acts e={e} rename={() => (naming.value = true)}
				wrong={(why) => (wrong.value = why)} />}</td>
		</tr>
	);
}

function List({ list }: { list: readonly Experiment[] }) {
	return (
		<div class="box"><table>
			<thead><tr><th>name</th><th>runs</th><th>running</th><th>last change</th>
				<th><span class="unseen">changes</span></th></tr></thead>
			<tbody>{list.map((e) => <Line key={e.id} e={e} />)}</tbody>
		</table></div>
	);
}

export function Experiments() {
	useEffect(() => {
		document.title = 'experiments · dptrack';
	}, []);
	const list = s.experiments.value;
	if (!list) return <><main class="wait" aria-busy="true" /><Header /></>;
	const used = list.filter((e) => e.run_count > 0 || e.id !== FIRST)
		.sort((a, b) => (b.last_time ?? 0) - (a.last_time ?? 0));
	return (
		<><main class="experiments">
			<h1>Experiments</h1>
			{used.length ? <List list={used} />
				: <Empty title="No experiments yet"><p>Start a run beside the served folder:</p>
					<pre>dptrain --experiment first --model resnet20 --data-path DATA</pre></Empty>}
			<Trash />
		</main><Header /></>
	);
}
