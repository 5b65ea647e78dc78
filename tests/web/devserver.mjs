// SPDX-License-Identifier: Apache-2.0
// A small stand-in for `dptrack serve`, to work on the page alone: serves a built page and answers the read routes of
// /api/v1 from the runs of twelve.py (or with no runs).
// Usage: node devserver.mjs DIST [--port N] [--empty|--many N|--trained]
import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
export const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
	+ "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const MIME = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8',
	'.css': 'text/css; charset=utf-8' };

const word = (v) => (Number.isFinite(v) || v === null ? v : String(v));
const real = (v) => (typeof v === 'string' ? Number(v) : v);

function summary(list) {
	const ok = list.filter((p) => !Number.isNaN(p.v));
	const by = (f) => ok.reduce((a, p) => (a === null || f(p.v, a.v) ? p : a), null);
	const [lo, hi] = [by((a, b) => a < b), by((a, b) => a > b)];
	const bad = list.find((p) => !Number.isFinite(p.v));
	return {
		count: list.length, first: word(list[0].v), last: word(list.at(-1).v), min: word(lo && lo.v),
		max: word(hi && hi.v),
		first_step: list[0].s, last_step: list.at(-1).s, min_step: lo && lo.s, max_step: hi && hi.s,
		first_nonfinite_step: bad ? bad.s : null,
	};
}

/** The alerts that a server would raise: a failure, the first NaN of a series, a point far above its neighbours. */
function alertsOf(run, series) {
	const out = [];
	if (run.status === 'failed') {
		const last = series['train/loss'].at(-1).s;
		out.push({ kind: 'failed', key: '', step: last, value: 'NaN', text: `failed after step ${last}` });
	}
	for (const [key, list] of Object.entries(series)) {
		const bad = list.find((p) => !Number.isFinite(p.v));
		if (bad) out.push({ kind: 'nan', key, step: bad.s, value: 'NaN', text: `NaN from step ${bad.s}` });
		for (let i = 10; i + 10 < list.length; i++) {
			const near = list.slice(i - 10, i + 11).map((p) => p.v).sort((a, b) => a - b);
			if (list[i].v > 4 * near[16])
				out.push({ kind: 'spike', key, step: list[i].s, value: list[i].v,
					text: `spike ${list[i].v} at step ${list[i].s}` });
		}
	}
	return out;
}

export function load() {
	const text = execFileSync('python3', [path.join(here, 'twelve.py'), '--json'], { maxBuffer: 1 << 26 });
	return JSON.parse(text).map((r) => {
		const series = {};
		for (const [k, s, w, v] of r.points) (series[k] ??= []).push({ s, w, v: real(v) });
		const metrics = Object.fromEntries(Object.entries(series).map(([k, l]) => [k, summary(l)]));
		return {
			series,
			run: {
				id: createHash('sha256').update('fashion/' + r.name).digest('hex').slice(0, 32),
				name: r.name, experiment: 'fashion',
				status: r.status, start_time: Math.round(r.start * 1000),
				end_time: Math.round(r.end * 1000),
				params: Object.fromEntries(Object.entries(r.params).map(([k, v]) => [k, String(v)])),
				tags: {}, metrics,
				notes: r.note ?? '', alerts: alertsOf(r, series),
			},
		};
	});
}

/** M4 buckets of the finite points of one series, as columns, with the position of the first non-finite point. */
export function buckets(list, xOf, from, to, n) {
	const names =
		['i', 'x_first', 'first', 'x_min', 'min', 'x_max', 'max', 'x_last', 'last', 'sum', 'count', 'nonfinite',
		'x_nonfinite'];
	const c = Object.fromEntries(names.map((k) => [k, []]));
	const groups = new Map();
	for (const p of list) {
		const x = xOf(p);
		if (x < from || x > to) continue;
		const i = Math.min(n - 1, Math.floor(((x - from) / ((to - from) || 1)) * n));
		if (!groups.has(i)) groups.set(i, []);
		groups.get(i).push({ x, v: p.v });
	}
	for (const [i, g] of groups) {
		const fin = g.filter((p) => Number.isFinite(p.v));
		const lo = fin.reduce((a, p) => (a && a.v <= p.v ? a : p), null);
		const hi = fin.reduce((a, p) => (a && a.v >= p.v ? a : p), null);
		const bad = g.find((p) => !Number.isFinite(p.v));
		const row = [i, fin[0]?.x, fin[0]?.v, lo?.x, lo?.v, hi?.x, hi?.v, fin.at(-1)?.x, fin.at(-1)?.v,
			fin.reduce((a, p) => a + p.v, 0), g.length, g.length - fin.length, bad?.x];
		names.forEach((k, j) => c[k].push(row[j] ?? null));
	}
	return c;
}

/** The same points as they are drawn, as integers in units of 1e-6. */
function lineForm(c) {
	const at = { x: 0, y: 0 };
	const coded = (k, v) => {
		if (v === null || !Number.isFinite(v)) return null;
		const n = Math.round(v * 1e6);
		const d = n - at[k];
		at[k] = n;
		return d;
	};
	const out = { xq: 1e-6, q: 1e-6, x: [], y: [], k: [], m: [], w: [] };
	let mean = 0;
	c.i.forEach((_, b) => {
		const all = [['x_first', 'first'], ['x_min', 'min'], ['x_max', 'max'], ['x_last', 'last']]
			.map(([x, y]) => [c[x][b], c[y][b]]).filter(([x]) => x !== null);
		if (c.x_nonfinite[b] !== null) all.push([c.x_nonfinite[b], NaN]);
		all.sort((p, q) => p[0] - q[0]);
		const points = all.filter((p, i) => !i || p[0] !== all[i - 1][0] || !Object.is(p[1], all[i - 1][1]));
		for (const [x, y] of points) {
			out.x.push(coded('x', x));
			out.y.push(coded('y', y));
		}
		out.k.push(points.length);
		const n = c.count[b] - c.nonfinite[b];
		if (!n) return;
		const now = Math.round((c.sum[b] / n) * 1e6);
		out.m.push(now - mean);
		out.w.push(n);
		mean = now;
	});
	return out;
}

/** [rank, points] of a run's series: the run-level one, those of all ranks, or both. */
function lines(r, key, rank) {
	const out = r.series[key] && (rank === undefined || rank === -1) ? [[-1, r.series[key]]] : [];
	for (const [n, list] of Object.entries(r.ranked?.[key] ?? {}))
		if (rank === undefined || rank === Number(n)) out.push([Number(n), list]);
	return out;
}

function query(all, q) {
	const runs = all.filter((r) => q.runs.includes(r.run.id));
	const start = (r) => (q.x === 'elapsed' ? (p) => p.w - r.run.start_time / 1000
		: q.x === 'epoch' && r.run.params.steps_per_epoch ? (p) => p.s / r.run.params.steps_per_epoch
		: (p) => p.s);
	let [from, to] = [Infinity, -Infinity];
	for (const r of runs)
		for (const k of q.keys)
			for (const p of lines(r, k, q.rank).flatMap(([, l]) => l)) {
				from = Math.min(from, start(r)(p));
				to = Math.max(to, start(r)(p));
			}
	[from, to] = [q.from ?? from, q.to ?? to];
	const series = runs.flatMap((r) => q.keys.flatMap((k) => lines(r, k, q.rank).map(([rank, list]) => ({
		run: r.run.id, key: k, rank, segment: 0, count: list.length,
		...(q.form === 'line' ? lineForm(buckets(list, start(r), from, to, q.buckets))
			: { buckets: buckets(list, start(r), from, to, q.buckets) }),
	}))));
	return { x: q.x, edges: Array.from({ length: q.buckets + 1 }, (_, i) => from + ((to - from) * i) / q.buckets),
		series };
}

function body(req) {
	return new Promise((done) => {
		const parts = [];
		req.on('data', (d) => parts.push(d));
		req.on('end', () => done(JSON.parse(Buffer.concat(parts).toString() || '{}')));
	});
}

/** Adds the last step of the series that counts optimiser steps. */
function whole(run) {
	const steps = Object.entries(run.metrics).filter(([k]) => !k.startsWith('epoch/')).map(([, m]) => m.last_step);
	return { last_step: steps.length ? Math.max(...steps) : -1, ...run };
}

async function api(req, url, all) {
	const p = url.pathname.replace('/api/v1/', '');
	const runs = all.map((r) => r.run).sort((a, b) => b.start_time - a.start_time);
	if (p === 'experiments')
		return { experiments: [{ id: '0', name: 'Default', run_count: 0, may: 'admin' },
			...[...new Set(runs.map((r) => r.experiment))].map((name, i) => ({
			id: String(i + 1), name, run_count: runs.filter((r) => r.experiment === name).length,
			changed_time: runs[0].end_time ?? 0, may: 'admin' }))] };
	const asked = url.searchParams.getAll('experiment');
	if (p === 'runs') {
		const list = runs.filter((r) => !asked.length || asked.includes(r.experiment));
		const end = Number(url.searchParams.get('page_token') ?? 0)
			+ Number(url.searchParams.get('limit') ?? 100);
		return { runs: list.slice(Number(url.searchParams.get('page_token') ?? 0), end).map(whole),
			next_page_token: end < list.length ? String(end) : '' };
	}
	if (p === 'series/query') return query(all, await body(req));
	if (p === 'changes') return { token: '1', runs: [] };
	if (p === 'session') return { signed_in: false, all: 'admin' };
	if (p.startsWith('runs/')) {
		const r = runs.find((x) => x.id.startsWith(p.slice(5)));
		const ranks = Object.keys(all.find((x) => x.run === r)?.ranked?.['phase/step'] ?? {})
			.map((n) => ({ rank: Number(n), host: 'node1' }));
		return r ? { ...whole(r), environment: r.environment ?? {}, ranks, segments: [], user: '', inputs: [] }
			: null;
	}
	return null;
}

/** Starts the stand-in; resolves to {url, close}. */
export function start({ dist, all, port = 0 }) {
	const server = createServer(async (req, res) => {
		const url = new URL(req.url, 'http://x');
		const gz = /gzip/.test(req.headers['accept-encoding'] ?? '');
		const send = (status, type, data) => {
			const out = gz ? gzipSync(data) : data;
			res.writeHead(status, { 'content-type': type, 'content-security-policy': CSP,
				...(gz ? { 'content-encoding': 'gzip' } : {}) });
			res.end(out);
		};
		if (url.pathname === '/api/v1/events') {
			res.writeHead(200, { 'content-type': 'text/event-stream' });
			res.write(': open\n\n');
			return;
		}
		if (url.pathname.startsWith('/api/')) {
			const reply = await api(req, url, all);
			return send(reply ? 200 : 404, 'application/json',
				JSON.stringify(reply ?? { error: { code: 'not_found', message: 'no such thing' } }));
		}
		try {
			const name = url.pathname === '/' ? '/index.html' : url.pathname;
			send(200, MIME[path.extname(name)] ?? 'application/octet-stream',
				readFileSync(path.join(dist, path.basename(name))));
		} catch {
			send(404, 'text/plain', 'not found');
		}
	});
	return new Promise((done) => server.listen(port, '127.0.0.1', () => done({
		url: `http://127.0.0.1:${server.address().port}/`,
		close: () => {
			server.closeAllConnections();
			server.close();
		},
	})));
}

/** Two runs as dptrain records them: epoch counters, phases by rank, one slower rank, one run still running. */
export function trained() {
	const perEpoch = 469;
	return [['f32-1x2', 1, 'fp32', 0], ['bf16-ddp2', 2, 'bf16', 1]].map(([name, world, precision, live], n) => {
		const steps = live ? 700 : 2 * perEpoch;
		const t0 = 1795100000 + n * 300;
		const series = { 'train/loss': [], 'train/lr': [] };
		const ranked = {};
		for (let s = 1; s <= steps; s++) {
			const w = t0 + s * 0.09;
			series['train/loss'].push({ s, w,
				v: 0.25 + 2 * Math.exp(-s / 90) + 0.05 * Math.sin(s * 1.7 + n) });
			series['train/lr'].push({ s, w, v: 0.1 * Math.cos((s / (2 * perEpoch)) * 1.57) });
			for (let r = 0; r < world; r++) {
				const slow = r === 1 ? 1.2 : 1;
				const ph = { data_wait: 0.004, h2d: 0, forward: 0.024 * slow, backward: 0.05 * slow,
					comm_exposed: world > 1 ? 0.017 - 0.014 * r : 0,
					optimizer: 0.003, other: 0.001, comm_total: world > 1 ? 0.02 : 0, step: 0.1 };
				for (const [k, v] of Object.entries(ph))
					((ranked['phase/' + k] ??= {})[r] ??= []).push({ s, w, v });
			}
		}
		for (let e = 1; e * perEpoch <= steps; e++) {
			const w = t0 + e * perEpoch * 0.09;
			for (const [k, v] of [['top1', 86 + 2.2 * e + n * 0.13], ['top5', 99.1],
				['val_loss', 0.4 - 0.06 * e], ['train_loss', 0.5 - 0.1 * e],
				['seconds', 42 - 6 * n],
				['samples_per_s', 1400 + 260 * n]]) (series['epoch/' + k] ??= []).push({ s: e, w, v });
		}
		return { series, ranked, run: {
			id: createHash('sha256').update(name).digest('hex').slice(0, 32), name,
			experiment: 'quickstart', status: live ? 'running' : 'finished',
			start_time: t0 * 1000, end_time: live ? null : (t0 + steps * 0.09) * 1000,
			params: { model: 'resnet20', strategy: live ? 'ddp' : 'single', world_size: String(world),
				precision, threads: String(2 - n), opt: 'sgd', lr: '0.1',
				momentum: '0.9', wd: '0.0001', lr_scheduler: 'cosine', batch_size: String(128 / world),
				epochs: '2', seed: '0', steps_per_epoch: String(perEpoch),
				augment: 'none', data_path: '/usr/share/datasets/fashion-mnist' },
			tags: {}, metrics: Object.fromEntries(Object.entries(series).map(([k, l]) => [k, summary(l)])),
			notes: '', alerts: [],
			environment: { host: 'node1', cpu: 'AMD EPYC', onednn: '2.6.0', git_commit: '0a1b2c3',
				command: 'dptrain --experiment quickstart --model resnet20' },
		} };
	});
}

/** n runs like the twelve, to test the table with many runs. */
export function many(n) {
	const base = load();
	return Array.from({ length: n }, (_, i) => {
		const b = base[i % base.length];
		return { ...b, run: { ...b.run, id: createHash('sha256').update('many' + i).digest('hex').slice(0, 32),
			name: `${b.run.name}-${i}` } };
	});
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
	const arg = (k) => (process.argv.includes(k) ? process.argv[process.argv.indexOf(k) + 1] : undefined);
	const n = Number(arg('--many') ?? 0);
	const all = process.argv.includes('--empty') ? [] : process.argv.includes('--trained') ? trained() : n ? many(n)
		: load();
	const s = await start({ dist: process.argv[2], all, port: Number(arg('--port') ?? 6107) });
	console.log('page at ' + s.url);
}
