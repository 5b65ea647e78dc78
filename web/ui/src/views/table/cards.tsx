// The runs as cards, for narrow screens: name, goal, params that differ, a sparkline, status in words.
import { useEffect } from 'preact/hooks';
import { computed } from '@preact/signals';
import { fitRange } from '../../charts/line/index.ts';
import { sparkPath } from '../../charts/spark.ts';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { count, decimalsFor, fixed, paramText, signed } from '../../base/format.ts';
import { bestOf, inPoints } from '../../base/goal.ts';
import { tellingParams } from '../../base/params.ts';
import { colourOf, Key, Name, Shape, statements } from '../base/bits.tsx';
import { linesOf } from '../charts/lines.ts';
import { best, isFallen, visibleRows } from './columns.tsx';
import { jumpTo } from '../base/jump.ts';

const W = 92;
const H = 34;
const FIRST = 100;
/** Enough for the chart of a narrow screen too, which shares the series. */
const SPARK_BUCKETS = 320;
const VALUE_MAX = 28;

const cut = (text: string) => (text.length > VALUE_MAX ? text.slice(0, VALUE_MAX - 1) + '…' : text);

/** The one y axis of all sparklines: what the runs that count have in common, as in their chart. */
const sparkRange = computed(() => {
	void s.seriesRev.value;
	const g = s.goal.value;
	const { lo, hi } = fitRange(g ? linesOf(g.key, s.shown.value) : [], -Infinity, Infinity, false, false);
	return { lo, hi };
});

function Spark({ r }: { r: Run }) {
	void s.seriesRev.value;
	const g = s.goal.value;
	const t = g ? s.seriesFor(r.id, g.key) : null;
	if (!t?.xs.length) return <svg class="spark" width={W} height={H} aria-hidden="true" />;
	const range = { from: t.xs[0]!, to: t.xs[t.xs.length - 1]!, ...sparkRange.value };
	return (
		<svg class="spark" width={W} height={H} viewBox={`-2 -2 ${W + 4} ${H + 4}`} aria-hidden="true">
			<path d={sparkPath(t.xs, t.ys, range, W, H)} stroke={colourOf(s.looks.value.byRun.get(r.id))}
				stroke-dasharray={(s.looks.value.byRun.get(r.id)?.dash ?? []).join(' ')} />
		</svg>
	);
}

export function Cards() {
	const key = s.goal.value?.key;
	useEffect(() => {
		if (key === undefined) return undefined;
		s.want(key, SPARK_BUCKETS, Cards);
		return () => s.unwant(key, Cards);
	}, [key]);
	const list = visibleRows.value;
	const g = s.goal.value;
	const top = best.value;
	const value = (r: Run) => (g ? bestOf(r.metrics[g.key], g.dir) : null);
	const values = list.map((r) => value(r) ?? NaN);
	const d = decimalsFor(values);
	const scale = g && inPoints(g.key, values) ? 100 : 1;
	const params = tellingParams(s.split.value, 8);
	const ref = top ? value(top) : null;
	return (
		<ol class="cards" aria-label="Runs">
			{list.slice(0, FIRST).map((r, i) => {
				const v = value(r);
				return (
					<li key={r.id} class={'card run' + (i === s.fallenFrom.value && i > 0 ? ' divide' : '') + (isFallen(r) ? ' fallen' : '')}>
						<button type="button" class="eye" aria-pressed={s.isShown(r.id)} aria-label={`${r.name} in the charts`}
							onClick={() => s.toggleShown(r.id)}><Key look={s.looks.value.byRun.get(r.id)} on={s.isShown(r.id)} /></button>
						<a class="name" href={s.addressOf({ page: 'run', run: r.id.slice(0, 12) })} onClick={(e) => {
							e.preventDefault();
							s.openRun(r.id);
						}}><Name text={r.name || r.id.slice(0, 8)} /></a>
						<span class="value">
							{top?.id === r.id ? <b class="best">{fixed(v, d)}</b> : fixed(v, d)}
							{ref !== null && v !== null && top?.id !== r.id && <small>{signed((v - ref) * scale, scale === 100 ? 1 : d)}</small>}
						</span>
						<span class="what">{params.map((k) => r.params[k] === undefined ? null : (
							<span key={k}>{cut(k.replace(/_/g, ' '))} <b>{cut(paramText(r.params[k]!))}</b></span>
						))}</span>
						<Spark r={r} />
						<span class="says">{statements(r).filter((t) => t.kind !== 'finished').map((t) => t.alert
							? <button type="button" class={'say ' + t.kind} onClick={() => jumpTo(r, t.alert!)}><Shape kind={t.kind} />{t.text}</button>
							: <span class={'say ' + t.kind}><Shape kind={t.kind} />{t.text}</span>)}</span>
					</li>
				);
			})}
			{list.length > FIRST && <li class="dim">{count(list.length - FIRST, 'more run')}: filter to see {list.length - FIRST === 1 ? 'it' : 'them'}</li>}
		</ol>
	);
}
