// SPDX-License-Identifier: Apache-2.0
// First states: an empty store shows four ways to log, whose text is copied and whose Python works; the first run
// appears without a reload; the sign-in form looks like the page and explains its errors.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { clean, says, until } from '../browser.mjs';
import { builddir } from '../serve.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage();
const dptrack = (...words) => execFileSync(path.join(builddir, 'dptrack'), [...words, '--logdir', here.logdir],
	{ stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' });

test('an empty store shows four ways to log, and the first run as soon as it starts', async (t) => {
	const page = await here.open(t);
	await page.waitForSelector('.way', WAIT);
	assert.deepEqual(await page.$$eval('.way h2', (l) => l.map((e) => e.textContent)),
		['Python', 'MLflow\'s client', 'W&B\'s client', 'dptrain']);
	await says(page, '.waiting', /^Waiting for the first run/);
	const address = here.server.url.replace(/\/$/, '');
	for (const text of await page.$$eval('.way pre', (l) => l.map((e) => e.textContent)))
		assert.ok(text.includes(address), text);
	await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
	await page.focus('.way[aria-label="Python"] button');
	await page.keyboard.press('Enter');
	await says(page, '.way[aria-label="Python"] [role=status]', /^Copied$/);
	assert.equal(await page.evaluate(() => navigator.clipboard.readText()),
		await page.textContent('.way[aria-label="Python"] pre'));
	await clean(page);
	await page.emulateMedia({ colorScheme: 'dark' });
	await page.setViewportSize({ width: 390, height: 844 });
	await clean(page);
	await page.setViewportSize({ width: 1280, height: 800 });
	const all = await here.open(t, '?all');
	await all.waitForSelector('.way', WAIT);

	const { id } = await here.ask('POST', 'runs', { experiment: 'first', name: 'hello', params: { lr: '0.1' } });
	await here.ask('POST', `runs/${id}/metrics`, { points: [1, 2, 3].map((step) =>
		({ key: 'train/loss', step, value: 1 / step, wall_time: 1.8e9 + step })) });
	await page.waitForSelector(`.grid [data-run="${id}"]`, WAIT);
	await until(() => page.url(), (u) => /[?&]e=first/.test(u));
	await until(() => all.textContent('main'), (s) => /first/.test(s) && !/Waiting/.test(s));
});

test('a filter without a match says so and is cleared by one button', async (t) => {
	const page = await here.open(t, '?e=first&q=lr+%3E+5');
	await says(page, '.empty', /^No run matches the filter.*lr > 5/);
	await page.click('.empty button');
	await page.waitForSelector('.grid .body .row', WAIT);
});

test('the newest experiment is drawn by its own goal, not by a metric of the others', async (t) => {
	const log = async (experiment, keys) => {
		const { id } = await here.ask('POST', 'runs', { experiment, name: experiment });
		await here.ask('POST', `runs/${id}/metrics`, { points: keys.flatMap((key) => [1, 2].map((step) =>
			({ key, step, value: 1 / step, wall_time: 1.8e9 + step }))) });
	};
	await log('pictures', ['train/loss', 'epoch/top1', 'epoch/top5', 'epoch/samples_per_s']);
	await log('texts', ['train/loss', 'epoch/val_loss', ...Array.from({ length: 60 }, (_, i) => `layer/${i}`)]);
	const page = await here.open(t, 'health');
	await page.addInitScript(() => {
		globalThis.seen = [];
		new MutationObserver(() => globalThis.seen.push(...[...document.querySelectorAll('[data-chart]')]
			.map((e) => e.dataset.chart), ...[...document.querySelectorAll('figure .nothing')]
			.map((e) => e.textContent))).observe(document, { childList: true, subtree: true });
	});
	await page.goto(here.server.url);
	await page.waitForSelector('.app[data-ready="true"]', WAIT);
	const seen = await page.evaluate(() => globalThis.seen);
	assert.ok(seen.includes('train/loss'), seen.join());
	assert.deepEqual(seen.filter((x) => /^epoch\/(top|samples)|^No points/.test(x)), []);
});

test('the sign-in form has the page\'s colours in both themes, and its errors are sentences', async (t) => {
	const page = await here.open(t);
	await page.waitForSelector('.nav', WAIT);
	const colours = () => page.evaluate(() => {
		const probe = (sel, what) => getComputedStyle(document.querySelector(sel))[what];
		return [probe('body', 'backgroundColor'), probe('body', 'color')];
	});
	const themes = {};
	for (const colorScheme of ['light', 'dark']) {
		await page.emulateMedia({ colorScheme });
		await page.reload();
		await page.waitForSelector('.nav', WAIT);
		themes[colorScheme] = await colours();
	}
	assert.notDeepEqual(themes.light, themes.dark);
	dptrack('token', 'add', 'reader', '--scope', 'read');
	for (const colorScheme of ['light', 'dark']) {
		await page.emulateMedia({ colorScheme });
		await page.goto(here.server.url);
		await page.waitForSelector('#token', WAIT);
		assert.deepEqual(await colours(), themes[colorScheme], colorScheme);
		await clean(page);
		await page.fill('#token', 'wrong');
		await page.click('button');
		await page.waitForSelector('[role=alert]', WAIT);
		const text = await page.textContent('[role=alert]');
		assert.match(text, /^[A-Z].*\.$/);
		const bad = await page.$eval('[role=alert]', (e) => getComputedStyle(e).color);
		assert.notEqual(bad, themes[colorScheme][1], 'an error has its own colour');
		await clean(page);
	}
});
