// SPDX-License-Identifier: Apache-2.0
// The page on paper has no tools, light colours, all rows of the table, and charts of the paper's width as vectors in
// the colours of that theme; afterwards it is as before.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawn, until } from '../browser.mjs';
import { writeTwelve } from '../serve.mjs';
import { stage } from '../stage.mjs';

const here = stage(writeTwelve);
/** The width of A4 without its margins, in CSS pixels; Letter is wider. */
const PAPER = 733;
const TOOLS = '.nav, .toolbar, .handle, .acts, .tabs, input, select, button:not(.say, .failed, .nan, h2 > button)';
const PANEL = '# On paper\n\n```panel\nmetrics: train/loss\n```\n\n```panel\nmetrics: epoch/top1\n```\n';

/** [what, its address, number of charts]. */
const screens = [
	['an experiment', () => '?e=fashion', 2],
	['a run', async () => '?r=' + (await here.ask('GET', 'runs?experiment=fashion')).runs[0].id, 2],
	['a report', async () => '?e=fashion&report='
		+ (await here.ask('POST', 'reports', { experiment: 'fashion', name: 'p', text: PANEL })).id, 2],
];

for (const [what, address, charts] of screens)
	test(`6: ${what} on paper`, async (t) => {
		const page = await here.open(t, 'health');
		await page.emulateMedia({ colorScheme: 'dark' });
		await page.goto(here.server.url + await address());
		await drawn(page);
		await until(() => page.$$eval('[data-chart][data-drawn]', (l) => l.length), (n) => n >= charts);
		await page.waitForSelector('html[data-prints]'); // what prints loads after the first screen
		const seen = await page.evaluate(async (tools) => {
			dispatchEvent(new Event('beforeprint'));
			for (let n = 0; n < 20; n++) await null; // no more than before a browser prints
			const all = (q) => [...document.querySelectorAll(q)].filter((e) => e.checkVisibility());
			return { tools: all(tools).map((e) => e.outerHTML.slice(0, 90)),
				theme: document.documentElement.dataset.theme, rows: all('.grid .row').length,
				charts: all('[data-chart]').map((e) => ({ right: e.getBoundingClientRect().right,
					paths: e.querySelectorAll(':scope > svg path').length,
					drawn: e.querySelector(':scope > svg')?.getBoundingClientRect().right,
					colours: e.chart.drawn().lines.every((l) =>
						e.innerHTML.includes(`stroke="${l.colour}"`)),
					colour: e.chart.drawn().lines[0].colour })) };
		}, TOOLS);
		assert.deepEqual(seen.tools, []);
		assert.equal(seen.theme, 'light');
		if (what === 'an experiment') assert.equal(seen.rows, 13, 'the head and twelve runs');
		assert.ok(seen.charts.length >= charts);
		for (const c of seen.charts)
			assert.ok(c.right <= PAPER && Math.abs(c.drawn - c.right) < 1 && c.paths > 3 && c.colours,
				JSON.stringify(c));
		assert.ok((await page.pdf({ format: 'A4' })).length > 20000);
		await page.evaluate(() => dispatchEvent(new Event('afterprint')));
		await until(() => page.$$eval('.plot > svg', (l) => l.length), (n) => n === 0);
		assert.ok(await page.isVisible('.nav'), 'the tools are back');
		const back = await page.$eval('[data-chart]', (e) => e.chart.drawn().lines[0].colour);
		assert.notEqual(back, seen.charts[0].colour, 'in dark colours');
	});

test('long pages on paper: charts that were not on the screen, and how many rows are left out', async (t) => {
	for (let n = 0; n < 210; n++) {
		const { id } = await here.ask('POST', 'runs', { experiment: 'long', name: 'r' + n });
		const points = [...'abcdefgh'].flatMap((k) => [1, 2, 3].map((step) =>
			({ key: k + '/x', step, value: n * step, wall_time: 1.8e9 })));
		if (n > 200) await here.ask('POST', `runs/${id}/metrics`, { points });
		await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	}
	const page = await here.open(t, '?e=long');
	await drawn(page);
	await page.waitForSelector('html[data-prints]');
	await until(() => page.locator('[data-chart]').count(), (n) => n === 8);
	const paper = async () => {
		const seen = await page.evaluate(async () => {
			dispatchEvent(new Event('beforeprint'));
			for (let n = 0; n < 20; n++) await null;
			const all = (q) => [...document.querySelectorAll(q)];
			return { drawn: all('.plot > svg').length, unseen: all('[data-unseen]').map((e) =>
				getComputedStyle(e, '::after').content), rows: all('.grid .body .row').length,
			cut: getComputedStyle(document.querySelector('.grid'), '::after').content };
		});
		await page.evaluate(() => dispatchEvent(new Event('afterprint')));
		return seen;
	};
	const before = await paper();
	assert.ok(before.unseen.length > 0 && before.drawn + before.unseen.length === 8, JSON.stringify(before));
	for (const words of before.unseen) assert.match(words, /not loaded/);
	assert.equal(before.rows, 200);
	assert.match(before.cut, /The first 200 of 210 rows/);
	await page.evaluate(() => (globalThis.print = () => (document.title = 'printing')));
	await page.keyboard.press('Control+p');
	await until(() => page.title(), (text) => text === 'printing');
	const after = await paper();
	assert.deepEqual([after.drawn, after.unseen], [8, []]);
});
