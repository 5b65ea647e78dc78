// SPDX-License-Identifier: Apache-2.0
// Renders one image, histogram, text, table, sound, video, HTML document or figure.
import { useSignal, type Signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { figureOf } from '../../base/figure.ts';
import { short } from '../../base/format.ts';
import {
	contentAddress, getHistogram, getMediaText, getTable, type Histogram, type Media,
} from '../../state/records.ts';
import { useLoaded } from '../base/bits.tsx';
import { lazy } from '../base/lazy.tsx';
import { Words } from './edits.tsx';
import { FigureOf } from './figure.tsx';
import { Heat } from './heat.tsx';

const Markdown = lazy(() => import('../base/markdown.tsx').then((m) => m.Markdown));
const ROWS_MAX = 200;
/** Smaller images are enlarged without smoothing by a whole number, to at most these pixels: among others, alone. */
const ENLARGED = 128;
const ALONE = 396;
const TIMES_MAX = 16;
/** Pixels of a narrow window next to a picture. */
const AROUND = 60;
const WIDTH = 300;
const HEIGHT = 96;

/** Loads content; the previous one is kept until then, so that a slider does not flicker. */
function useContent<T>(m: Media | null, ask: (m: Media) => Promise<T>): { value: T | null; wrong: string } {
	return useLoaded(() => m && ask(m), [m?.run, m?.content]);
}

function Wrong({ text }: { text: string }) {
	return text ? <p class="problem" role="alert">{text}</p> : null;
}

function Picture({ m, alone }: { m: Media; alone: boolean }) {
	const room = alone ? Math.min(ALONE, innerWidth - AROUND) : ENLARGED;
	const scale = Math.min(TIMES_MAX, Math.max(1, Math.floor(room / Math.max(m.width || room, m.height))));
	const to = contentAddress(m);
	return <><a href={to} target="_blank" rel="noreferrer"><img src={to} loading="lazy"
		class={scale > 1 ? 'small' : ''} width={m.width * scale || undefined}
		height={m.height * scale || undefined} alt={`Step ${m.step}`} /></a>
	{alone && scale > 1 && <p class="dim" title="Enlarged; the link opens it at its true size">{scale}×</p>}</>;
}

/** Smallest and largest edge of each shown histogram of a key. */
export type Ranges = ReadonlyMap<string, readonly [number, number]>;

const endsOf = (h: Histogram) => [h.edges[0] ?? 0, h.edges.at(-1) ?? 1] as const;

/** Histograms next to each other have one axis, from lo to hi. */
function Bars({ h, lo, hi }: { h: Histogram; lo: number; hi: number }) {
	const top = Math.max(...h.counts, 1);
	const [from, to] = endsOf(h);
	const x = (v: number) => ((v - lo) / (hi - lo || 1)) * WIDTH;
	const total = h.counts.reduce((a, n) => a + n, 0);
	return (
		<><svg class="bars" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img"
			aria-label={`${total} values from ${short(from)} to ${short(to)}`}>
			{h.counts.map((n, i) => <rect key={i} x={x(h.edges[i]!)} y={HEIGHT * (1 - n / top)}
				height={HEIGHT * n / top}
				width={Math.max(0.5, x(h.edges[i + 1]!) - x(h.edges[i]!) - 0.4)} />)}
		</svg><p class="ends dim"><span>{short(lo)}</span><span>{short(hi)}</span></p></>
	);
}

function HistogramOf({ m, all, ranges }: Pick<Options, 'm' | 'all' | 'ranges'>) {
	const { value, wrong } = useContent(m, getHistogram);
	const of = `${m.run} ${m.step} ${m.rank}`;
	useEffect(() => {
		if (!value) return undefined;
		ranges.value = new Map(ranges.value).set(of, endsOf(value));
		return () => {
			ranges.value = new Map([...ranges.value].filter(([k]) => k !== of));
		};
	}, [value, of]);
	const shown = [...ranges.value.values(), ...value ? [endsOf(value)] : []];
	return <>{value && <Bars h={value} lo={Math.min(...shown.map(([a]) => a))}
		hi={Math.max(...shown.map(([, b]) => b))} />}<Wrong text={wrong} />
		{all.length > 1 && <Heat list={all.filter((o) => o.rank === m.rank)} step={m.step} />}</>;
}

/** A document in a frame without origin; its scripts reach no address. */
function FrameOf({ m }: { m: Media }) {
	return <iframe src={contentAddress(m) + '?view=frame'} title={`Step ${m.step}`}
		sandbox="allow-scripts" loading="lazy" referrerpolicy="no-referrer" />;
}

function TextOf({ m, before, kind }: Pick<Options, 'm' | 'before' | 'kind'>) {
	const { value, wrong } = useContent(m, getMediaText);
	const figure = useMemo(() => (value === null ? null : figureOf(value)), [value]);
	const was = useContent(before, getMediaText).value;
	const changes = useSignal(false);
	useEffect(() => {
		if (figure && kind) kind.value = 'figure';
	}, [figure]);
	if (figure) return <FigureOf f={figure} json={contentAddress(m)} />;
	return (
		<>
			<div class="text" tabIndex={0}>{value === null ? '…'
				: changes.value && was !== null ? <Words from={was} to={value} />
					: <Markdown text={value} imageOf={() => null} meanwhile={value} />}</div>
			{before && <label class="dim"><input type="checkbox" checked={changes.value}
				onChange={() => (changes.value = !changes.value)} /> What changed since
					step {before.step}</label>}
			<Wrong text={wrong} />
		</>
	);
}

const isNumber = (text: string | undefined) => text === undefined || text.trim() === ''
	|| !Number.isNaN(Number(text)) || /^[+-]?(nan|inf(inity)?)$/i.test(text);

function TableOf({ m }: { m: Media }) {
	const { value, wrong } = useContent(m, getTable);
	const [head, ...body] = value ?? [];
	const kind = (i: number) => (body.length > 0 && body.every((row) => isNumber(row[i])) ? 'num' : '');
	const kinds = head?.map((_, i) => kind(i)) ?? [];
	return (
		<>
			<div class="long" tabIndex={0} role="region" aria-label={`Table at step ${m.step}`}><table>
				<thead><tr>{head?.map((c, i) =>
					<th key={i} scope="col" class={kinds[i]}>{c}</th>)}</tr></thead>
				<tbody>{body.slice(0, ROWS_MAX).map((row, n) => (
					<tr key={n}>{row.map((c, i) =>
						<td key={i} class={kinds[i]}>{c}</td>)}</tr>))}</tbody>
			</table></div>
			{body.length > ROWS_MAX && <p class="dim">The first {ROWS_MAX} of {body.length} rows</p>}
			<Wrong text={wrong} />
		</>
	);
}

interface Options {
	m: Media;
	/** The item of the previous step; null for the first. */
	before: Media | null;
	/** All items of the key. */
	all: readonly Media[];
	/** No other picture is next to it. */
	alone?: boolean;
	/** Of the histograms next to it. */
	ranges: Signal<Ranges>;
	/** Takes what it is, where the content tells. */
	kind?: Signal<string>;
}

function Caption({ m }: { m: Media }) {
	const { value, wrong } = useContent(m, getMediaText);
	return <><p class="caption">{value}</p><Wrong text={wrong} /></>;
}

export function Content(o: Options) {
	return <><ContentOf {...o} />{o.m.caption && <Caption m={o.m.caption} />}</>;
}

function ContentOf({ m, before, all, alone = false, ranges, kind }: Options) {
	switch (m.kind) {
	case 'image': return <Picture m={m} alone={alone} />;
	case 'histogram': return <HistogramOf m={m} all={all} ranges={ranges} />;
	case 'text': return m.type.startsWith('text/html') ? <FrameOf m={m} />
		: <TextOf m={m} before={before} kind={kind} />;
	case 'table': return <TableOf m={m} />;
	case 'audio': return m.type.startsWith('video/')
		? <video controls preload="metadata" src={contentAddress(m)} aria-label={`Step ${m.step}`} />
		: <audio controls preload="none" src={contentAddress(m)} aria-label={`Step ${m.step}`} />;
	default: return null;
	}
}
