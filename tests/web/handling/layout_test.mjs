// SPDX-License-Identifier: Apache-2.0
// The frame of the page with long names, many sections and narrow windows: it does not scroll away, names are cut or
// wrapped where they are, and controls keep their places.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../browser.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage();

async function run(experiment, name, series = {}, { params = {}, status = 'finished' } = {}) {
	const { id } = await here.ask('POST', 'runs', { experiment, name, params });
	const points = Object.entries(series).flatMap(([key, list]) => list.map((value, i) =>
		({ key, step: i + 1, value, wall_time: 1.8e9 + i })));
	if (points.length) await here.ask('POST', `runs/${id}/metrics`, { points });
	await here.ask('PATCH', 'runs/' + id, { status });
	return id;
}

/** Opens an address in a window of this size, after the page shows the element. */
async function shown(t, address, there, width = 1440, height = 900) {
	const page = await here.open(t);
	await page.setViewportSize({ width, height });
	await page.goto(here.server.url + address);
	await page.waitForSelector(there, WAIT);
	return page;
}

const boxes = (page, selector) => page.$$eval(selector, (l) => l.map((e) => e.getBoundingClientRect().toJSON()));

test('below the last section the page does not scroll away', async (t) => {
	for (let i = 0; i < 24; i++) await run('sections', 'r' + i, { loss: [1, 1 / (i + 2)] },
		{ params: { lr: 0.1 * i, width: i % 3, depth: i % 2 } });
	const page = await shown(t, '?e=sections', '.chartpane h2 button[aria-expanded=false]');
	for (const name of ['Pivot', 'Importance']) {
		await page.click(`.chartpane h2 button:has-text("${name}")`);
		await page.waitForSelector(`.${name.toLowerCase()} table`, WAIT);
	}
	await page.mouse.move(700, 600);
	for (let i = 0; i < 6; i++) await page.mouse.wheel(0, 2000);
	await until(() => page.$eval('.app', (e) => e.scrollTop + e.clientHeight >= e.scrollHeight - 1), (end) => end);
	const [{ top }] = await boxes(page, '.app > .head');
	assert.equal(top, 0, 'the header stays');
	assert.equal(await page.evaluate(() => document.documentElement.scrollHeight), 900);
});
