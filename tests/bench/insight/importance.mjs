#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// importance.mjs [--draws N] [--python PYTHON] [--only WORD]: which params affect a value, on functions with known
// total Sobol indices. For each of N draws of 200 runs with five additional noise params, counts the draws in which
// all params with an index above 0.1 are reported as important, those 1.5 times apart are in order, and no noise is
// reported (at least 85 of 100); the same for scikit-learn's permutation importance if PYTHON has it (important: above
// two deviations). Then 10,000 runs of 50 params: seconds of wall and processor time (at most 2). --only: one of the
// functions, or large. Needs the page's parts as bundled by the build (builddir).
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
const p = await import(join(process.env.builddir ?? join(HERE, '../../../build'), 'web/ui/pure.mjs'));
const RUNS = 200, NOISE = 5;

function random(seed) {
	let state = (seed * 7919 + 1) % 2147483647;
	const next = () => (state = (state * 16807) % 2147483647) / 2147483647;
	for (let i = 0; i < 20; i++) next();
	return next;
}

// Sobol's g: partial variances are 1 / (3 (1 + a)^2).
const A = [0, 1, 4.5, 9];
const V = A.map((a) => 1 / (3 * (1 + a) ** 2));
const all = V.reduce((v, x) => v * (1 + x), 1) - 1;
const G_TOTAL = V.map((v) => v * (V.reduce((w, x) => w * (1 + x), 1) / (1 + v)) / all);

// name: [params, function of values from 0 to 1, total indices]
const FUNCTIONS = {
	// Ishigami with a = 7, b = 0.1
	Ishigami: [3, (x) => {
		const [a, b, c] = x.map((v) => Math.PI * (2 * v - 1));
		return Math.sin(a) + 7 * Math.sin(b) ** 2 + 0.1 * c ** 4 * Math.sin(a);
	}, [0.5576, 0.4424, 0.2437]],
	"Sobol's g": [4, (x) => x.reduce((y, v, i) => y * (Math.abs(4 * v - 2) + A[i]) / (1 + A[i]), 1), G_TOTAL],
	// Variances of 9, 4 and 1 twelfths.
	sum: [3, (x) => 3 * x[0] + 2 * x[1] + x[2], [9 / 14, 4 / 14, 1 / 14]],
	// x y + z / 2: x and y 1/48 each and 1/144 together, z 1/48.
	product: [3, (x) => x[0] * x[1] + x[2] / 2, [4 / 10, 4 / 10, 3 / 10]],
};

function draw(name, seed) {
	const [n, f] = FUNCTIONS[name], next = random(seed);
	const rows = Array.from({ length: RUNS }, () => Array.from({ length: n + NOISE }, next));
	return { rows, y: rows.map((r) => f(r.slice(0, n))) };
}

function ours({ rows, y }) {
	const params = Object.fromEntries(rows[0].map((_, i) => [String(i), rows.map((r) => String(r[i]))]));
	const work = p.importanceOf(params, y);
	for (;;) {
		const got = work.next();
		if (got.done) return Object.fromEntries(got.value.map((v) => [v.name, v]));
	}
}

/** Errors of the importances by param number: {share, sure}. */
function wrong(found, total) {
	const out = new Set();
	for (let i = total.length; i < total.length + NOISE; i++) if (found[i].sure) out.add('noise');
	total.forEach((t, i) => {
		if (t > 0.1 && !found[i].sure) out.add('missed');
		total.forEach((u, k) => {
			if (t > 0.1 && u > 0.1 && t >= 1.5 * u && found[i].share <= found[k].share) out.add('order');
		});
	});
	return [...out];
}

function row(who, name, results) {
	const count = (word) => results.filter((r) => r.includes(word)).length;
	const good = results.filter((r) => !r.length).length;
	console.log(`${name.padEnd(10)} ${who.padEnd(13)} ${good} of ${results.length} right; missed ${count('missed')}, order ${count('order')}, noise ${count('noise')}`);
	return good >= 0.85 * results.length;
}

function scikit(python, draws) {
	const r = spawnSync(python, [join(HERE, '../parts/sklearn_importance.py')], { input: JSON.stringify(draws), maxBuffer: 1 << 28 });
	return r.status === 0 ? JSON.parse(r.stdout) : null;
}

function large() {
	const next = random(5), params = {}, n = 10000;
	for (let i = 0; i < 50; i++) params[i] = Array.from({ length: n }, () => String(next()));
	const y = Array.from({ length: n }, (_, i) => Number(params[0][i]) + 2 * Number(params[1][i]));
	const begin = performance.now(), used = process.cpuUsage(), work = p.importanceOf(params, y);
	while (!work.next().done);
	const { user, system } = process.cpuUsage(used);
	return [(performance.now() - begin) / 1e3, (user + system) / 1e6];
}

const option = (name, usual) => {
	const at = process.argv.indexOf(name);
	return at < 0 ? usual : process.argv[at + 1];
};
const draws = Number(option('--draws', 100));
let good = true;
const only = option('--only', null);
for (const [name, [, , total]] of Object.entries(FUNCTIONS)) {
	if (only && !name.includes(only)) continue;
	const drawn = Array.from({ length: draws }, (_, i) => draw(name, i + 1));
	good = row('ours', name, drawn.map((d) => wrong(ours(d), total))) && good;
	const theirs = scikit(option('--python', 'python3'), drawn);
	if (theirs) row('scikit-learn', name, theirs.map((found) => wrong(found, total)));
	else console.log(`${name.padEnd(10)} scikit-learn  is not installed`);
}
if (!only || only === 'large') {
	const [wall, used] = large();
	console.log(`10,000 runs of 50 params: ${wall.toFixed(2)} s, ${used.toFixed(2)} s of the processor (2 asked)`);
}
process.exit(good ? 0 : 1);
