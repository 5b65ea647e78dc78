// SPDX-License-Identifier: Apache-2.0
// What a page shows is its own: live metrics of another experiment stay there, and a short page has no blank bands.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { charted, drawn, until } from '../browser.mjs';
import { stage } from '../stage.mjs';

const here = stage();
const line = (key, from = 1, n = 40) => Array.from({ length: n },
	(_, i) => ({ key, step: from + i, value: 1 / (from + i), wall_time: 1.8e9 + i }));

async function run(experiment, name, keys, status = 'finished') {
	const { id } = await here.ask('POST', 'runs', { experiment, name });
	await here.ask('POST', `runs/${id}/metrics`, { points: keys.flatMap((k) => line(k)) });
	if (status) await here.ask('PATCH', 'runs/' + id, { status });
	return id;
}

test('metrics of a live run appear in its own experiment alone', async (t) => {
	await run('own', 'a', ['train/loss', 'val/top1']);
	const page = await here.open(t, '?e=own');
	await drawn(page);
	const other = await run('live', 'b', ['live/grad_norm'], null);
	const mine = await here.ask('POST', 'runs', { experiment: 'own', name: 'c' });
	await here.ask('POST', `runs/${other}/metrics`, { points: line('live/late') });
	await here.ask('POST', `runs/${mine.id}/metrics`, { points: line('own/late') });
	await charted(page, 'own/late', (c) => c.lines.length === 1);
	await here.ask('POST', `runs/${other}/metrics`, { points: line('live/later', 50) });
	await here.ask('POST', `runs/${mine.id}/metrics`, { points: line('own/later', 50) });
	await charted(page, 'own/later', (c) => c.lines.length === 1);
	assert.ok(!/live\//.test(await page.textContent('body')));
	await here.ask('PATCH', 'runs/' + mine.id, { status: 'finished' });
	await until(() => page.textContent('.facts'), (text) => !/running/.test(text));
});

test('a page shorter than its window has no band around the table', async (t) => {
	await run('one', 'a', ['loss']);
	const page = await here.open(t, '?e=one');
	await page.setViewportSize({ width: 1440, height: 1300 });
	await drawn(page);
	const at = (name, edge) => page.$eval(name, (e, k) => Math.round(e.getBoundingClientRect()[k]), edge);
	assert.ok(await at('.tablepane', 'top') - await at('.head', 'bottom') <= 1, 'above the table');
	assert.ok(await at('.chartpane', 'top') - await at('.tablepane', 'bottom') <= 1, 'below the table');
	assert.ok(await at('.tablepane', 'bottom') - await at('.grid', 'bottom') < 20, 'in the pane of the table');
});

test('29: a live page draws a chart once for each report of changes', async (t) => {
	const ids = [];
	for (const name of ['a', 'b']) ids.push(await run('drawing', name, ['train/loss', 'train/lr'], null));
	const page = await here.open(t, '?e=drawing');
	await charted(page, 'train/loss', (c) => c.lines.length === 2);
	await page.waitForTimeout(1500); // what follows the first screen
	const draws = () => page.$eval('[data-chart="train/loss"]', (e) => Number(e.dataset.drawn));
	let reports = 0;
	page.on('request', (r) => (reports += Number(/\/runs\?.*run=/.test(r.url()))));
	const before = await draws();
	for (let step = 100; step < 130; step++) {
		for (const id of ids)
			await here.ask('POST', `runs/${id}/metrics`, { points: ['train/loss', 'train/lr'].map((key) =>
				({ key, step, value: 1 / step, wall_time: 1.8e9 + step })) });
		await page.waitForTimeout(150);
	}
	await charted(page, 'train/loss', (c) => c.to === 129);
	const drawn = await draws() - before;
	assert.ok(reports > 5 && drawn <= reports + 2, `${drawn} times for ${reports} reports`);
});
