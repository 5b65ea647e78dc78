// SPDX-License-Identifier: Apache-2.0
// Groups tell the truth: a mean leaves out runs that failed or diverged unless all are to count, and breaks where a
// run ends; a group has the colour of its runs; its name is rounded as columns are; a run alone is no group, and
// nested runs are listed nested.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { charted, drawn, says, until } from '../browser.mjs';
import { writeTwelve } from '../serve.mjs';
import { stage } from '../stage.mjs';

const here = stage(writeTwelve);
const KEY = 'train/loss';

async function run(experiment, name, params, value, n = 40, tags = {}) {
	const { id } = await here.ask('POST', 'runs', { experiment, name, params, tags });
	await here.ask('POST', `runs/${id}/metrics`, { points: Array.from({ length: n },
		(_, i) => ({ key: KEY, step: i, value, wall_time: 1.8e9 + i })) });
	await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	return id;
}

/** The largest share of the rows that lines and bands cover in a column between two steps. */
const inked = (page, from, to) => page.evaluate(([key, a, b]) => {
	const el = document.querySelector(`[data-chart="${key}"]`);
	const d = el.chart.drawn();
	const px = (x) => Math.round(d.box.left + ((x - d.from) / (d.to - d.from)) * d.box.width);
	const width = px(b) - px(a);
	const { data } = el.querySelector('.chart-lines').getContext('2d')
		.getImageData(px(a), d.box.top, width, d.box.height);
	const rows = Array(width).fill(0);
	for (let i = 3; i < data.length; i += 4) rows[((i - 3) / 4) % width] += Number(data[i] > 20);
	return Math.min(...rows);
}, [KEY, from, to]);
const named = (page, text) => charted(page, KEY, (d) => d.names.some((n) => n.includes(text)));
const colours = (page) => page.$$eval('.grid .body .row .key line',
	(list) => list.map((l) => l.getAttribute('stroke')));

const cases = [
	['7: a diverged run is left out of means, said and switchable', '?e=fashion&by=model', async (open) => {
		const page = await open();
		await says(page, '.grid [data-group*=cnn]', /mean of 6; 1 diverged left out/);
		await named(page, 'cnn (6; 1 diverged left out)');
		await page.selectOption('.grouping select[aria-label=Of]', 'all');
		await says(page, '.grid [data-group*=cnn]', /mean of 7; with 1 diverged/);
		await named(page, 'cnn (7; with 1 diverged)');
	}],
	['7: the mean line breaks where a run ends', '?e=few&by=a', async (open) => {
		await run('few', 'long', { a: '1' }, 1);
		await run('few', 'short', { a: '1' }, 3, 20);
		const page = await open();
		await charted(page, KEY, (d) => d.lines.map((l) => l.id).join() === 'group:a 1');
		assert.ok(await inked(page, 10, 12) > 0, 'a line where both runs are');
		assert.ok(await inked(page, 30, 32) > 0, 'a line where one run is');
		assert.equal(await inked(page, 19, 20), 0, 'nothing joins them');
	}],
	['8: a group has the colour of its runs', '?e=fashion&by=model', async (open) => {
		const page = await open();
		await drawn(page);
		const groups = await colours(page);
		await page.goto(page.url().replace('&by=model', ''));
		await drawn(page);
		const runs = new Set(await colours(page));
		assert.ok(groups.length === 3 && groups.every((c) => runs.has(c)), `${groups} of ${[...runs]}`);
	}],
	['23: names are rounded, a run alone is no group', '?e=own&by=lr', async (open) => {
		for (const name of ['a', 'b']) await run('own', name, { lr: '0.31039395669185205' }, 1);
		await run('own', 'alone', { lr: '0.2' }, 2);
		const page = await open();
		await says(page, '.facts', /^1 group of 3 runs/);
		await says(page, '.grid [data-group]', /lr 0.310394/);
		await charted(page, KEY, (d) => d.names.includes('alone') && d.names.includes('lr 0.310394 (2)'));
		assert.deepEqual(await page.$$eval('.grid .body [data-run] a', (l) => l.map((a) => a.textContent)),
			['alone']);
	}],
	['23: without equal values there are no groups', '?e=unique&by=lr', async (open) => {
		for (const n of [1, 2, 3]) await run('unique', 'u' + n, { lr: String(n / 7) }, n);
		const page = await open();
		await says(page, '.facts', /^3 runs.*no groups/);
		await charted(page, KEY, (d) => d.names.join() === 'u1,u2,u3');
	}],
	['25: nested runs are listed nested; a param of few runs gives no colour', '?e=nested', async (open) => {
		const root = await run('nested', 'search', { algo: 'tpe' }, 1);
		for (const n of [1, 2, 3, 4, 5, 6])
			await run('nested', 'trial' + n, { lr: String(n) }, n, 40, { 'mlflow.parentRunId': root });
		const page = await open();
		await until(() => page.$$eval('.grid .body .row', (l) => l.map((r) => r.ariaLevel).join('')),
			(v) => v === '1222222');
		assert.equal(new Set(await colours(page)).size, 7);
		await page.click('.facts button:text-is("Flat list")');
		await page.waitForSelector('.grid[role=grid]');
		await page.waitForURL(/[?&]flat/);
	}],
];

for (const [name, address, look] of cases)
	test(name, async (t) => look(() => here.open(t, address)));
