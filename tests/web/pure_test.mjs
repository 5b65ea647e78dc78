// The parts of the page that need no browser: formatting, goal, order, colours, M4 geometry, the address.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { buckets, load } from './devserver.mjs';

const p = await import(pathToFileURL(path.join(process.env.builddir ?? 'build', 'web/ui/pure.mjs')).href);

const metric = (o) => ({ count: 1, first: 0, last: 0, min: 0, max: 0, first_step: 0, last_step: 0, min_step: 0, max_step: 0, ...o });
const run = (id, o = {}) => ({ id, name: id, experiment: 'e', status: 'finished', start_time: Number(o.n ?? 0), end_time: 1,
	params: {}, tags: {}, metrics: {}, notes: '', alerts: [], ...o });
const twelve = load().map((r) => ({ ...r, run: { ...r.run, metrics: Object.fromEntries(Object.entries(r.run.metrics)
	.map(([k, m]) => [k, { ...m, last: Number(m.last), max: Number(m.max), min: Number(m.min) }])) } }));

test('one precision per column', () => {
	assert.equal(p.decimalsFor([0.932, 0.9301, 0.884]), 3);
	assert.equal(p.decimalsFor([48, 8.626, 2.7]), 1);
	assert.equal(p.decimalsFor([90.08, 90.31]), 2);
	assert.equal(p.decimalsFor([1, 2, 128]), 0);
	assert.equal(p.decimalsFor([1e-5, 2e-5]), null);
	assert.equal(p.decimalsFor([NaN]), 0);
	assert.equal(p.fixed(NaN, 3), 'NaN');
	assert.equal(p.fixed(-0.00001, 3), '0.000');
	assert.equal(p.fixed(-1.25, 1), '−1.3');
	assert.equal(p.signed(0.4, 1), '+0.4');
	assert.equal(p.short(4.85), '4.85');
	assert.equal(p.short(1e-5), '1e-5');
	assert.equal(p.short(123456), '123500');
});

test('text orders naturally', () => {
	assert.deepEqual(['ddp10', 'ddp2', 'ddp1'].sort(p.natural), ['ddp1', 'ddp2', 'ddp10']);
	assert.deepEqual(['0.1', '0.05', '1e-3'].sort(p.natural), ['1e-3', '0.05', '0.1']);
});

test('the goal is an accuracy where there is one, else a held-out loss, else any loss', () => {
	const of = (...keys) => p.defaultGoal([run('a', { metrics: Object.fromEntries(keys.map((k) => [k, metric()])) })]);
	assert.deepEqual(of('train/loss', 'epoch/val_loss', 'epoch/top1', 'epoch/top5'), { key: 'epoch/top1', dir: 'max' });
	assert.deepEqual(of('train/loss', 'epoch/val_loss'), { key: 'epoch/val_loss', dir: 'min' });
	assert.deepEqual(of('train/loss', 'train/lr'), { key: 'train/loss', dir: 'min' });
	assert.deepEqual(of('accuracy', 'loss'), { key: 'accuracy', dir: 'max' });
	assert.equal(of('phase/step'), null);
	assert.equal(of(), null);
	assert.equal(p.directionOf('val/perplexity'), 'min');
	assert.equal(p.directionOf('epoch/samples_per_s'), 'max');
});

test('rows: best first, runs that fell out below, missing last', () => {
	const runs = twelve.map((r) => r.run);
	const goal = p.defaultGoal(runs);
	assert.deepEqual(goal, { key: 'epoch/top1', dir: 'max' });
	const rows = p.orderRuns(runs, goal, null, false);
	assert.equal(rows[0].name, 'resnet-base');
	assert.equal(p.bestRun(runs, goal).name, 'resnet-base');
	assert.equal(p.partition(rows, null), 10);
	assert.deepEqual(rows.slice(10).map((r) => r.name), ['resnet-ddp2', 'cnn-ddp4-lr0.8']);
	for (const desc of [false, true]) {
		const lacks = run('z', { params: {} });
		const sorted = p.orderRuns([lacks, run('a', { params: { lr: '0.1' } }), run('b', { params: { lr: '1e-3' } })], null, 'p:lr', desc);
		assert.equal(sorted[2].id, 'z');
		assert.equal(sorted[0].id, desc ? 'a' : 'b');
	}
});

test('params are split into those that differ and those that are the same in all', () => {
	const s = p.splitParams([run('a', { params: { model: 'm', lr: '1', host: 'x' } }), run('b', { params: { model: 'm', lr: '2', host: 'y' } })]);
	assert.deepEqual(s.same, [['model', 'm']]);
	assert.deepEqual(s.differ, ['lr', 'host']);
	assert.deepEqual(p.tellingParams(s, 8), ['lr']);
});

test('no two of the twelve look alike, nor of 60 runs that differ in their seed alone', () => {
	const seeds = Array.from({ length: 60 }, (_, i) => run('r' + i, { n: i, params: { model: 'a', seed: String(i) } }));
	const alone = Array.from({ length: 40 }, (_, i) => run('r' + i, { n: i }));
	for (const list of [twelve.map((r) => r.run), seeds, alone]) {
		const looks = p.assignLooks(list).byRun;
		for (const a of list)
			for (const b of list)
				if (a.id < b.id) assert.ok(p.differ(looks.get(a.id), looks.get(b.id)), `${a.name} and ${b.name}`);
	}
});

test('a new run changes no colour', () => {
	const list = twelve.map((r) => r.run);
	const before = p.assignLooks(list).byRun;
	const after = p.assignLooks([...list, run('new', { start_time: 4e12, params: { ...list[3].params, seed: '9' } })]).byRun;
	for (const r of list) assert.deepEqual(after.get(r.id), before.get(r.id));
});

test('M4: the drawn line holds every extreme, whatever the number of buckets', () => {
	const spike = twelve.find((r) => r.run.name === 'cnn-base-s3').series['train/loss'];
	for (const n of [1, 7, 50, 333, 1200]) {
		const s = p.seriesOf('r', 'k', -1, buckets(spike, (q) => q.s, 0, 599, n));
		assert.deepEqual(p.extent(s).hi, 4.85, `${n} buckets`);
		assert.equal(s.xs[s.ys.indexOf(4.85)], 337);
		assert.equal(p.extent(s).lo, Math.min(...spike.map((q) => q.v)));
		assert.ok(s.xs.every((x, i) => i === 0 || x >= s.xs[i - 1]), 'x in order');
		assert.equal(s.count, 600);
	}
	const fine = p.seriesOf('r', 'k', -1, buckets(spike, (q) => q.s, 0, 599, 1200));
	assert.deepEqual(fine.ys, spike.map((q) => q.v));
});

test('random series: extremes of every window of buckets are on the line', () => {
	let seed = 1;
	const rnd = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
	for (let t = 0; t < 300; t++) {
		const list = Array.from({ length: 1 + Math.floor(rnd() * 400) }, (_, i) => ({ s: i, v: rnd() < 0.02 ? NaN : Math.exp(8 * rnd()) }));
		const s = p.seriesOf('r', 'k', -1, buckets(list, (q) => q.s, 0, list.length - 1, 1 + Math.floor(rnd() * 60)));
		const fin = list.map((q) => q.v).filter(Number.isFinite);
		const e = p.extent(s);
		if (!fin.length) assert.equal(e, null);
		else assert.deepEqual([e.lo, e.hi], [Math.min(...fin), Math.max(...fin)]);
		const bad = list.findIndex((q) => Number.isNaN(q.v));
		assert.equal(s.badX, bad < 0 ? null : bad);
		if (!Number.isNaN(list.at(-1).v)) assert.equal(s.badToEnd, false);
	}
});

test('NaN: the line stops, the read-out says NaN, the place is known', () => {
	const nan = twelve.find((r) => r.run.name === 'cnn-ddp4-lr0.8').series['train/loss'];
	for (const n of [13, 600]) {
		const s = p.seriesOf('r', 'k', -1, buckets(nan, (q) => q.s, 0, 599, n));
		assert.equal(s.badX, 400);
		assert.equal(s.badToEnd, true);
		assert.ok(Number.isNaN(p.valueAt(s, 500)));
		assert.equal(Math.max(...s.xs.filter((_, i) => Number.isFinite(s.ys[i]))), 399);
	}
});

test('smoothing does not depend on the number of buckets and keeps a constant', () => {
	const flat = Array.from({ length: 500 }, (_, i) => ({ s: i, v: 3 }));
	const s = p.smooth(p.seriesOf('r', 'k', -1, buckets(flat, (q) => q.s, 0, 499, 40)), 0.9);
	assert.ok(s.ys.every((y) => Math.abs(y - 3) < 1e-12));
	const ramp = Array.from({ length: 4000 }, (_, i) => ({ s: i, v: i }));
	const end = (n) => p.smooth(p.seriesOf('r', 'k', -1, buckets(ramp, (q) => q.s, 0, 3999, n)), 0.99).ys.at(-1);
	assert.ok(Math.abs(end(4000) - end(800)) < 5, 'within a bucket');
});

const line = (id, ys, o = {}) => ({ id, name: id, colour: '#000', dash: [], xs: ys.map((_, i) => i), ys, smooth: null, fit: true,
	badX: null, badToEnd: false, end: 'none', flags: [], ...o });

test('the axis shows a spike in full, but a run that fell out does not flatten the rest', () => {
	const calm = Array.from({ length: 600 }, (_, i) => 0.2 + 2 * Math.exp(-i / 60));
	const spiky = calm.map((v, i) => (i === 337 ? 4.85 : v));
	const r = p.fitRange([line('a', calm), line('b', spiky)], 0, 600, false, false);
	assert.ok(r.hi >= 4.85 && r.outside.length === 0);
	const bad = line('c', [0.3, 3.1, 90], { fit: false });
	const f = p.fitRange([line('a', [0.7, 0.3, 0.2]), bad], 0, 3, false, false);
	assert.ok(f.hi < 1);
	assert.deepEqual(f.outside, [{ id: 'c', x: 2, y: 90, side: 'top' }]);
	assert.ok(p.fitRange([line('a', [0.7, 0.3, 0.2]), bad], 0, 3, false, true).hi >= 90);
	const wild = calm.map((v, i) => (i === 100 ? 1e6 : v));
	const w = p.fitRange([line('a', calm), line('b', wild)], 0, 600, false, false);
	assert.ok(w.hi < 100 && w.outside[0].y === 1e6, 'an absurd spike gets an arrow');
});

test('axis ranges of odd data', () => {
	for (const log of [false, true])
		for (const ys of [[], [NaN], [0], [5], [-1, 1], [1e-300, 1e300], [0, 0, 0]]) {
			const r = p.fitRange([line('a', ys)], 0, 10, log, false);
			assert.ok(r.lo < r.hi && Number.isFinite(r.lo) && Number.isFinite(r.hi), JSON.stringify([log, ys, r]));
			if (log) assert.ok(r.lo > 0);
		}
});

test('ticks of a log axis are round and few', () => {
	assert.deepEqual(p.logTicks(0.1413, 6, 8), [0.2, 0.5, 1, 2, 5]);
	assert.deepEqual(p.logTicks(0.76, 0.94, 6), [0.8, 0.85, 0.9]);
	assert.deepEqual(p.logTicks(1e-6, 10, 8).length, 8);
	assert.ok(p.logTicks(1e-300, 1e300, 8).length <= 9);
});

test('labels keep their order and their distance', () => {
	const at = p.spreadLabels([50, 50, 50, 10, 99], 12, 0, 100);
	const sorted = [...at].sort((a, b) => a - b);
	for (let i = 1; i < sorted.length; i++) assert.ok(sorted[i] - sorted[i - 1] >= 11.999);
	assert.ok(Math.min(...at) >= 0 && Math.max(...at) <= 100);
	assert.equal(at.indexOf(Math.min(...at)), 3);
	assert.equal(p.spreadLabels(Array(40).fill(5), 12, 0, 100).length, 40);
	assert.deepEqual(p.packRows([{ left: 0, width: 50 }, { left: 20, width: 50 }, { left: 80, width: 10 }], 2), [0, 1, 0]);
});

test('the address: only what differs from the default, and back', () => {
	assert.equal(p.viewQuery(p.emptyView), '');
	const v = { ...p.emptyView, experiment: 'a b', goal: 'epoch/val_loss', dir: 'min', sort: 'p:lr', desc: true, x: 'time', log: true,
		smooth: 0.6, zoom: [300, 360.5], shown: ['0123abcd', 'ffff0000'], filter: 'params.lr > 0.1', columns: ['p:lr', 'm:best:epoch/top1'] };
	assert.deepEqual(p.parseView(p.viewQuery(v)), v);
	assert.equal(p.viewQuery({ ...p.emptyView, experiment: 'fashion' }), '?e=fashion');
	assert.ok(p.viewQuery(v).length < 200);
	assert.equal(p.parseView('?z=9~3').zoom, null);
	const id = '0123456789abcdef'.repeat(2);
	assert.deepEqual([p.linkedQuery('#/experiments/1/runs/' + id), p.linkedQuery('#/experiments/1'), p.linkedQuery('')], ['?r=' + id, null, null]);
	assert.equal(p.parseView('?sm=7&x=frog').smooth, 0.99);
});

test('expressions go to the server, words do not', () => {
	for (const e of ["params.lr = '0.1'", 'metrics."epoch/top1".max > 0.9', "status = 'failed'", "tags.x LIKE 'a%'"]) assert.ok(p.isExpression(e), e);
	for (const e of ['resnet', 'lr=0.1', 'name', 'cnn ddp']) assert.ok(!p.isExpression(e), e);
	assert.ok(p.matchesWords('cnn  LR=0.1', ['cnn-ddp4', 'lr=0.1']));
	assert.ok(!p.matchesWords('cnn mlp', ['cnn-ddp4', 'lr=0.1']));
});
