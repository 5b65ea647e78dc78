// SPDX-License-Identifier: Apache-2.0
// Alerts on the page: a rule is created, its alerts appear live and link to the run; rules are deleted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { charted, says, until } from '../browser.mjs';
import { stage } from '../stage.mjs';

const here = stage();
/** The tools in the menu of a narrow window, and the names of their panels. */
const TOOLS = { Columns: 'Columns', 'Saved views': 'Saved views', 'Copy table': 'Copy the table' };

test('in a narrow window one button holds the tools, and they fit the screen', async (t) => {
	await here.ask('POST', 'runs', { experiment: 'told', name: 'narrow' });
	const page = await here.open(t, '?e=told');
	const fits = async (dialog, width) => {
		const box = await page.locator(dialog).boundingBox();
		assert.ok(box.x >= 0 && box.x + box.width <= width, `${dialog}, ${width} px: ${box.x}`);
		await page.keyboard.press('Escape');
		await page.waitForSelector(dialog, { state: 'detached', timeout: 30000 });
	};
	const pick = async (word, width) => {
		await page.click('.others > .pop > button');
		await page.click(`.others .picker button:text-is("${word}")`);
		await fits(`.others [role=dialog][aria-label="${TOOLS[word]}"]`, width);
	};
	for (const width of [390, 700]) {
		await page.setViewportSize({ width, height: 844 });
		for (const word of Object.keys(TOOLS)) await pick(word, width);
	}
	await page.setViewportSize({ width: 800, height: 844 }); // wide enough for some tools to have their own buttons
	await pick('Copy table', 800);
	await page.click('.kept > .pop > button');
	await fits('.kept [role=dialog][aria-label="Saved views"]', 800);
});

test('a rule is created on the page; its alert appears without a reload and links to the run', async (t) => {
	const log = (id, value) => here.ask('POST', `runs/${id}/metrics`,
		{ points: [{ key: 'loss', step: 3, value }] });
	const { id } = await here.ask('POST', 'runs', { experiment: 'told', name: 'one' });
	await log(id, 1);
	const page = await here.open(t, '?e=told');
	await charted(page, 'loss', (d) => d.lines.length === 1);
	await page.click('.nav a[title="Alerts"]');
	await says(page, 'main.alerts', /No alerts yet/);
	await page.fill('[aria-label="Metric"]', 'loss');
	await page.fill('[aria-label="Bound"]', '5');
	await page.click('main button:text-is("Add rule")');
	await says(page, 'table[aria-label=Rules]', /loss above 5/);
	await page.selectOption('[aria-label="When"]', 'silent');
	await page.fill('[aria-label="Seconds"]', '1');
	await page.click('main button:text-is("Add rule")');
	await says(page, '.alerts [role=alert]', /expected 10 to/);
	await log(id, 7.5);
	await until(async () => {
		await log(id, 7.5);
		return page.evaluate(() => document.querySelector('table[aria-label=Alerts] tbody')?.textContent ?? '');
	}, (s) => /^oneloss is 7.5 at step 3, above 5/.test(s));
	assert.equal(await page.locator('table[aria-label=Alerts] tbody tr').count(), 1, 'one alert');
	await page.click('[aria-label="Delete rule: loss above 5"]');
	await page.waitForSelector('table[aria-label=Rules]', { state: 'detached', timeout: 30000 });
	await page.click('table[aria-label=Alerts] a');
	await says(page, 'h1', /one/);
});
