// Every experiment of the store, the one last written first.
import { useEffect } from 'preact/hooks';
import * as s from '../state/index.ts';
import { when } from '../base/format.ts';
import type { Experiment } from '../base/types.ts';
import { emptyView } from '../base/url.ts';
import { Empty } from './base/bits.tsx';
import { Header } from './header/header.tsx';

function Line({ e }: { e: Experiment }) {
	const open = (ev: MouseEvent) => {
		ev.preventDefault();
		s.openExperiment(e.name);
	};
	return (
		<tr>
			<td><a href={s.addressOf({ ...emptyView, experiment: e.name })} onClick={open}>{e.name}</a></td>
			<td class="num">{e.run_count}</td><td class="num">{e.running_count || ''}</td>
			<td class="num">{when(e.last_time)}</td>
		</tr>
	);
}

export function Experiments() {
	useEffect(() => {
		document.title = 'experiments · dptrack';
	}, []);
	const list = s.experiments.value;
	if (!list) return <><main class="wait" aria-busy="true" /><Header /></>;
	const used = list.filter((e) => e.run_count > 0 || e.name !== 'Default')
		.sort((a, b) => (b.last_time ?? 0) - (a.last_time ?? 0));
	if (!used.length)
		return <><main><Empty title="No experiments yet"><p>Start a run beside the served folder:</p>
			<pre>dptrain --experiment first --model resnet20 --data-path DATA</pre></Empty>
		</main><Header /></>;
	return (
		<><main class="experiments">
			<h1>Experiments</h1>
			<div class="box"><table>
				<thead><tr><th>name</th><th>runs</th><th>running</th><th>last change</th></tr></thead>
				<tbody>{used.map((e) => <Line key={e.id} e={e} />)}</tbody>
			</table></div>
		</main><Header /></>
	);
}
