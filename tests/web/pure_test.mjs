// SPDX-License-Identifier: Apache-2.0
// The parts of the page that need no browser: formatting, goal, order, colours, M4 geometry, the address.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { buckets, load } from './devserver.mjs';

const p = await import(pathToFileURL(path.join(process.env.builddir ?? 'build', 'web/ui/pure.mjs')).href);

const metric = (o) =>
	({ count: 1, first: 0, last: 0, min: 0, max: 0, first_step: 0, last_step: 0, min_step: 0, max_step: 0, ...o });
const run = (id, o = {}) =>
	({ id, name: id, experiment: 'e', status: 'finished', start_time: Number(o.n ?? 0), end_time: 1,
	params: {}, tags: {}, metrics: {}, notes: '', alerts: [], ...o });
const twelve = load().map((r) => ({ ...r, run: { ...r.run, metrics: Object.fromEntries(Object.entries(r.run.metrics)
	.map(([k, m]) => [k, { ...m, last: Number(m.last), max: Number(m.max), min: Number(m.min) }])) } }));

test('a column uses one precision', () => {
	assert.equal(p.decimalsFor([0.932, 0.9301, 0.884]), 3);
	assert.equal(p.decimalsFor([48, 8.626, 2.7]), 1);
	assert.equal(p.decimalsFor([90.08, 90.31]), 2);
	assert.equal(p.decimalsFor([1, 2, 128]), 0);
	assert.equal(p.decimalsFor([1e-5, 2e-5]), null);
	assert.equal(p.decimalsFor([NaN]), 0);
	assert.equal(p.fixed(NaN, 3), 'NaN');
	assert.equal(p.fixed(-0, 3), '0.000');
	assert.equal(p.fixed(-0.00001, 3), '−1e-5', 'what is not 0 is not shown as 0');
	assert.equal(p.fixed(-1.25, 1), '−1.3');
	assert.equal(p.signed(0.4, 1), '+0.4');
	assert.equal(p.short(4.85), '4.85');
	assert.equal(p.short(1e-5), '1e-5');
	assert.equal(p.short(123456), '123500');
});

test('a value of another size takes no digits from the others, and claims none that are not known', () => {
	const column = (list) => list.map((v) => p.fixed(v, p.decimalsBy(list)));
	assert.deepEqual(column([0.2641, 0.2481, 473614]), ['0.264', '0.248', '473614']);
	assert.deepEqual(column([0.25, 1e14, 0.0123, 0]), ['0.250', '1e14', '0.0123', '0']);
	assert.deepEqual(column([12.34, 9.87]), ['12.34', '9.87'], 'one size, one number of decimals');
	assert.deepEqual(column([3, 1, 128]), ['3', '1', '128']);
	assert.equal(p.fixed(0.25, p.decimalsBy([1, 128])), '0.250', 'a row that is not in the sample');
	assert.deepEqual(p.valueTexts('loss', [0.2641, 174233.4, 0.25], [1e-4, 1, 1]), ['0.2641', '174233', '0.2500'],
		'each line has its unit; less than that is sent in full');
	assert.deepEqual(p.valueTexts('loss', [0.26, 0.25], [1e-2, 1e-2]), ['0.26', '0.25']);
});

test('a trace: rows nest, steps name the rank that others wait for, zoom stays inside', () => {
	const slice = (pid, tid, name, cat, ts, dur, step) =>
		({ ph: 'X', pid, tid, name, cat, ts, dur, args: { step } });
	const thread = (pid, tid, name) => ({ ph: 'M', name: 'thread_name', pid, tid, args: { name } });
	const t = p.traceOf([thread(0, 1, 'step'), thread(0, 2, 'comm'), thread(1, 1, 'step'),
		slice(0, 1, 'step 7', '', 0, 100, 7), slice(0, 1, 'a', 'forward', 0, 40, 7),
		slice(0, 1, 'wait', 'comm_exposed', 40, 60, 7), slice(0, 2, 'sum', '', 90, 10, 7),
		slice(1, 1, 'step 7', '', 5, 98, 7), slice(1, 1, 'a', 'forward', 5, 90, 7)]);
	assert.deepEqual(t.rows.map((r) => [r.rank, r.thread, r.depth]),
		[[0, 'step', 2], [0, 'comm', 1], [1, 'step', 2]]);
	assert.equal(t.end, 103);
	assert.deepEqual(t.critical, [{ step: 7, rank: 1, from: 5, to: 103, waited: 0 }]);
	const meet = p.traceOf([thread(0, 1, 'step'), slice(0, 1, 'step 4', '', 0.1, 0.2, 4),
		slice(0, 1, 'step 5', '', 0.3, 0.1, 5)]);
	assert.deepEqual([meet.rows[0].depth, meet.critical.map((c) => c.step)], [1, [4, 5]], '0.1 + 0.2 > 0.3');
	assert.equal(p.spanAt(t.rows[0], 50).name, 'wait');
	assert.equal(p.spanAt(t.rows[1], 50), null);
	assert.deepEqual(p.zoomed({ from: 0, to: 100 }, 100, 50, 0.5), { from: 25, to: 75 });
	assert.deepEqual(p.moved({ from: 25, to: 75 }, 100, 1), { from: 50, to: 100 });
	assert.deepEqual(p.zoomed({ from: 50, to: 100 }, 100, 100, 4), { from: 0, to: 100 });
});

test('text sorts naturally', () => {
	assert.deepEqual(['ddp10', 'ddp2', 'ddp1'].sort(p.natural), ['ddp1', 'ddp2', 'ddp10']);
	assert.deepEqual(['0.1', '0.05', '1e-3'].sort(p.natural), ['1e-3', '0.05', '0.1']);
});

/** The number of runs that have each metric. */
function keysOf(runs) {
	const all = new Map();
	for (const r of runs) for (const k in r.metrics) all.set(k, (all.get(k) ?? 0) + 1);
	return all;
}

test('the goal is an accuracy if there is one, else a held-out loss, else any loss', () => {
	const of = (...keys) =>
		p.defaultGoal(new Map(keys.map((k) => [k, 1])), 1);
	assert.deepEqual(of('train/loss', 'epoch/val_loss', 'epoch/top1', 'epoch/top5'),
		{ key: 'epoch/top1', dir: 'max' });
	assert.deepEqual(of('train/loss', 'epoch/val_loss'), { key: 'epoch/val_loss', dir: 'min' });
	assert.deepEqual(of('train/loss', 'train/lr'), { key: 'train/loss', dir: 'min' });
	assert.deepEqual(of('accuracy', 'loss'), { key: 'accuracy', dir: 'max' });
	assert.equal(of('phase/step'), null);
	assert.equal(of(), null);
	assert.equal(p.directionOf('val/perplexity'), 'min');
	assert.equal(p.directionOf('epoch/samples_per_s'), 'max');
	assert.deepEqual(of('epoch/seconds', 'my/thing'), { key: 'epoch/seconds', dir: null });
	const said = p.saidOf([run('a', { tags: { 'dptrack.best.my/thing': 'min' } })]);
	assert.deepEqual(p.defaultGoal(new Map([['val/acc', 1], ['my/thing', 1]]), 1, said),
		{ key: 'my/thing', dir: 'min' });
});

test('no run is the best by a metric of which no value is known to be better', () => {
	const runs = [1, 2].map((last) =>
		run('r' + last, { metrics: { depth: { last, min: 0, max: 3, last_step: 7 } } }));
	assert.equal(p.bestRun(runs, { key: 'depth', dir: null }), null);
	assert.equal(p.bestOf(runs[0].metrics.depth, null), 1);
	assert.equal(p.bestStep(runs[0].metrics.depth, null), 7);
});

test('rows: best first, then failed and diverged runs, then runs without a value', () => {
	const runs = twelve.map((r) => r.run);
	const goal = p.defaultGoal(keysOf(runs), runs.length);
	assert.deepEqual(goal, { key: 'epoch/top1', dir: 'max' });
	const rows = p.orderRuns(runs, goal, null, false);
	assert.equal(rows[0].name, 'resnet-base');
	assert.equal(p.bestRun(runs, goal).name, 'resnet-base');
	assert.equal(p.partition(rows, null), 10);
	assert.deepEqual(rows.slice(10).map((r) => r.name), ['resnet-ddp2', 'cnn-ddp4-lr0.8']);
	for (const desc of [false, true]) {
		const lacks = run('z', { params: {} });
		const sorted = p.orderRuns([lacks, run('a', { params: { lr: '0.1' } }),
			run('b', { params: { lr: '1e-3' } })], null, 'p:lr', desc);
		assert.equal(sorted[2].id, 'z');
		assert.equal(sorted[0].id, desc ? 'a' : 'b');
	}
});

test('a value that is not finite is never the best, and sorts last both ways', () => {
	const metric = (last, low = last) => ({ count: 1, nonfinite: 0, first: last, last, min: low, max: low,
		min_step: 1, max_step: 1 });
	const of = (id, m) => run(id, { metrics: { loss: m } });
	const runs = [of('minus', metric(-Infinity)), of('good', metric(2)), of('plus', metric(Infinity)),
		of('nan', metric(NaN)),
		of('best', metric(1.5))];
	for (const dir of ['min', 'max']) {
		const goal = { key: 'loss', dir };
		const rows = p.orderRuns(runs, goal, null, false).map((r) => r.id);
		assert.deepEqual(rows.slice(0, 2), dir === 'min' ? ['best', 'good'] : ['good', 'best']);
		assert.equal(p.bestRun(runs, goal).id, rows[0]);
	}
	for (const desc of [false, true]) {
		const rows = p.orderRuns(runs, null, 'm:last:loss', desc).map((r) => r.id);
		assert.deepEqual(rows.slice(0, 2), desc ? ['good', 'best'] : ['best', 'good']);
	}
});

test('the best values of a column are those that the runs say', () => {
	const of = (id, min, max) => run(id, { metrics: {
		loss: { count: 2, nonfinite: 0, first: min, last: min, min, max, min_step: 1, max_step: 2 } } });
	const runs = [of('low', 1, 2), of('high', 0.5, 3)];
	const sorted = (said) => p.orderRuns(runs, null, 'm:best:loss', true, null, said).map((r) => r.id);
	assert.deepEqual(sorted(undefined), ['low', 'high']);
	assert.deepEqual(sorted(new Map([['loss', 'max']])), ['high', 'low']);
});

test('params are split into those that differ and those that are equal in all runs', () => {
	const s = p.splitParams([run('a', { params: { model: 'm', lr: '1', host: 'x' } }),
		run('b', { params: { model: 'm', lr: '2', host: 'y' } })]);
	assert.deepEqual(s.same, [['model', 'm']]);
	assert.deepEqual(s.differ, ['lr', 'host']);
	assert.deepEqual(p.tellingParams(s, 8), ['lr']);
});

test('no two of the twelve runs look alike, nor of 60 runs that differ only in their seed', () => {
	const seeds =
		Array.from({ length: 60 }, (_, i) => run('r' + i, { n: i, params: { model: 'a', seed: String(i) } }));
	const alone = Array.from({ length: 40 }, (_, i) => run('r' + i, { n: i }));
	for (const list of [twelve.map((r) => r.run), seeds, alone]) {
		const looks = p.assignLooks(list).byRun;
		for (const a of list)
			for (const b of list)
				if (a.id < b.id) assert.ok(p.differ(looks.get(a.id), looks.get(b.id)),
					`${a.name} and ${b.name}`);
	}
});

test('six runs of each of three values have six colours, whatever their dash', () => {
	const colours = twelve.map((r) => p.assignLooks(twelve.map((t) => t.run)).byRun.get(r.run.id).light);
	assert.equal(new Set(colours).size, twelve.length);
	const models = ['a', 'b', 'c'];
	const list = models.flatMap((model, m) => Array.from({ length: 6 }, (_, i) =>
		run(model + i, { n: 6 * m + i,
			params: { model, strategy: ['ddp', 'fsdp'][i % 2], seed: String(i) } })));
	const looks = p.assignLooks(list).byRun;
	for (const model of models)
		for (const theme of ['light', 'dark'])
			assert.equal(new Set(Array.from({ length: 6 }, (_, i) => looks.get(model + i)[theme])).size, 6);
});

test('a dash has one value in all runs, and up to six values have six dashes', () => {
	const list = Array.from({ length: 80 }, (_, i) => run('d' + i, { n: i,
		params: { model: 'ab'[i % 2], precision: String(2 ** (Math.floor(i / 2) % 4)), seed: String(i) } }));
	const { byRun, dashParam } = p.assignLooks(list);
	const dashes = (key, looks) => [...new Set(list.map((r) => r.params[key] + ': ' + looks.get(r.id).dash))];
	assert.deepEqual([dashParam, dashes('precision', byRun).length], ['precision', 4]);
	for (const r of list) r.params.size = String(r.n ?? Number(r.id.slice(1)) % 6);
	const chosen = p.assignLooks(list, { hue: null, dash: 'size' }).byRun;
	assert.equal(new Set(list.map((r) => chosen.get(r.id).dash.join())).size, 6);
});

/** Degrees around the circle of colours. */
function hueOf(hex) {
	const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
	return (Math.atan2(Math.sqrt(3) * (g - b), 2 * r - g - b) * 180) / Math.PI;
}

const sweep = Array.from({ length: 200 }, (_, i) => run('s' + String(i).padStart(4, '0'), {
	start_time: i, params: { model: ['resnet20', 'resnet32', 'resnet56'][i % 3], lr: String(0.01 * (1 + i % 50)),
		seed: String(i) },
}));

test('among many runs neighbours differ, and a model keeps its hue', () => {
	const { byRun, hueParam } = p.assignLooks(sweep);
	assert.equal(hueParam, 'model');
	sweep.forEach((r, i) => {
		for (const b of sweep.slice(Math.max(0, i - 16), i))
			assert.ok(p.differ(byRun.get(r.id), byRun.get(b.id)), `${r.name} and ${b.name}`);
	});
	for (const model of ['resnet20', 'resnet32', 'resnet56']) {
		const own = sweep.filter((r) => r.params.model === model).map((r) => hueOf(byRun.get(r.id).light));
		const away = own.map((hue) => Math.abs(((hue - own[0] + 540) % 360) - 180));
		assert.ok(Math.max(...away) < 80, `${model}: ${Math.max(...away)} degrees`);
	}
});

test('a numeric param gives a colour scale, a text param a list', () => {
	const grey = (hex) => [1, 3, 5].reduce((n, i) => n + parseInt(hex.slice(i, i + 2), 16), 0);
	const by = p.assignLooks(sweep, { hue: 'lr', dash: null });
	assert.ok(by.scale);
	const order = [...sweep].sort((a, b) => a.params.lr - b.params.lr).map((r) => grey(by.byRun.get(r.id).light));
	assert.ok(order.at(-1) > order[0] + 60, 'large is lighter than small');
	assert.ok(!p.assignLooks(sweep, { hue: 'model', dash: null }).scale);
});

test('a new run changes no existing colour', () => {
	const list = twelve.map((r) => r.run);
	const before = p.assignLooks(list).byRun;
	const after = p.assignLooks([...list, run('new',
		{ start_time: 4e12, params: { ...list[3].params, seed: '9' } })]).byRun;
	for (const r of list) assert.deepEqual(after.get(r.id), before.get(r.id));
});

/** Smallest and largest drawn value; null when nothing is drawn. */
function extent({ ys }) {
	const drawn = ys.filter(Number.isFinite);
	return drawn.length ? { lo: Math.min(...drawn), hi: Math.max(...drawn) } : null;
}

test('M4: the drawn line contains every extreme, whatever the number of buckets', () => {
	const spike = twelve.find((r) => r.run.name === 'cnn-base-s3').series['train/loss'];
	for (const n of [1, 7, 50, 333, 1200]) {
		const s = p.seriesOf('r', 'k', -1, buckets(spike, (q) => q.s, 0, 599, n));
		assert.deepEqual(extent(s).hi, 4.85, `${n} buckets`);
		assert.equal(s.xs[s.ys.indexOf(4.85)], 337);
		assert.equal(extent(s).lo, Math.min(...spike.map((q) => q.v)));
		assert.ok(s.xs.every((x, i) => i === 0 || x >= s.xs[i - 1]), 'x in order');
		assert.equal(s.count, 600);
	}
	const fine = p.seriesOf('r', 'k', -1, buckets(spike, (q) => q.s, 0, 599, 1200));
	assert.deepEqual(fine.ys, spike.map((q) => q.v));
});

test('random series: the line contains the extremes of every window of buckets', () => {
	let seed = 1;
	const rnd = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
	for (let t = 0; t < 300; t++) {
		const list = Array.from({ length: 1 + Math.floor(rnd() * 400) },
			(_, i) => ({ s: i, v: rnd() < 0.02 ? NaN : Math.exp(8 * rnd()) }));
		const s = p.seriesOf('r', 'k', -1,
			buckets(list, (q) => q.s, 0, list.length - 1, 1 + Math.floor(rnd() * 60)));
		const fin = list.map((q) => q.v).filter(Number.isFinite);
		const e = extent(s);
		if (!fin.length) assert.equal(e, null);
		else assert.deepEqual([e.lo, e.hi], [Math.min(...fin), Math.max(...fin)]);
		const bad = list.findIndex((q) => Number.isNaN(q.v));
		assert.equal(s.badX, bad < 0 ? null : bad);
		if (!Number.isNaN(list.at(-1).v)) assert.equal(s.badToEnd, false);
	}
});

test('NaN: the line stops, the read-out shows NaN, the position is known', () => {
	const nan = twelve.find((r) => r.run.name === 'cnn-ddp4-lr0.8').series['train/loss'];
	for (const n of [13, 600]) {
		const s = p.seriesOf('r', 'k', -1, buckets(nan, (q) => q.s, 0, 599, n));
		assert.equal(s.badX, 400);
		assert.equal(s.badToEnd, true);
		assert.ok(Number.isNaN(p.valueAt(s, 500)));
		assert.equal(Math.max(...s.xs.filter((_, i) => Number.isFinite(s.ys[i]))), 399);
	}
});

test('a compact series has the same values, and its means only once where they are its points', () => {
	const points = Array.from({ length: 300 }, (_, i) => ({ s: i, v: Math.sin(i) }));
	const of = (n) => p.seriesOf('r', 'k', -1, buckets(points, (q) => q.s, 0, 299, n));
	const all = p.compact(of(1200));
	assert.deepEqual(all, of(1200));
	assert.ok(all.mx === all.xs && all.mean === all.ys);
	const some = p.compact(of(40));
	assert.deepEqual(some, of(40));
	assert.ok(some.mx.length < some.xs.length);
});

test('smoothing does not depend on the number of buckets and keeps a constant', () => {
	const flat = Array.from({ length: 500 }, (_, i) => ({ s: i, v: 3 }));
	const s = p.smooth(p.seriesOf('r', 'k', -1, buckets(flat, (q) => q.s, 0, 499, 40)), 0.9);
	assert.ok(s.ys.every((y) => Math.abs(y - 3) < 1e-12));
	const ramp = Array.from({ length: 4000 }, (_, i) => ({ s: i, v: i }));
	const end = (n) => p.smooth(p.seriesOf('r', 'k', -1, buckets(ramp, (q) => q.s, 0, 3999, n)), 0.99).ys.at(-1);
	assert.ok(Math.abs(end(4000) - end(800)) < 5, 'within a bucket');
});

const line = (id, ys, o = {}) =>
	({ id, name: id, colour: '#000', dash: [], xs: ys.map((_, i) => i), ys, smooth: null, fit: true,
	badX: null, badToEnd: false, end: 'none', flags: [], ...o });

const fit = (from, to, more = {}) => ({ from, to, log: false, full: false, ...more });

test('the axis shows a spike in full, but a diverged run does not flatten the others', () => {
	const calm = Array.from({ length: 600 }, (_, i) => 0.2 + 2 * Math.exp(-i / 60));
	const spiky = calm.map((v, i) => (i === 337 ? 4.85 : v));
	const r = p.fitRange([line('a', calm), line('b', spiky)], fit(0, 600));
	assert.ok(r.hi >= 4.85 && r.outside.length === 0);
	const bad = line('c', [0.3, 3.1, 90], { fit: false });
	const f = p.fitRange([line('a', [0.7, 0.3, 0.2]), bad], fit(0, 3));
	assert.ok(f.hi < 1);
	assert.deepEqual(f.outside, [{ id: 'c', x: 2, y: 90, side: 'top' }]);
	assert.ok(p.fitRange([line('a', [0.7, 0.3, 0.2]), bad], fit(0, 3, { full: true })).hi >= 90);
	const wild = calm.map((v, i) => (i === 100 ? 1e6 : v));
	const w = p.fitRange([line('a', calm), line('b', wild)], fit(0, 600));
	assert.ok(w.hi < 100 && w.outside[0].y === 1e6, 'an absurd spike gets an arrow');
	const zero = p.fitRange([line('a', [0, 0.1, 0.5])], fit(0, 2, { log: true }));
	assert.deepEqual(zero.outside, [{ id: 'a', x: 0, y: 0, side: 'bottom' }]);
	assert.equal(p.fitRange([line('a', [-1, -2])], fit(0, 2, { log: true })).outside[0].y, -2,
		'nothing above zero on a log axis');
});

test('axis ranges of unusual data', () => {
	for (const log of [false, true])
		for (const ys of [[], [NaN], [0], [5], [-1, 1], [1e-300, 1e300], [0, 0, 0]]) {
			const r = p.fitRange([line('a', ys)], fit(0, 10, { log }));
			assert.ok(r.lo < r.hi && Number.isFinite(r.lo) && Number.isFinite(r.hi),
				JSON.stringify([log, ys, r]));
			if (log) assert.ok(r.lo > 0);
		}
});

test('ticks of a log axis are round and few', () => {
	assert.deepEqual(p.logTicks(0.1413, 6, 8), [0.2, 0.5, 1, 2, 5]);
	assert.deepEqual(p.logTicks(0.76, 0.94, 6), [0.8, 0.85, 0.9]);
	assert.deepEqual(p.logTicks(1e-6, 10, 8).length, 8);
	assert.ok(p.logTicks(1e-300, 1e300, 8).length <= 9);
});

test('labels keep their order and do not overlap', () => {
	const at = p.spreadLabels([50, 50, 50, 10, 99], 12, 0, 100);
	const sorted = [...at].sort((a, b) => a - b);
	for (let i = 1; i < sorted.length; i++) assert.ok(sorted[i] - sorted[i - 1] >= 11.999);
	assert.ok(Math.min(...at) >= 0 && Math.max(...at) <= 100);
	assert.equal(at.indexOf(Math.min(...at)), 3);
	assert.equal(p.spreadLabels(Array(40).fill(5), 12, 0, 100).length, 40);
	assert.deepEqual(p.packRows([{ left: 0, width: 50 }, { left: 20, width: 50 }, { left: 80, width: 10 }], 2),
		[0, 1, 0]);
});

test('the address holds only what differs from the default, and is read back', () => {
	assert.equal(p.viewQuery(p.emptyView), '');
	const v = { ...p.emptyView, experiment: 'a b', goal: 'epoch/val_loss', dir: 'min', sort: 'p:lr', desc: true,
		x: 'time', log: true,
		smooth: 0.6, zoom: [300, 360.5], shown: ['0123abcd', 'ffff0000'], filter: 'params.lr > 0.1',
		columns: ['p:lr', 'm:best:epoch/top1'], colours: { '0123abcd': 0xcd3f9b, ffff0000: 0 } };
	assert.deepEqual(p.parseView(p.viewQuery(v)), v);
	assert.equal(p.viewQuery({ ...p.emptyView, experiment: 'fashion' }), '?e=fashion');
	assert.deepEqual(p.parseView('?axs=log.p:lr&axs=odd.x&axs=quantile.m:best:val/loss').scales,
		{ 'p:lr': 'log', 'm:best:val/loss': 'quantile' });
	assert.equal(p.viewQuery({ ...p.emptyView, scales: { 'p:lr': 'log' } }), '?axs=log.p:lr');
	assert.deepEqual(p.parseView('?e=a/b&e=c%26d&e=c%26d&e=a/b').also, ['c&d']);
	assert.equal(p.viewQuery({ ...p.emptyView, experiment: 'a/b', also: ['c&d'] }), '?e=a/b&e=c%26d');
	assert.ok(p.viewQuery(v).length < 200);
	assert.equal(p.parseView('?z=9~3').zoom, null);
	const id = '0123456789abcdef'.repeat(2);
	assert.deepEqual([p.linkedQuery('#/experiments/1/runs/' + id), p.linkedQuery('#/experiments/1'),
		p.linkedQuery('')], ['?r=' + id, null, null]);
	assert.equal(p.parseView('?sm=7&x=frog').smooth, 0.99);
});

test('expressions go to the server, words do not', () => {
	for (const e of ["params.lr = '0.1'", 'metrics."epoch/top1".max > 0.9', "status = 'failed'", "tags.x LIKE 'a%'",
		'metrics."a b" > 1',
		'params.lr=0.1', "NOT (status != 'failed')", "params.opt NOT LIKE 's%'", "params.opt not in ('a', 'b')",
		'tags.owner IS NULL',
		'params.`a b` is not null', '(metrics.loss.min<1)',
		"attributes.run_name = 'x'", 'duration > 60', 'last_step >= 10',
		"notes LIKE '%x%'"]) assert.ok(p.isExpression(e), e);
	for (const e of ['lr > 0.1', 'lr>0.1', 'lr=0.1', 'model = cnn', 'train/loss.min < 1', '"a b" != 2',
		"opt IN ('a', 'b')", 'not lr > 1', '(lr > 1 or lr < 0.1)']) assert.ok(p.isExpression(e), e);
	for (const e of ['resnet bf16', 'cnn lr=0.1', 'name', 'name of it', 'status', 'in', 'params',
		'cnn ddp']) assert.ok(!p.isExpression(e), e);
	assert.equal(p.readFilter('params.' + '"'.repeat(20000)).kind, 'partial');
	assert.ok(p.matchesWords('cnn  LR=0.1', ['cnn-ddp4', 'lr=0.1']));
	assert.ok(!p.matchesWords('cnn mlp', ['cnn-ddp4', 'lr=0.1']));
});

test('a filter without its end is told from a whole one and from words', () => {
	const kind = (text) => p.readFilter(text, (k) => ['lr', 'opt', 'train/loss'].includes(k)).kind;
	for (const text of ['lr >', 'lr > ', 'params.', 'params.lr', 'lr > 0.1 AND', 'lr > 0.1 and model',
		"model = 'res", 'opt in', 'opt in (', "opt in ('a'", "opt in ('a',", 'status =', '(lr > 1',
		'metrics."a', 'lr is', 'lr is not',
		'NOT lr >']) assert.equal(kind(text), 'partial', text);
	for (const text of ['lr > 0.1', 'lr is not null', "opt in ('a','b') or train/loss.min < 1",
		'(lr > 1) AND status = failed']) assert.equal(kind(text), 'whole', text);
	for (const text of ['', ' ', 'lr', 'res', 'cnn in', 'not finished', '(1)', 'run.5', 'a b c'])
		assert.equal(kind(text), 'words', text);
	for (const text of ['lr > 0.1 model = 3', 'lr > AND', 'cnn lr > 0.1']) assert.equal(kind(text), 'wrong', text);
});

test('spaces in a compared name become underscores where that makes a known name', () => {
	const known = (k) => ['batch_size', 'train/grad_norm', 'lr', 'size'].includes(k);
	for (const [typed, want] of [['batch size = 256', 'batch_size = 256'],
		['lr > 0.1 and (params.batch size in (1, 2) or train/grad norm.max>3)',
			'lr > 0.1 and (params.batch_size in (1, 2) or train/grad_norm.max>3)'],
		["name = 'batch size = 2' and not batch size is null",
			"name = 'batch size = 2' and not batch_size is null"],
		...['my batch size = 1', 'batch size', 'size = 256', 'batch "size" = 1']
			.map((s) => [s, s])])
		assert.equal(p.withUnderscores(typed, known), want);
});

test('tests of a field are found in a filter and replaced', () => {
	const params = (k) => k === 'lr';
	assert.equal(p.fieldWords('p:lr', params), 'lr');
	assert.equal(p.fieldWords('m:min:train/loss', params), 'train/loss.min');
	assert.equal(p.fieldWords('m:last:lr', params), 'metrics."lr"');
	assert.equal(p.fieldWords('p:status', params), 'params."status"');
	assert.equal(p.fieldWords('p:a "b"', params), 'params."a ""b"""');
	assert.equal(p.fieldWords('t:team', params), 'tags."team"');
	assert.deepEqual(p.testsOf("lr >= 0.1 AND params.lr <= 1 AND model IN ('a', 'b')", 'p:lr').map((t) =>
		[t.op, t.values]), [['>=', ['0.1']], ['<=', ['1']]]);
	assert.deepEqual(p.testsOf("model IN ('a', 'it''s') AND lr > 1", 'p:model')[0].values, ['a', "it's"]);
	assert.deepEqual(p.testsOf('(model = a OR model IS NULL)', 'p:model'),
		[{ op: '=', none: true, values: ['a'] }]);
	assert.equal(p.withTests("lr > 1 AND model = 'a' AND status = failed", 'p:model', ["model = 'b'"]),
		"lr > 1 AND status = failed AND model = 'b'");
	assert.equal(p.withTests('lr > 1 OR lr < 0.1', 'p:lr', ['lr = 3']), '(lr > 1 OR lr < 0.1) AND lr = 3');
	assert.equal(p.withTests('some words', 'p:lr', ['lr = 3']), 'lr = 3');
	assert.equal(p.withTests('lr = 3', 'p:lr', []), '');
	assert.equal(p.withTests('metrics."train/loss".min < 1 AND train/loss < 2', 'm:last:train/loss', []),
		'metrics."train/loss".min < 1');
});

test('addresses as MLflow prints them', () => {
	const id = 'a'.repeat(32);
	assert.equal(p.linkedQuery(`#/experiments/3/runs/${id}/artifacts`), '?r=' + id);
	assert.equal(p.linkedTarget(`#/experiments/3/runs/${id}`), null);
	assert.deepEqual(p.linkedTarget('#/experiments/3'), { experiment: '3', model: null });
	assert.deepEqual(p.linkedTarget('#/experiments/3/models/m-0f'), { experiment: '3', model: 'm-0f' });
	assert.equal(p.linkedTarget('#/compare-runs'), null);
});

test('counts and short durations', () => {
	assert.deepEqual([p.count(0, 'run'), p.count(1, 'run'), p.count(2, 'more run')],
		['0 runs', '1 run', '2 more runs']);
	assert.deepEqual([8.04e-8, 3.2e-6, 4.25e-5, 4.2e-4, 0.00312, 0.0312, 0.312, 3.12, 312].map(p.seconds),
		['80.4 ns', '3.20 µs', '42.5 µs', '420 µs', '3.12 ms', '31.2 ms', '312 ms', '3.1 s', '5 min']);
});

test('Markdown: blocks, inline markup, and no executable content', () => {
	const kinds = (s) => p.parseMarkdown(s).map((t) => t.type).filter((k) => k !== 'space');
	assert.deepEqual(kinds('# a\n\ntext\nmore\n\n- x\n- y\n\n1. z\n\n> q\n\n```\n# no\n```\n\n'
		+ '| a | b |\n|--:|:-:|\n| 1 | 2 |\n\n---\n'),
		['heading', 'paragraph', 'list', 'list', 'blockquote', 'code', 'table', 'hr']);
	assert.ok(p.safeLink('https://x.org') && p.safeLink('mailto:a@b.org'));
	for (const s of ['javascript:alert(1)', 'data:text/html,1', ' javascript:x', '//host/y', 'x.html',
		'JaVaScRiPt:x'])
		assert.ok(!p.safeLink(s), s);
	for (const s of ['> '.repeat(8000), 'x'.repeat(20000)]) // nested too deep, too long: unchanged
		assert.deepEqual(p.parseMarkdown(s).map((t) => [t.type, t.text]), [['code', s]]);
	assert.equal(p.plainText('# A\n\n**b** [c](https://d.org)\n- e'), 'A b c e');
	assert.equal(p.plainText('loss: 3 * 4 ** 5'), 'loss: 3 * 4 ** 5');
	for (const [text, words] of [['> quoted _word_ of snake_case_name', 'quoted word of snake_case_name'],
		['1. a\n2. [x] b', 'a [x] b'],
		['- [x] done `x*y*z`', 'done x*y*z'], ['| a | b |\n|---|:-:|\n| 1 | 2 |', 'a b 1 2'],
		['```\ncode\n```\n---\n![pic](a.png "t")', 'code pic'],
		['~~old~~ __new__ \\*star', 'old new *star'], ['lr -1e-4', 'lr -1e-4'], ['- ', ''], ['', '']])
		assert.equal(p.plainText(text), words, text);
	const t0 = performance.now();
	for (const s of ['[', '*', '`', '> ', '- ', '**a ', '[a](', '| ', '_a', '__a ', '-'])
		p.plainText(s.repeat(600).slice(0, 600));
	for (const s of ['[', '*', '`', '> ', '- ', '**a ', '[a](', '| ', '_a', '<http://'])
		p.parseMarkdown(s.repeat(4000));
	assert.ok(performance.now() - t0 < 4000, `hostile notes took ${performance.now() - t0} ms`);
});

test('rank by step: own time compared with the typical rank, the slow rank named', () => {
	const series = (key, rank, values) => ({ key, rank, columns: { i: values.map((_, i) => i),
		x_first: values.map((_, i) => i * 2 + 1), x_last: values.map((_, i) => i * 2 + 2),
		sum: values.map((v) => v * 2), count: values.map(() => 2), nonfinite: values.map(() => 0) } });
	const sign = { 'phase/step': 1, 'phase/comm_exposed': -1 };
	const h = p.heatOf([0, 1, 2].flatMap((r) => [series('phase/step', r, [10, 10, 10]),
		series('phase/comm_exposed', r, r === 1 ? [1, 1, 5] : [5, 5, 5])]), sign);
	assert.deepEqual(h.ranks, [0, 1, 2]);
	assert.deepEqual(h.cells, [[5, 5, 5], [9, 9, 5], [5, 5, 5]]);
	assert.deepEqual(h.usual, [5, 5, 5]);
	assert.deepEqual([h.from, h.to], [[1, 3, 5], [2, 4, 6]]);
	const rows = p.rankRows(h);
	assert.deepEqual(rows.map((r) => [r.rank, r.mean, r.highest, r.more, r.slow]),
		[[0, 5, 5, 0, 0], [1, 23 / 3, 9, 23 / 15 - 1, 2 / 3], [2, 5, 5, 0, 0]]);
	assert.equal(p.mostOftenSlow(rows), rows[1]);
	assert.equal(p.mostOftenSlow(p.rankRows(p.heatOf([series('phase/step', 0, [1, 1])], sign))), null);
	const part = p.rankRows({ ranks: [0, 1], from: [1, 2], to: [1, 2], cells: [[2, NaN], [2, 4]], usual: [2, 4] });
	assert.deepEqual(part.map((r) => [r.mean, r.more]), [[2, 0], [3, 0]]);
	assert.deepEqual(p.heatOf([], sign).ranks, []);
});

test('a straggler exceeds the lower median by the share that the server uses', () => {
	const header = readFileSync(path.join(process.env.srcdir ?? '.', 'tracker/insight/bottleneck_tree.h'), 'utf8');
	assert.equal(p.STRAGGLER_EXCESS, Number(/BOTTLENECK_STRAGGLER_EXCESS (\S+)/.exec(header)[1]));
	const phases = ['forward', 'backward'];
	const half = (v, rank) => ({ rank, seconds: { forward: v / 2, backward: v / 2 } });
	const of = (own) => p.stragglerOf(own.map(half), phases);
	assert.equal(of([1]), null);
	assert.equal(of([1, 1.04]), null);
	assert.equal(of([1.06, 1])?.rank, 0);
	assert.equal(of([1, 1, 1.03, 1.06, 1.07]), null); // 4 % above the third
	assert.ok(Math.abs(of([5, 7, 5]).more - 0.4) < 1e-12);
	const rank = (forward, backward) => ({ rank: forward, seconds: { forward, backward } });
	assert.equal(p.stragglerOf([rank(1, 9), rank(2, 9), rank(3, 12), rank(1, 9)], phases).phase, 'backward');
});

test('child runs follow their parents: order, folding, missing parents, cycles, deep chains', () => {
	const run = (id, parent) => ({ id, tags: parent ? { 'mlflow.parentRunId': parent } : {} });
	const lines = (list, closed = []) => p.nest(list, new Set(closed))
		.map((n) => `${n.depth}${n.run.id}${n.below || ''}`).join(' ');
	const list = [run('c', 'b'), run('x'), run('b', 'a'), run('d', 'a'), run('a'), run('e', 'gone')];
	assert.equal(lines(list), '0a3 1b1 2c 1d 0x 0e', 'a tree takes the place of its first run');
	assert.equal(lines(list, ['b']), '0a3 1b1 1d 0x 0e');
	assert.equal(lines(list, ['a']), '0a3 0x 0e');
	assert.equal(lines([run('p', 'q'), run('q', 'p'), run('s', 's'), run('y', 'p')]).replace(/\d/g, '').split(' ')
		.sort().join(' '), 'p q s y');
	const chain = Array.from({ length: 20000 }, (_, i) => run(String(i), i ? String(i - 1) : null)).reverse();
	const t0 = performance.now();
	const deep = p.nest(chain, new Set());
	assert.ok(deep.length === 20000 && deep[19999].depth === 19999 && deep[0].below === 19999
		&& performance.now() - t0 < 4000);
});

test('a param formatted for a cell', () => {
	for (const [v, shown] of [['0.30000000000000004', '0.3'], ['0.1', '0.1'], ['1e-4', '1e-4'],
		['12345678901', '12345678901'], ['0.0000123456789', '0.0000123457'],
		['v1.2.3-rc.45678', 'v1.2.3-rc.45678'], ['', '']])
		assert.equal(p.paramText(v), shown);
});

test('ticks are round, complete and few, and their labels are distinct', () => {
	assert.deepEqual(p.evenTicks(0, 600, 8), [0, 100, 200, 300, 400, 500, 600]);
	assert.deepEqual(p.evenTicks(0, 3, 10, true), [0, 1, 2, 3]);
	assert.deepEqual(p.evenTicks(-0.3, 0.3, 6), [-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3]);
	assert.deepEqual(p.evenTicks(1, 1, 5), []);
	assert.deepEqual(p.evenTicks(-1e308, 1e308, 5).length <= 7, true);
	for (let i = 0; i < 2000; i++) {
		const lo = (Math.random() - 0.5) * 10 ** (Math.random() * 40 - 20);
		const hi = lo + Math.abs(lo) * 10 ** (Math.random() * 8 - 6) + 1e-30;
		const most = 2 + Math.floor(Math.random() * 12);
		const t = p.evenTicks(lo, hi, most);
		assert.ok(t.length <= most + 1 && t.every((v) => v >= lo - (hi - lo) * 1e-6
			&& v <= hi + (hi - lo) * 1e-6), `${lo} ${hi} ${most}: ${t}`);
		assert.equal(new Set(p.tickTexts(t, false, p.short)).size, t.length,
			`${t}: ${p.tickTexts(t, false, p.short)}`);
	}
	assert.deepEqual(p.tickTexts([0, 0.5, 1], false, p.short), ['0.0', '0.5', '1.0']);
	assert.deepEqual(p.tickTexts([-1, 0], false, p.short), ['−1', '0']);
	assert.deepEqual(p.tickTexts([0.01, 0.1, 1], true, p.short), ['0.01', '0.1', '1']);
	assert.deepEqual(p.tickTexts([1e8, 1e8 + 1, 1e8 + 2], false, p.short), ['1e8', '+1', '+2']);
});

test('axes of parallel coordinates: text, numbers, log scale, missing values', () => {
	const o = { format: String };
	const words = p.scaleOf(['cnn', 'mlp', 'mlp'], o);
	assert.deepEqual(words.ticks, [{ at: 0.25, text: 'cnn' }, { at: 0.75, text: 'mlp' }]);
	assert.deepEqual([words.at('mlp'), words.at('vit'), words.at(null), words.discrete], [0.75, null, null, true]);
	const lr = p.scaleOf([0.001, 0.1, 0.01], o);
	assert.ok(lr.log && Math.abs(lr.at(0.01) - 0.5) < 1e-9 && lr.at(5) === lr.at(0.1) && lr.at(0) === lr.at(0.001));
	const goal = p.scaleOf([0.9, 0.901, 0.93, NaN], { ...o, flip: true, missing: true });
	assert.ok(!goal.discrete && goal.at(0.9) > goal.at(0.93) && goal.at(NaN) < goal.at(0.93)
		&& goal.at(null) === goal.at(Infinity));
	assert.equal(goal.ticks[0].text, '–');
	const even = p.scaleOf([0.88, 0.931, 0.932], o).ticks.map((k) => k.text);
	assert.ok(even.includes('0.90') && even.every((s) => s.length === 4), `the same number of decimals: ${even}`);
	assert.equal(p.scaleOf([3, 3], o).at(3), 0.5);
	assert.deepEqual(p.scaleOf([], o).ticks, []);
	const wide = p.scaleOf([-1.7e308, 1.7e308], o);
	assert.ok(wide.at(0) === 0.5 && wide.at(1.7e308) > 0.9);
	assert.ok(p.scaleOf(Array.from({ length: 500 }, (_, i) => 'w' + i), o).ticks.length <= 14);
	assert.ok(!p.scaleOf([0.001, 0.1, 0.01], { ...o, log: false }).log);
	assert.ok(!p.scaleOf([0, 1, 100], { ...o, log: true }).log);
	const skew = p.scaleOf(Array.from({ length: 101 }, (_, i) => Math.exp(i / 4)), { ...o, quantile: true });
	const share = (at) => Math.round(1e6 * (at - 0.04) / 0.92) / 1e6;
	assert.deepEqual([25, 50, 75].map((i) => share(skew.at(Math.exp(i / 4)))), [0.25, 0.5, 0.75]);
	assert.ok(skew.quantile && !skew.log);
	assert.deepEqual(skew.ticks.map((k) => share(k.at)), [0, 0.25, 0.5, 0.75, 1]);
	const ties = p.scaleOf([1, 1, 1, 2], { ...o, quantile: true });
	assert.deepEqual([share(ties.at(1)), share(ties.at(2))], [0.333333, 1], 'equal ones in the middle of theirs');
});

test('groups of runs by params and tags; non-finite values are excluded from their statistics', () => {
	const list = [run('a', { params: { lr: '1', seed: '0' } }), run('b', { params: { lr: '1', seed: '1' } }),
		run('c', { params: { lr: '10', seed: '0' }, tags: { team: 'x' } }), run('d', { params: {
			seed: '1' } })];
	const tags = (r) => r.tags;
	assert.deepEqual(p.groupRuns(list, ['lr'], tags).map((g) => [g.name, g.runs.map((r) => r.id).join('')]),
		[['lr 1', 'ab'], ['lr 10', 'c'], ['lr –', 'd']].sort((x, y) => p.natural(x[0], y[0])));
	assert.deepEqual(p.groupRuns(list.map((r, i) => ({ ...r, experiment: 'ab'[i % 2] })), ['e:experiment'], tags)
		.map((g) => g.name), ['experiment a', 'experiment b']);
	assert.deepEqual(p.groupRuns(list, ['t:team'], tags).map((g) => g.name), ['team x', 'team –']
		.sort(p.natural));
	assert.deepEqual(p.allButSeed(p.splitParams(list)), ['lr']);
	assert.deepEqual(p.allButSeed(p.splitParams(list.slice(0, 2))), ['lr'], 'only the seed differs: one group');
	assert.deepEqual(p.allButSeed(p.splitParams([list[0]])), []);
	const t = p.together([1, NaN, 2, undefined, Infinity, 4]);
	assert.ok(t.n === 3 && Math.abs(t.mean - 7 / 3) < 1e-12 && Math.abs(t.std - Math.sqrt(7 / 3)) < 1e-12);
	assert.ok(p.together([]).n === 0 && Number.isNaN(p.together([]).mean) && Number.isNaN(p.together([3]).std));
});

test('the shortest edit between two texts, checked by applying it', () => {
	let seed = 7;
	const next = (n) => (seed = (seed * 16807) % 2147483647) % n;
	for (let i = 0; i < 300; i++) {
		const list = () => Array.from({ length: next(14) }, () => 'abc'[next(3)]);
		const [a, b] = [list(), list()];
		const edits = p.diff(a, b);
		const of = (not) => edits.filter((e) => e.kind !== not).map((e) => e.text);
		assert.deepEqual(of('added'), a);
		assert.deepEqual(of('removed'), b);
		const table = a.reduce((row, x) => b.reduce((out, y, k) =>
			[...out, x === y ? row[k] + 1 : Math.max(row[k + 1], out[k])], [0]), b.map(() => 0).concat(0));
		assert.equal(edits.filter((e) => e.kind === 'same').length, table[b.length], `${a} ${b}`);
	}
	assert.deepEqual(p.around(p.diff([...'abcdefg'], [...'abcxefg']), 1).map((e) => e && e.text),
		[null, 'c', 'd', 'x', 'e', null]);
	assert.deepEqual(p.around(p.diff(['a'], ['a']), 2), []);
	const [long, other] = ['x', 'y'].map((w) => Array.from({ length: 5000 }, (_, i) => w + i));
	assert.equal(p.diff(long, other).length, 10000, 'too different: replaced as a whole');
});

test('terminal lines keep colours and drop other sequences', () => {
	assert.deepEqual(p.piecesOf('a\x1b[1;31mred\x1b[0m\x1b[2K b\x1b]0;title\x07\r'), [
		{ text: 'a', colour: null, bold: false }, { text: 'red', colour: 1, bold: true },
		{ text: ' b', colour: null, bold: false }]);
	assert.deepEqual(p.piecesOf('\x1b[38;5;200mx\x1b[92my\x1b[39mz').map((c) => c.colour), [null, 10, null]);
	assert.deepEqual(p.piecesOf('plain <b>'), [{ text: 'plain <b>', colour: null, bold: false }]);
});

test('side by side: which names differ; packages and diffs are parsed', () => {
	const file = (bytes, sha256) => ({ bytes, sha256 });
	assert.deepEqual(p.fileRows([{ same: file(3, 'ab'), told: file(3, 'ab'), unknown: file(3, null) },
		{ same: file(3, 'ab'), told: file(3, 'cd'), unknown: file(3, 'ab'), own: file(1, null) }])
		.map((r) => [r.name, r.differs]), [['own', true], ['same', false], ['told', true], ['unknown', false]]);
	assert.deepEqual(p.sideRows([{ a: '1', b: '2' }, { a: '1', c: '3' }]).map((r) => [r.name, r.differs]),
		[['a', false], ['b', true], ['c', true]]);
	assert.deepEqual(p.packagesOf('numpy==2.1\ntorch @ file:///x\n\nodd line here'),
		{ numpy: '2.1', torch: 'file:///x', odd: 'line here' });
	const diff = 'diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n+more\n';
	assert.deepEqual(p.diffSize(diff), { added: 2, removed: 1, files: 1 });
	assert.ok(!p.changeLines(diff).some((l) => /index|@@/.test(l)));
});

test('statistics of a network\'s layers are neither the goal nor the first charts', () => {
	const inner = ['dead_units/bn1.relu', 'grad_norm/fc.bias', 'phase/step', 'update_ratio/fc.bias'];
	assert.equal(p.defaultCurve([...inner, 'train/grad_norm', 'train/loss', 'train/lr'], 'train/loss'),
		'train/grad_norm');
	assert.equal(p.defaultCurve([...inner, 'train/loss'], 'train/loss'), null);
	assert.equal(p.defaultGoal(new Map(inner.map((k) => [k, 1])), 1), null);
});

test('curves by rank: highest and lowest of many, non-finite values, values at the cursor', () => {
	const series = (rank, values, badX = null) => ({ rank, mean: values, weight: values.map(() => 1), badX });
	const say = (list) => p.ranksSaid(list, String);
	assert.equal(say([series(0, [1, 3])]), '1 rank. Mean: 2.');
	assert.equal(say([series(0, [2]), series(1, [2])]), '2 ranks. Every mean: 2.');
	assert.equal(say([series(0, [1]), series(1, [4, 2]), series(2, [], 7), series(3, [1])]),
		'4 ranks. Highest mean: rank 1, 3; lowest: rank 3, 1. Not finite: rank 2 from 7.');
	const lost = Array.from({ length: 9 }, (_, i) => series(i, [], i));
	assert.match(say(lost), /^9 ranks\. .*rank 5 from 5 and 3 more\.$/);
	const many = Array.from({ length: 40 }, (_, i) => series(i, [(i * 7) % 40]));
	const means = p.drawnRanks(many).map((t) => t.mean[0]).sort((a, b) => a - b);
	assert.deepEqual(means, [0, 1, 2, 3, ...Array.from({ length: 12 }, (_, i) => 28 + i)]);
	assert.equal(p.ranksAt([['a', NaN], ['b', 1], ['c', null], ['d', Infinity]], String), 'd Infinity, b 1, a NaN');
	assert.equal(p.ranksAt(Array.from({ length: 8 }, (_, i) => ['r' + i, i]), String),
		'r7 7, r6 6, r5 5, r4 4, …, r0 0');
});

test('rank correlation against enumerated ranks; rates of false positives and false negatives', () => {
	let seed = 11;
	const next = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
	const rank = (x, v) => x.filter((u) => u < v).length + (x.filter((u) => u === v).length + 1) / 2;
	const mean = (x) => x.reduce((a, v) => a + v, 0) / x.length;
	const pearson = (x, y) => {
		const [mx, my] = [mean(x), mean(y)];
		const sum = (f) => x.reduce((a, _, i) => a + f(i), 0);
		return sum((i) => (x[i] - mx) * (y[i] - my))
			/ Math.sqrt(sum((i) => (x[i] - mx) ** 2) * sum((i) => (y[i] - my) ** 2));
	};
	let [noise, missed, held] = [0, 0, 0];
	for (let draw = 0; draw < 400; draw++) {
		const x = Array.from({ length: 14 }, () => Math.floor(next() * 5));
		const y = x.map(next);
		const f = p.relationOf(x, y);
		assert.ok(Math.abs(f.r - pearson(x.map((v) => rank(x, v)), y.map((v) => rank(y, v)))) < 1e-12);
		noise += f.sure;
		missed += !p.relationOf(x, x.map((v, i) => v + y[i] * 2)).sure;
		held += p.relationOf(x, y).low <= 0 && p.relationOf(x, y).high >= 0;
	}
	assert.ok(noise <= 400 * 0.08 && held === 400 - noise, `${noise} of 400 draws of noise`);
	assert.ok(missed <= 40, `${missed} of 400 relations`);
	const [a, b] = [p.relationOf([1, 2, 3, 4, 9], [9, 7, 5, 3, 1]), p.relationOf([1, 2, 3, 4], [1, 2, 3, 4])];
	assert.ok(a.r === -1 && a.sure && a.low === -1 && a.high < 0, JSON.stringify(a));
	assert.ok(b.r === 1 && !b.sure, 'four values are in order by chance once in twelve');
	assert.ok(!p.relationOf([1, 2, 3, 4, 9], [9, 7, 5, 3, 1], 40).sure, 'one relation among many tests');
	assert.equal(p.relationWords('lr', 'loss', a),
		'Higher lr goes with lower loss: rank correlation −1 (95 % interval −1 to −0.16).');
	const says = (x, y) => p.relationWords('x', 'y', p.relationOf(x, y));
	assert.match(says([1, 1, 1, 1], [1, 2, 3, 4]), /^Cannot tell .*: one of them is the same in all runs\.$/);
	assert.match(says([1, 2, NaN, 4], [1, 2, 3, 4]), /^Cannot tell .*: too few runs with both \(3\)\.$/);
	assert.match(says([1, 2, 3, 4], [1, 2, 3, 4]), /^Cannot tell .*: rank correlation 1 \(95 % interval /);
});

test('the Pareto front of two numbers', () => {
	const pairs = [{ x: 1, y: 1 }, { x: 2, y: 3 }, { x: 2, y: 2 }, { x: 3, y: 2.5 }, { x: NaN, y: 9 }, { x: 4,
		y: 4 }];
	assert.deepEqual(p.paretoFront(pairs, 'min', 'max'), [0, 1, 5]);
	assert.deepEqual(p.paretoFront(pairs, 'min', 'min'), [0]);
	assert.deepEqual(p.paretoFront([], 'min', 'min'), []);
});

test('next to the best run: what differs, and whether seeds differ as much', () => {
	const of = (id, lr, seed, v) => run(id, { params: { lr, seed, wd: '1' }, metrics: { acc: metric({
		max: v }) } });
	const list = [of('a', '1', '0', 0.9), of('b', '1', '1', 0.91), of('c', '2', '0', 0.905), of('d', '3', '0',
		0.5)];
	const found = p.neighbours(list[1], list, { key: 'acc', dir: 'max' }, ['lr', 'seed', 'wd']);
	assert.deepEqual(found.map((n) => n.run.id), ['c', 'd']);
	assert.match(found[0].text, /^lr differs, −0\.5 points; spread over seeds 0\.71 points: not significant$/);
	assert.match(found[1].text, /: significant$/);
});

test('params that follow from others do not count as changes of their own', () => {
	assert.deepEqual(p.chosenParams(['global_batch_size', 'lr', 'nproc_per_node', 'run_name', 'shard_degree',
		'steps_per_epoch', 'threads', 'world_size']), ['lr', 'world_size']);
	assert.deepEqual(p.chosenParams(['threads']), ['threads']);
	const run1 = { lr: '1', shard_degree: '1', world_size: '1', resume: 'auto' };
	const two = p.splitParams([run('a', { params: run1 }),
		run('b', { params: { lr: '2', shard_degree: '2', world_size: '2' } })]);
	assert.deepEqual(p.tellingParams(two, 8), ['world_size', 'lr']);
	assert.deepEqual(p.chosenParams(['lr', 'resume', 'steps_per_epoch', 'global_batch_size']),
		['lr', 'global_batch_size']);
});

test('importance: an interval of shares is within 0 and 1', () => {
	const x = Array.from({ length: 14 }, (_, i) => String(i));
	const params = { x, seed: x.map((v) => String((v * 5) % 3)) };
	const work = p.importanceOf(params, x.map((v) => 2 ** v), { models: 12, trees: 12 });
	let got = work.next();
	while (!got.done) got = work.next();
	for (const f of got.value) assert.ok(f.low >= 0 && f.high <= 1, JSON.stringify(f));
});

test('importance: a param that matters is reported, one that does not is not; repeatable', () => {
	let seed = 3;
	const next = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
	const column = () => Array.from({ length: 120 }, () => String(next()));
	const params = { strong: column(), word: column().map((v) => 'abc'[Math.floor(v * 3)]), noise: column() };
	const y = params.strong.map((v, i) => 3 * v + (params.word[i] === 'b' ? 1 : 0));
	const all = () => {
		const work = p.importanceOf(params, y, { models: 12, trees: 12 });
		for (;;) {
			const got = work.next();
			if (got.done) return got.value;
		}
	};
	const found = all();
	assert.deepEqual(found.map((f) => [f.name, f.sure]), [['strong', true], ['word', true], ['noise', false]]);
	assert.ok(found[0].low <= found[0].share && found[0].share <= found[0].high);
	assert.deepEqual(all(), found);
	assert.deepEqual(p.importanceOf({ a: ['1'] }, [1]).next(), { done: true, value: [] });
});

test('importance: a non-monotonic param and one that acts by interaction only match their Sobol indices', () => {
	let seed = 11;
	const next = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
	const drawn = () => Array.from({ length: 200 }, () => String(next()));
	const params = Object.fromEntries([...'abcdef'].map((k) => [k, drawn()]));
	const angle = (k, i) => Math.PI * (2 * Number(params[k][i]) - 1);
	const y = params.a.map((_, i) => Math.sin(angle('a', i)) * (1 + 0.1 * angle('c', i) ** 4)
		+ 7 * Math.sin(angle('b', i)) ** 2); // Ishigami and Homma, 1990
	const work = p.importanceOf(params, y, { models: 6, trees: 6 });
	let got = work.next();
	while (!got.done) got = work.next();
	const known = { a: 0.5576, b: 0.4424, c: 0.2437, d: 0, e: 0, f: 0 };
	for (const f of got.value) {
		assert.equal(f.sure, known[f.name] > 0, f.name);
		assert.ok(Math.abs(f.share - known[f.name]) < 0.1, `${f.name}: ${f.share}`);
	}
});

test('the address holds groups, axes and points', () => {
	const q = '?e=a&by=lr&by=t:team&band=se&median&ax=p:lr&ax=m:best:acc&sc=p:lr&sc=&sc=p:wd&scl=x&front&imp';
	assert.equal(p.viewQuery(p.parseView(q)), q);
	assert.equal(p.parseView('?e=a&side&o=12.34').page, 'side');
	assert.equal(p.viewQuery(p.parseView('?e=a&side')), '?e=a&side');
	assert.equal(p.parseView('?sc=p:lr&scl=zz').scatter.log, '');
});

test('panels: names, patterns, one metric over another', () => {
	const keys = ['a,b', 'lr', 'train/loss', 'val/loss'];
	const of = (metrics) => p.panelMetrics({ metrics, x: '' }, keys).keys;
	assert.deepEqual(of('train/loss,gone,lr'), ['train/loss', 'lr']);
	assert.deepEqual(of('/LOSS$/'), ['train/loss', 'val/loss']);
	assert.deepEqual(of('/(/'), []);
	assert.equal(p.patternOf('/(/'), '');
	const many = p.panelMetrics({ metrics: '/k/', x: '' }, Array.from({ length: 30 }, (_, i) => 'k' + i));
	assert.deepEqual([many.keys.length, many.more], [12, 18]);
	const series = (xs, ys) => ({ xs, ys, badX: null, badToEnd: false });
	assert.deepEqual(p.over(series([1, 2, 3], [30, 20, 10]), series([1, 2, 3], [1, NaN, 3])), { xs: [10, 30],
		ys: [3, 1] });
	const q = '?pn=train/loss,val/loss&pn=/acc/~lr';
	assert.deepEqual(p.parseView(q).panels, [{ metrics: 'train/loss,val/loss', x: '' }, { metrics: '/acc/',
		x: 'lr' }]);
	assert.equal(p.viewQuery(p.parseView(q)), q);
});

test('a formula over a run: the grammar of the server, missing values, errors', () => {
	const m = { 'train/loss': metric({ first: 4, last: 0.5, min: 0.25, max: 8 }), 'a, (b)': metric({ last: 3 }) };
	const r = run('r', { params: { lr: '0.1', batch: '32', model: 'mlp', 'odd name': '7' }, metrics: m });
	const of = (text) => p.cell(r, 'f:' + text, () => 'min');
	const right = [['params.lr * params.batch', 3.2], ['params.lr*params.batch', 3.2], ['2 ^ 3 ^ 2', 512],
		['-2 ^ 2', -4], ['2 ^ -1', 0.5], ['train/loss.max - train/loss', 7.5],
		['train/loss.min / train/loss.first', 0.0625], ['"a, (b)" * 2 + 1', 7], ['"a, (b)".last', 3],
		['params."odd name" - 1e0', 6], ['sqrt(abs(-16)) + .5', 4.5],
		['max(1, log(0)) - min(2, log(-1))', -1], ['log2(8) * (1 + log10(100))', 9]];
	for (const [text, v] of right) assert.ok(Math.abs(of(text) - v) < 1e-12, `${text}: ${of(text)}`);
	assert.ok(Number.isNaN(of('params.model + 1')));
	for (const missing of ['params.nothing', 'val/loss + 1', 'a +']) assert.equal(of(missing), undefined, missing);
	const wrong = { '': /^The formula is incomplete: expected a name or a number at character 1$/,
		'a +': /^The formula is incomplete: expected a name or a number at character 4$/,
		'a b': /^Expected an operator at character 3$/, '(a': /^Expected \)/, 'sin(a)': /^Unknown function/,
		'min(a)': /^Expected a comma/, '"a': /not closed/, '""': /name is empty/,
		'a + *': /^Expected a name or/,
		['('.repeat(300) + 'a']: /^Too deep/ };
	for (const [text, why] of Object.entries(wrong)) assert.match(p.formulaOf(text), why, text);
	assert.deepEqual(p.metricsOfColumn('f:train/loss.max - params.lr * val/loss'), ['train/loss', 'val/loss']);
	const list = [run('a', { params: { lr: '3' } }), run('b', { params: { lr: '10' } }), run('c')];
	assert.deepEqual(p.orderRuns(list, null, 'f:params.lr * 2', true).map((o) => o.id), ['b', 'a', 'c']);
	const q = '?c=p:lr&c=f:params.lr+*+2&pv=p:lr&pv=p:wd&pv=';
	assert.deepEqual(p.parseView(q).columns, ['p:lr', 'f:params.lr * 2']);
	assert.deepEqual(p.parseView(p.viewQuery(p.parseView(q))), p.parseView(q));
});

test('a pivot: repeats combined, failed runs counted, empty cells, too many values', () => {
	const one = (lr, wd, v) => run(`${lr}${wd}${v}`, { params: { lr, ...wd && { wd } }, v });
	const runs = [one('0.1', '1', 2), one('0.1', '1', 4), one('0.1', '1', null), one('10', '1', 5),
		one('9', '', 7)];
	const fields = { row: (r) => r.params.lr, column: (r) => r.params.wd, value: (r) => r.v };
	const t = p.pivotOf(runs, fields);
	assert.deepEqual([t.rows, t.columns, t.left], [['0.1', '9', '10'], ['1', '–'], 0]);
	const said = (c) => c && [c.n, c.mean, c.runs.length];
	assert.deepEqual(t.cells.map((l) => l.map(said)), [[[2, 3, 3], null], [null, [1, 7, 1]], [[1, 5, 1], null]]);
	assert.equal(t.cells[0][0].std, Math.SQRT2);
	assert.ok(Number.isNaN(t.cells[2][0].std));
	const many = p.pivotOf(Array.from({ length: 100 }, (_, i) => one(String(i), '1', i)), fields);
	assert.deepEqual([many.rows.length, many.left], [60, 40]);
});

test('the progress of a run, from its params and its pace', () => {
	const at = (params, o = {}) => p.progressOf(run('r', { params, status: 'running', start_time: 1000,
		end_time: null, last_step: 25, ...o }), 61000);
	assert.deepEqual(at({ max_steps: '100' }), { share: 0.25, left: 180000 });
	assert.deepEqual(at({ epochs: '5', steps_per_epoch: '10' }), { share: 0.5, left: 60000 });
	assert.deepEqual(at({ max_steps: '20' }), { share: 1, left: 0 });
	assert.deepEqual(at({ max_steps: '50' }, { status: 'failed', end_time: 2000 }), { share: 0.5, left: null });
	assert.deepEqual(at({ max_steps: '50' }, { last_step: 0 }), { share: 0, left: null });
	for (const none of [{}, { max_steps: 'many' }, { epochs: '5' }]) assert.equal(at(none), null);
	assert.equal(at({ max_steps: '50' }, { last_step: null }), null);
});

test('experiments as a tree by their slashes', () => {
	const e = (name, last_time, run_count = 1, running_count = 0) =>
		({ id: name, name, last_time, run_count, running_count, failed_count: 0 });
	const list = [e('vision/a', 5, 2, 1), e('vision/b', 3), e('text', 9), e('text/small', 1), e('deep/er/one', 2)];
	const lines = (folded = []) => p.treeOf(list, new Set(folded))
		.map((b) => [b.depth, b.name, b.experiment !== null, b.below, b.runs, b.running].join());
	assert.deepEqual(lines(), ['0,text,true,1,2,0', '1,small,true,0,1,0', '0,vision,false,2,3,1', '1,a,true,0,2,1',
		'1,b,true,0,1,0', '0,deep/er/one,true,0,1,0']);
	assert.deepEqual(lines(['vision', 'text']), ['0,text,true,1,2,0', '0,vision,false,2,3,1',
		'0,deep/er/one,true,0,1,0']);
	const many = Array.from({ length: 2000 }, (_, i) => e(`team${i % 40}/try${i}`, i));
	assert.equal(p.treeOf(many, new Set()).length, 2040);
});

test('a table as Markdown and LaTeX: texts are escaped', () => {
	const cell = (text, best = false) => ({ text, best });
	const t = { head: ['run', 'top1 best'], numbers: [false, true],
		rows: [[cell('a|b_1'), cell('0.93', true)], [cell('50% & <x>'), cell('−1.5 ± 0.2')]] };
	assert.equal(p.markdownTable(t), '| run | top1 best |\n| :--- | ---: |\n| a\\|b\\_1 | **0.93** |\n'
		+ '| 50% & \\<x> | −1.5 ± 0.2 |\n');
	assert.equal(p.latexTable(t), '\\begin{tabular}{lr}\n  \\toprule\n  run & top1 best \\\\\n'
		+ '  \\midrule\n'
		+ '  a|b\\_1 & \\textbf{0.93} \\\\\n  50\\% \\& $<$x$>$ & $-$1.5 $\\pm$ 0.2 \\\\\n'
		+ '  \\bottomrule\n'
		+ '\\end{tabular}\n');
});

test('SVG equals what is drawn on a canvas: clips and translations end at the same point', () => {
	const g = new p.SvgCanvas((text) => ({ width: text.length * 6 }));
	g.save();
	g.translate(0, 24);
	g.beginPath();
	g.rect(1, 2, 30, 40);
	g.clip();
	g.strokeStyle = '#d55e00';
	g.setLineDash([7, 3]);
	g.beginPath();
	g.lineTo(1, 2);
	g.lineTo(3.14159, -4);
	g.stroke();
	g.restore();
	g.fillText('a < "b" & c', 5, 6);
	assert.equal(g.parts.join(''), '<g transform="translate(0 24)"><clipPath id="clip1"><path d="M1 2h30v40h-30z"/>'
		+ '</clipPath><g clip-path="url(#clip1)"><path d="M1 2L3.14 -4" fill="none" stroke="#d55e00"'
		+ ' stroke-width="1" stroke-linejoin="round" stroke-dasharray="7 3"/></g></g><text x="5" y="6"'
		+ ' dominant-baseline="central" fill="#000">a &lt; &quot;b&quot; &amp; c</text>');
	assert.equal(g.measureText('four').width, 24);
});

test('y limits set by the reader; what lies outside is reported', () => {
	const lines = [line('a', [0.5, 1, 4])];
	const r = p.fitRange(lines, fit(0, 2, { limits: [0, 2] }));
	assert.deepEqual([r.lo, r.hi], [0, 2]);
	assert.deepEqual(r.outside.map((o) => [o.id, o.y, o.side]), [['a', 4, 'top']]);
	assert.equal(p.fitRange(lines, fit(0, 2, { limits: [null, 2] })).hi, 2);
	assert.deepEqual(p.fitRange(lines, fit(0, 2, { limits: [3, 1] })), p.fitRange(lines, fit(0, 2)), 'no axis');
	assert.ok(p.fitRange(lines, fit(0, 2, { log: true, limits: [0, 9] })).lo > 0, 'a log axis has no zero');
});

test('the address of a saved view, of an experiment alone, of axis limits', () => {
	assert.equal(p.savedAlone('?v=12'), '12');
	for (const q of ['?v=12&e=a', '?e=a', '', '?v=0', '?v=x']) assert.equal(p.savedAlone(q), null, q);
	assert.ok(p.isBare(p.parseView('?e=a')) && p.isBare(p.parseView('')));
	for (const q of ['?e=a&log', '?e=a&v=0', '?e=a&r=0123', '?all']) assert.ok(!p.isBare(p.parseView(q)), q);
	const q = '?e=a&y=0~~train/loss&y=-1.5~1e-9~panel+a,b~c&v=3';
	assert.deepEqual(p.parseView(q).limits, { 'train/loss': [0, null], 'panel a,b~c': [-1.5, 1e-9] });
	assert.deepEqual(p.parseView(p.viewQuery(p.parseView(q))), p.parseView(q));
});

test('the text of a report: parts, frozen panels, a body edited without the data', () => {
	const text = '# a\n\n```panel\nmetrics: x, y\nruns: 0123abcd\nscale: log\ncolour: red\n```\n'
		+ 'b\n```c\nd\n```\n```panel\n';
	const { parts } = p.readReport(text);
	assert.deepEqual(parts.map((x) => Object.keys(x)[0]), ['text', 'panel', 'text']);
	const { panel } = parts[1];
	assert.deepEqual([panel.metrics, panel.runs, panel.log, panel.x, panel.wrong],
		[['x', 'y'], ['0123abcd'], true, 'step', ['colour: red']]);
	assert.match(parts[2].text, /```c\nd\n```\n```panel/, 'other blocks, and one without an end, are text');
	const look = { x: 'clock', logX: true, range: [2.5, 90], log: true, limits: [null, 3], group: ['lr', 't:team'],
		band: 'se', line: 'median', full: true, smooth: 0.6 };
	const block = p.panelBlock({ metrics: 'loss', ...look });
	const again = p.readReport(block).parts[0].panel;
	assert.deepEqual([again.wrong, { ...again, ...look }], [[], again], block);
	assert.deepEqual(p.readReport('```panel\nrange: 3 1\nlimits: 1\n```').parts[0].panel.wrong,
		['range: 3 1', 'limits: 1']);
	const kept = p.withFrozen(text, 1, '{"a":1}');
	assert.equal(p.readReport(kept).parts[1].panel.frozen, 1);
	assert.equal(p.readReport(kept).data.get(1), '{"a":1}');
	const body = p.bodyOf(kept);
	assert.ok(!body.includes('{"a":1}') && body.includes('frozen: 1'));
	assert.equal(p.withBody(kept, body), kept);
	const live = p.withFrozen(kept, 1, null);
	assert.equal(p.readReport(live).data.size, 0, 'data that no panel shows is dropped');
	assert.equal(p.readReport(p.withBody(kept, 'no panel')).data.size, 0);
	assert.equal(p.parseView('?e=a&report=3&edition=2').edition, 2);
	assert.equal(p.viewQuery(p.parseView('?e=a&report=3&edition=2&log')), '?e=a&report=3&edition=2');
});

test('figures of Plotly: lists, bytes in base64, names, dates, bins, heat maps, what is left out', () => {
	const bytes = Buffer.from(new Float64Array([1.5, 2.5]).buffer).toString('base64');
	const f = p.figureOf(JSON.stringify({ data: [
		{ y: { dtype: 'f8', bdata: bytes }, mode: 'lines+markers', line: { color: '#ff0000' } },
		{ type: 'bar', x: ['a', 'b'], y: [3, 4] }, { type: 'pie' },
	], layout: { title: { text: '<b>T</b>' }, xaxis: { title: { text: 'X' } } } }));
	assert.deepEqual(f.traces[0].ys, [1.5, 2.5]);
	assert.deepEqual([f.traces[0].mark, f.traces[0].dots, f.traces[0].colour], ['line', true, '#ff0000']);
	assert.deepEqual([f.names.x, f.traces[1].xs, f.left, f.title, f.x], [['a', 'b'], [0, 1], ['pie'], 'T', 'X']);
	const x = Array.from({ length: 900 }, (_, i) => i);
	const many = p.figureOf(JSON.stringify({ data: [{ type: 'histogram', x }] }));
	assert.equal(many.traces[0].ys.reduce((a, n) => a + n, 0), 900);
	const heat = p.figureOf('{"data":[{"type":"heatmap","z":[[1,2],[3,4]],"y":["u","v"]}]}');
	assert.deepEqual([heat.traces[0].cells, heat.names.y], [[[1, 2], [3, 4]], ['u', 'v']]);
	assert.ok(p.figureOf('{"data":[{"x":["2026-01-02","2026-01-03"],"y":[1,null]}]}').dates);
	for (const text of ['{"data":1}', '{"data":[', 'words', '{"data":[3]}', '[]', '{}'])
		assert.equal(p.figureOf(text), null);
});

test('CSV: a text that a spreadsheet would evaluate gets a quote, a number none (OWASP, mlflow#7169)', () => {
	const given = ['=1+1', '@SUM(1)', '-2+3', '\t=1', '=a,"b"', '-', '-1', '+2.5', '-1e-7', '-Infinity', 'a=1', ''];
	const want = ["'=1+1", "'@SUM(1)", "'-2+3", "'\t=1", '"\'=a,""b"""', "'-", ...given.slice(6)];
	assert.deepEqual(given.map(p.csvCell), want);
});

test('two edits of one text: both where they touch no line of each other, else none', () => {
	let seed = 1;
	const draw = (n) => (seed = seed * 48271 % 2147483647) % n;
	for (let round = 0; round < 2000; round++) {
		const lines = Array.from({ length: 6 }, (_, i) => `${i}`); // all differ
		const edit = (author) => {
			const at = draw(6);
			const many = draw(3);
			return { at, many, lines: Array.from({ length: draw(3) }, (_, i) => `${author}${i}`) };
		};
		const [a, b] = [edit('a'), edit('b')];
		const with1 = (e) => lines.toSpliced(e.at, e.many, ...e.lines).join('\n');
		const [first, second] = a.at <= b.at ? [a, b] : [b, a];
		const got = p.merged(lines.join('\n'), with1(a), with1(b));
		if (first.at + first.many < second.at) {
			const both = lines.toSpliced(second.at, second.many, ...second.lines)
				.toSpliced(first.at, first.many, ...first.lines);
			assert.equal(got, both.join('\n'));
		} else if (got !== null) {
			for (const e of [a, b]) assert.ok(e.lines.every((line) => got.split('\n').includes(line)), got);
		}
	}
});
