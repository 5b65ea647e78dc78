// SPDX-License-Identifier: Apache-2.0
// Choosing runs: the filter completes fields, operators and values, and keeps the table while an expression lacks its
// end; the menu at a column's head. By keyboard.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clean, drawn, says, until } from '../browser.mjs';
import { writeTwelve } from '../serve.mjs';
import { stage } from '../stage.mjs';

const FIELD = 'input[aria-label="Filter runs"]';
const here = stage(writeTwelve);

const names = (page) => page.$$eval('.grid :is(.pins, .body) .row', (l) => l
	.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((r) => r.querySelector('a').textContent));
const offered = (page) => page.$$eval('#completion [role=option] > span', (l) => l.map((e) => e.textContent));
const offers = (page, test) => until(() => offered(page), test);
/** The names that REST lists for a filter. */
const found = async (filter) => (await here.ask('GET', 'runs?experiment=fashion&limit=100&filter='
	+ encodeURIComponent(filter))).runs.map((r) => r.name).sort().join();
const lists = (page, want) => until(async () => (await names(page)).sort().join(), (n) => n === want, want);

test('a filter is completed by keys; the table keeps its last state until it has its end', async (t) => {
	const page = await here.open(t, '?e=fashion');
	await drawn(page);
	const all = (await names(page)).join();
	await page.keyboard.press('/');
	await page.keyboard.type('l');
	await offers(page, (l) => l[0] === 'lr');
	await page.keyboard.press('ArrowDown');
	assert.equal(await page.getAttribute(FIELD, 'aria-activedescendant'), 'completion-0');
	await clean(page);
	await page.keyboard.press('Enter');
	await offers(page, (l) => l.includes('>') && l.includes('IS NULL') && !l.includes('LIKE'));
	await page.keyboard.type('> ');
	await offers(page, (l) => l.join() === '0.05,0.1,0.2,0.8');
	await page.waitForTimeout(600); // longer than the filter waits for the next letter
	assert.equal((await names(page)).join(), all, 'no run is hidden yet');
	assert.ok(!/[?&]q=/.test(page.url()), page.url());
	await page.keyboard.type('0.1');
	await lists(page, await found('params.lr > 0.1'));
	const few = (await names(page)).join();
	await page.keyboard.type(' and mod');
	await offers(page, (l) => l.join() === 'model');
	await page.waitForTimeout(600);
	assert.equal((await names(page)).join(), few);
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Tab');
	await page.keyboard.type('= ');
	await offers(page, (l) => l.includes("'cnn'") && l.includes("'resnet'"));
	await page.keyboard.type('cnn');
	await page.keyboard.press('Enter');
	await lists(page, await found("params.lr > 0.1 AND params.model = 'cnn'"));
	assert.equal(await page.inputValue(FIELD), 'lr > 0.1 and model = cnn');
	await page.keyboard.press('Escape');
	await lists(page, all.split(',').sort().join());
	await page.keyboard.press('/');
	for (const c of 'epoch/top1.max > 0.9') {
		await page.keyboard.type(c);
		await page.waitForTimeout(/[p> .]/.test(c) ? 300 : 20);
		assert.ok((await names(page)).length > 0);
	}
	await lists(page, await found('metrics."epoch/top1".max > 0.9'));
});

test('a bare name is a param or a metric, in a link too; mistakes are explained and hide nothing', async (t) => {
	const page = await here.open(t, '?e=fashion&q=epoch/top1.max+%3E+0.9');
	const want = await found('metrics."epoch/top1".max > 0.9');
	await lists(page, want);
	assert.ok(want.length > 20);
	await page.fill(FIELD, 'lrr > 0.1');
	await says(page, '.filter .problem', /no run has a param or metric 'lrr'/);
	await lists(page, want);
	await page.fill(FIELD, 'lr >');
	await page.keyboard.press('Enter');
	await says(page, '.filter .problem', /^The filter is not complete: a value is missing\.$/);
	await lists(page, want);
	await page.fill(FIELD, 'resnet');
	await lists(page, (await found("name LIKE '%resnet%'")));
	const other = await here.open(t, '?e=fashion&q=lr+%3E');
	await until(() => names(other), (l) => l.length === 12, 'a link without its end lists every run');
});
