// SPDX-License-Identifier: Apache-2.0
// The legend of the charts: what colours and dashes mean, and which params they show.
import { count, cut, natural, paramTexts } from '../../base/format.ts';
import { lookAt, type Look } from '../../base/colour.ts';
import * as s from '../../state/index.ts';
import { DIM, evenly, Key, Shades } from '../base/bits.tsx';

/** Maximum of values in the legend. */
const LEGEND_MAX = 6;
const SCALE_SHOWN = 4;

/** Values of a param with the looks of their runs. */
function values(key: string | null): readonly [string, Look[]][] {
	const seen = new Map<string, Look[]>();
	if (key !== null) for (const r of s.drawn.value) {
		const value = r.params[key] ?? '–';
		const looks = seen.get(value) ?? [];
		looks.push(s.looks.value.byRun.get(r.id) ?? lookAt(0));
		seen.set(value, looks);
	}
	return [...seen].sort((a, b) => natural(a[0], b[0]));
}

const MEANINGS = {
	hue: { by: 'Colour by', hint: 'What the colour of a line means', of: 'Colour', automatic: 'Colour: automatic' },
	dash: { by: 'Dash by', hint: 'What the dash of a line means', of: 'Dash', automatic: 'Dash: automatic' },
};

/** The param shown by colours or dashes. */
function Meaning({ what, of, chosen }: { what: 'hue' | 'dash'; of: string | null; chosen: string | null }) {
	const words = MEANINGS[what];
	const named = (k: string) => `${words.of}: ${k.replace(/_/g, ' ')}`;
	const params = s.split.value.differ;
	if (!params.length) return null;
	return (
		<select aria-label={words.by} title={words.hint} value={chosen ?? ''}
			onChange={(e) => s.go({ [what]: e.currentTarget.value || null })}>
			<option value="">{of === null || chosen !== null ? words.automatic : named(of)}</option>
			{params.map((k) => <option key={k} value={k}>{named(k)}</option>)}
		</select>
	);
}

/** Legend of colours and dashes, with the colours of all runs of each value. */
export function Legend() {
	const { hueParam, dashParam, scale } = s.looks.value;
	const { hue, dash } = s.view.value;
	const [hues, dashes] = [values(hueParam), values(dashParam)];
	const text = paramTexts(hues.map(([v]) => v));
	// of many numbers the smallest, the largest and some between
	const some = scale && hues.length > LEGEND_MAX ? evenly(hues, SCALE_SHOWN) : hues.slice(0, LEGEND_MAX);
	return (
		<span class="looks wide">
			<Meaning what="hue" of={hueParam} chosen={hue} />
			{some.map(([v, looks]) => (
				<span key={v} title={`${hueParam} ${v}: ${count(looks.length, 'run')}`}>
					<Shades looks={looks} />{cut(text(v))}</span>
			))}
			{hues.length === 1 && s.drawn.value.length > 1
				&& <span>in all lines: another param tells them apart</span>}
			<Meaning what="dash" of={dashParam} chosen={dash} />
			{dashes.slice(0, LEGEND_MAX).map(([v, looks]) => (
				<span key={v} title={`${dashParam} ${v}`}>
					<Key look={{ ...DIM, dash: looks[0]!.dash }} on />{cut(v)}</span>
			))}
			{new Set(dashes.map(([, l]) => l[0]!.dash)).size < dashes.length
				&& <span>some values share a dash</span>}
		</span>
	);
}
