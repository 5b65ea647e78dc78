// SPDX-License-Identifier: Apache-2.0
// Runs of hundreds of metrics next to an experiment of one run: bytes transferred, table contents, search.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawn, says, until } from './browser.mjs';
import { stage } from './stage.mjs';

const RUNS = 70;
const KEYS = 150;
const ROW_BYTES = 6000;

const s = stage();
const key = (i) => `layer${i % 20}/head${i} ${i % 3 ? 'alive' : 'dead'}`;

async function fill() {
	for (let r = 0; r < RUNS; r++) {
		const run = await s.ask('POST', 'runs', { experiment: 'wide', name: `wide-${r}`,
			params: { lr: String(0.1 * (r + 1)), model: ['a', 'b', 'c'][r % 3] }, start_time: 1.7e12 + r });
		const of = (k, v) => [1, 2, 3]
			.map((step) => ({ key: k, step, value: v + step, wall_time: 1.7e9 + step }));
		await s.ask('POST', `runs/${run.id}/metrics`, { points: [
			...Array.from({ length: KEYS }, (_, i) => of(key(i), i)).flat(),
			...of('train/loss', 1), ...of('epoch/top1', r)] });
		await s.ask('PATCH', `runs/${run.id}`, { status: 'finished' });
	}
	const one = await s.ask('POST', 'runs', { experiment: 'small', name: 'only', params: { lr: '1' } });
	await s.ask('POST', `runs/${one.id}/metrics`, { points: [1, 2, 3].map((step) =>
		({ key: 'loss', step, value: step, wall_time: 1.7e9 + step })) });
	await s.ask('PATCH', `runs/${one.id}`, { status: 'finished' });
}
let filled = null;

/** Records the page's requests to /runs, and their sizes. */
async function watched(t, address) {
	await (filled ??= fill());
	const page = await s.open(t, 'health');
	const asked = [];
	page.on('response', async (r) => {
		if (!r.url().includes('/api/v1/runs?')) return;
		asked.push({ url: new URL(r.url()), bytes: (await r.body().catch(() => '')).length });
	});
	await page.goto(s.server.url + address);
	await drawn(page);
	return { page, asked };
}

test('the first frame makes only the rows that the table shows; more rows and chart groups follow', async (t) => {
	await (filled ??= fill());
	const page = await s.open(t, 'health');
	await page.addInitScript(() => {
		const count = (q) => document.querySelectorAll(q).length;
		const look = () => {
			if (!count('.grid .body .row')) return requestAnimationFrame(look);
			globalThis.firstFrame = { rows: count('.grid .body .row'), groups: count('.group') };
		};
		requestAnimationFrame(look);
	});
	await page.goto(s.server.url + '?e=wide');
	await drawn(page);
	const { rows, groups } = await page.evaluate(() => globalThis.firstFrame);
	const shown = await page.$eval('.grid', (el) => Math.ceil(el.clientHeight / 27));
	assert.ok(rows > shown - 3 && rows <= shown, `${rows} rows made, ${shown} shown`);
	assert.equal(groups, 0);
	await until(() => page.$$eval('.grid .body .row', (l) => l.length), (n) => n > shown, 'more rows');
	await until(() => page.$$eval('.group', (l) => l.length), (n) => n > 20, 'groups of charts');
});

test('an experiment of one run does not pay for the wide one next to it', async (t) => {
	const { page, asked } = await watched(t, '?e=small');
	await page.waitForTimeout(300);
	for (const a of asked) assert.deepEqual(a.url.searchParams.getAll('experiment'), ['small'], a.url.search);
	assert.ok(asked.reduce((n, a) => n + a.bytes, 0) < 20000, JSON.stringify(asked));
});

test('the requests that the server has the browser preload are those of the page', async (t) => {
	await (filled ??= fill());
	for (const address of ['?e=wide', '?e=small&e=wide', '', '?all']) {
		const page = await s.open(t, 'health');
		const asked = [];
		page.on('request', (r) => asked.push(r.url()));
		await page.goto(s.server.url + address);
		await (address === '?all' ? page.waitForSelector('main a:text-is("wide")') : drawn(page));
		const { headers } = await fetch(s.server.url + address);
		const ahead = new URL(/^<([^>]*)>; rel=preload/.exec(headers.get('link'))[1], s.server.url);
		const alike = asked.filter((u) => new URL(u).pathname === ahead.pathname
			&& (address === '?all' || u.includes('params_max')));
		const newest = ahead.href.replace('&metrics=', '&experiment=small&metrics='); // for its keys alone
		assert.deepEqual([...new Set(alike)], address ? [ahead.href] : [ahead.href, newest], address);
	}
});

test('of wide runs only the shown columns are transferred; others are fetched when picked', async (t) => {
	const { page, asked } = await watched(t, '?e=wide');
	await says(page, '.grid b.best', /^72$/);
	assert.equal(await page.textContent('.grid .body .row[aria-rowindex="2"] a'), 'wide-69');
	assert.equal(new Set(asked.map((a) => a.url.search)).size, asked.length, 'no request is repeated');
	const bytes = asked.reduce((n, a) => n + a.bytes, 0);
	assert.ok(bytes < RUNS * ROW_BYTES, `${bytes} bytes of runs`);
	await page.click('.head button:has-text("Columns")');
	await page.fill('.picker input[type=search]', 'head7 alive last');
	await page.click('.picker .line >> nth=0');
	await until(() => page.$$eval('.grid .body .row', (l) => l.map((r) => r.textContent)),
		(l) => l.length > 10 && l.every((x) => x.includes('10')), 'the picked column has its numbers');
});

test('among many metrics, charts and goals are found by words in any order', async (t) => {
	const { page } = await watched(t, '?e=wide');
	await page.fill('input[aria-label="Find a chart"]', 'dead head3');
	await until(() => page.$$eval('[data-chart]', (l) => l.map((c) => c.dataset.chart)),
		(l) => l.length > 0 && l.every((k) => k.includes('head3') && k.includes('dead')));
	assert.equal(await page.locator('.goal select').count(), 0);
	await page.click('.goal .pop > button');
	await page.fill('input[aria-label="Find: Goal"]', 'alive head7');
	await page.keyboard.press('Enter');
	await says(page, '.goal .pop > button', /head7.*alive/);
	await until(() => page.$$eval('.grid .head .cell', (l) => l.map((c) => c.textContent).join()),
		(x) => /head7/.test(x));
});

test('of many params those that differ are transferred first; the others follow automatically', async (t) => {
	const same = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`same${i}`, 'x']));
	for (let r = 0; r < 5; r++) {
		const own = r === 4 ? { late: 'only here' } : {};
		await s.ask('POST', 'runs', { experiment: 'params', name: `run-${r}`, start_time: 1.7e12 + r,
			params: { ...same, model: 'm', z10: String(r), z9: String(r > 2), ...own } });
	}
	const got = await s.ask('GET', 'runs?experiment=params&params_max=5&params=nothing&params=model');
	assert.equal(got.params_left_out, true);
	assert.deepEqual(got.runs.map((r) => Object.keys(r.params)), [['late', 'model', 'same0', 'z10', 'z9'],
		...Array.from({ length: 4 }, () => ['model', 'same0', 'z10', 'z9'])]);
	assert.deepEqual(got.runs.map((r) => r.params.z10), ['4', '3', '2', '1', '0']);
	const whole = await s.ask('GET', 'runs?experiment=params&params_max=54');
	assert.equal(whole.params_left_out, undefined);
	assert.deepEqual(whole.runs, (await s.ask('GET', 'runs?experiment=params')).runs);
	const page = await s.open(t, '?e=params');
	await page.click('.head button:has-text("Columns")');
	await page.fill('.picker input[type=search]', 'same49');
	await page.click('.picker .line >> nth=0');
	await until(() => page.$$eval('.grid .body .row', (l) => l.map((r) => r.textContent)),
		(l) => l.length === 5 && l.every((x) => x.includes('x')), 'the picked param has its values');
	const linked = await s.open(t, '?e=params&c=p:same48&c=p:z10');
	await until(() => linked.$$eval('.grid .body .row', (l) => l.map((r) => r.textContent)),
		(l) => l.length === 5 && l.every((x) => x.includes('x')), 'a column of the address has its values');
});
