// SPDX-License-Identifier: Apache-2.0
// Value columns: params, tags, metrics, formulas, and the difference to the best run.
import { apart, decimalsBy, fixed, paramTexts, signed } from '../../base/format.ts';
import { formulaOf } from '../../base/formula.ts';
import { bestOf, bestStep, inPoints } from '../../base/goal.ts';
import { cell, DERIVED, metricColumn, metricValue } from '../../base/rank.ts';
import type { Run } from '../../base/types.ts';
import * as s from '../../state/index.ts';
import { sample, widthOf, type Column } from './column.ts';

/** Best values of a column that differ as they are written. */
const APART = 4;
/** Decimals of differences in hundredths. */
const DELTA_DECIMALS = [1, 2, 3, 4];

export function paramColumn(key: string): Column {
	const list = s.rows.value;
	const numeric = list.every((r) => r.params[key] === undefined || !Number.isNaN(Number(r.params[key])));
	const text = paramTexts(numeric ? list.map((r) => r.params[key] ?? '') : []);
	return {
		id: 'p:' + key, title: key.replace(/_/g, ' '), hint: `Param ${key}`, number: numeric, sortable: true,
		width: widthOf(key.replace(/_/g, ' '), sample(list, (r) => text(r.params[key] ?? '')), 150),
		cell: (r) => text(r.params[key] ?? ''),
		full: (r) => r.params[key] ?? '',
	};
}

function textColumn(id: string, title: string, hint: string, text: (r: Run) => string): Column {
	return { id, title, hint, number: false, sortable: true, cell: text, full: text,
		width: widthOf(title, sample(s.rows.value, text), 150) };
}

export const tagColumn = (key: string) => textColumn('t:' + key, key, `Tag ${key}`, (r) => s.tagsOf(r)[key] ?? '');

export const experimentColumn = () => textColumn('experiment', 'Experiment', 'Its experiment', (r) => r.experiment);

export function valueColumn(id: string): Column | null {
	const c = metricColumn(id);
	if (!c) return null;
	const dir = s.dirOf(c.key);
	const list = s.rows.value;
	const values = [...sample(list, (r) => metricValue(r.metrics[c.key], c.what, dir) ?? NaN)];
	const few = [...values].sort((a, b) => (dir === 'max' ? b - a : a - b)).slice(0, APART);
	const d = apart(few, decimalsBy(values));
	const what = c.what === 'best' ? dir ?? 'last' : c.what;
	const title = `${s.shortKey(c.key)} ${c.what === 'best' && !dir ? 'last' : c.what}`;
	const top = c.what === 'best' && s.goal.value?.key === c.key ? s.best.value : null;
	return {
		id, title, hint: `${c.key}, ${what}`, number: true, sortable: true,
		width: widthOf(title, values.map((v) => fixed(v, d)), 130),
		cell: (r) => {
			const v = metricValue(r.metrics[c.key], c.what, dir);
			if (v === undefined) return <span class="none">–</span>;
			const text = fixed(v, d);
			return top && r.id === top.id ? <b class="best">{text}</b>
				: Number.isNaN(v) ? <span class="bad">NaN</span> : text;
		},
		full: (r) => {
			const m = r.metrics[c.key];
			const v = metricValue(m, c.what, dir);
			if (v === undefined) return '';
			const at = c.what === 'best' ? bestStep(m, dir) : c.what === 'last' ? m!.last_step : null;
			return fixed(v, null) === '' ? '' : String(v) + (at === null ? '' : ` at step ${at}`);
		},
	};
}

/** A formula over params and metrics. */
export function derivedColumn(id: string): Column {
	const text = id.slice(DERIVED.length);
	const formula = formulaOf(text);
	const of = (r: Run) => cell(r, id, s.dirOf) as number | undefined;
	const values = [...sample(s.rows.value, (r) => of(r) ?? NaN)];
	const d = decimalsBy(values);
	return {
		id, title: text, number: true, sortable: true,
		hint: typeof formula === 'string' ? formula : `Formula: ${text}`,
		width: widthOf(text, values.map((v) => fixed(v, d)), 150),
		cell: (r) => {
			const v = of(r);
			return v === undefined ? <span class="none">–</span> : fixed(v, d);
		},
		full: (r) => String(of(r) ?? ''),
	};
}

export function deltaColumn(): Column | null {
	const g = s.goal.value;
	const base = s.baseline.value;
	const top = base ?? s.best.value;
	const ref = top ? bestOf(top.metrics[g!.key], g!.dir) : null;
	if (!g || ref === null) return null;
	const list = s.rows.value;
	const points = inPoints(g.key, [...sample(list, (r) => bestOf(r.metrics[g.key], g.dir) ?? NaN)]);
	const delta = (r: Run) => {
		const v = bestOf(r.metrics[g.key], g.dir);
		return v === null ? null : (v - ref) * (points ? 100 : 1);
	};
	const values = [...sample(list, (r) => delta(r) ?? NaN)];
	const shows = (d: number) => values.every((v) => !v || Number.isNaN(v) || Number(v.toFixed(d)) !== 0);
	const digits = points ? DELTA_DECIMALS.find(shows) ?? DELTA_DECIMALS.length : decimalsBy(values);
	const word = base ? 'baseline' : 'best';
	return {
		id: 'delta', title: points ? 'Δ points' : 'Δ ' + word, number: true, sortable: false,
		width: Math.max(74, widthOf('Δ ' + word, values.map((v) => signed(v, digits)), 110)),
		hint: `Difference to ${base ? base.name : 'the best run'}'s ${g.key}`
			+ (points ? ', in hundredths' : ''),
		cell: (r) => {
			const v = delta(r);
			return v === null ? <span class="none">–</span>
				: top!.id === r.id ? <span class="best">{word}</span> : signed(v, digits);
		},
		full: (r) => String(delta(r) ?? ''),
	};
}
