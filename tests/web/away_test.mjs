// SPDX-License-Identifier: Apache-2.0
// The server stops and restarts while the page is open: the page reports it, reconnects and shows the changes. A
// filtered table follows changes too, and a deleted run leaves the table.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { charted, loaded, says } from './browser.mjs';
import { serveFolder } from './serve.mjs';
import { stage } from './stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage();
const create = (name) => here.ask('POST', 'runs', { experiment: 'here', name, params: { lr: '0.1' } });
const log = (id, from, to) =>
	here.ask('POST', `runs/${id}/metrics`, { points: Array.from({ length: to - from }, (_, i) => ({
	key: 'train/loss', step: from + i, value: 3 - (from + i) / 100, wall_time: 1.8e9 + from + i })) });

async function open(t, query) {
	const page = await here.open(t, query);
	await page.waitForSelector('.app[data-ready="true"]', WAIT);
	return page;
}

const rows = (page, n) =>
	page.waitForFunction((k) => document.querySelectorAll('.grid .body .row').length === k, n, WAIT);
const points = (page, n) => charted(page, 'train/loss', (d) => d.lines[0]?.points === n);

test('the page reconnects after the server restarts', async (t) => {
	const { id } = await create('one');
	await log(id, 0, 50);
	const page = await open(t, '?e=here');
	await points(page, 50);
	const port = new URL(here.server.url).port;
	await here.server.close();
	await says(page, '.banner', /does not answer/);
	assert.equal(await page.locator('.grid .body .row').count(), 1, 'rows stay while the server is down');
	await page.click('.grid .body .row a');
	await page.waitForSelector('.empty, .lost', WAIT); // .lost: it stopped before the run page was fetched
	here.server = await serveFolder(here.logdir, port);
	await log(id, 50, 60);
	await create('two');
	await loaded(page, '.runpage h1');
	await page.waitForSelector('.banner', { ...WAIT, state: 'detached' });
	await points(page, 60);
	await page.goBack();
	await rows(page, 2);
});

test('a change between the list and the events is shown; so is one while the tab is hidden', async (t) => {
	const { id } = await here.ask('POST', 'runs', { experiment: 'between', name: 'one' });
	await log(id, 0, 50);
	await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	const change = async (n) => {
		await here.ask('PATCH', 'runs/' + id, { name: 'name ' + n });
		await log(id, 49 + n, 50 + n);
	};
	const page = await here.open(t, 'health'); // no page of ours, so no events yet
	await page.route('**/api/v1/events*', async (route) => {
		await change(1);
		await route.continue();
	}, { times: 1 });
	await page.goto(here.server.url + '?e=between');
	await says(page, '.grid .body .row', /name 1/);
	await points(page, 51);
	const hide = (hidden) => page.evaluate((is) => {
		Object.defineProperty(document, 'hidden', { value: is, configurable: true });
		document.dispatchEvent(new Event('visibilitychange'));
	}, hidden);
	await hide(true);
	// more than one request of the page asks for
	for (let i = 0; i < 101; i++) await here.ask('POST', 'runs', { experiment: 'elsewhere' });
	await change(2);
	await hide(false);
	await says(page, '.grid .body .row', /name 2/);
	await points(page, 52);
});

// Shopify/dashing#86 and nginx#1505: a proxy that collects replies never hands on the stream's headers.
test('a stream of events that never opens: the page polls', async (t) => {
	const finish = async (name) => {
		const { id } = await here.ask('POST', 'runs', { experiment: 'held', name });
		await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	};
	await finish('one');
	const page = await here.open(t, 'health');
	await page.route('**/api/v1/events*', () => undefined);
	await page.goto(here.server.url + '?e=held');
	await rows(page, 1);
	await finish('two');
	await rows(page, 2);
	await finish('three');
	await rows(page, 3);
	assert.equal(await page.locator('.banner').count(), 0);
});

test('an experiment with more runs than one page of the API', async (t) => {
	for (let i = 0; i < 230; i++) await here.ask('POST', 'runs',
		{ experiment: 'many', name: 'a-name-that-is-longer-than-its-column-number-' + i });
	const page = await open(t, '?e=many');
	await page.waitForFunction(() => document.querySelector('.grid')?.ariaRowCount === '231', null, WAIT);
	assert.equal(await page.locator('.banner').count(), 0);
});

test('new runs appear if they match the filter, deleted runs disappear', async (t) => {
	const page = await open(t, '?e=here&q=' + encodeURIComponent("name LIKE 'n%'"));
	const { id } = await create('new');
	await create('other');
	await rows(page, 1);
	await here.ask('PATCH', 'runs/' + id, { name: 'renamed' });
	await page.waitForSelector('text=No run matches', WAIT);
	await page.click('text=Clear the filter');
	await rows(page, 4);
	await here.ask('DELETE', 'runs/' + id);
	await rows(page, 3);
});
