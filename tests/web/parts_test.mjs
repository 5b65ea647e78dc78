// SPDX-License-Identifier: Apache-2.0
// What the first screen loads, and what is loaded later; what a reader sees when a later part fails to load: the server
// is down, has a newer page, or one request failed.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { loaded } from './browser.mjs';
import { dist, writeTwelve } from './serve.mjs';
import { stage } from './stage.mjs';

const FIRST_BYTES = 65 * 1024;
const WAIT = { timeout: 30000 };
const MARKDOWN = /\/markdown-[\w-]+\.js/;
const RUN = /\/run-[\w-]+\.js/;
const here = stage(writeTwelve);

/** Opens a page of the stage and records its scripts; before(page) installs the obstacles. */
async function open(t, query, before = () => {}) {
	const scripts = [];
	const page = await here.open(t, 'health');
	page.on('request', (r) => r.url().endsWith('.js') && scripts.push(new URL(r.url()).pathname));
	await before(page);
	await page.goto(here.server.url + query);
	return { page, scripts };
}

const withNotes = async () => {
	const { runs } = await here.ask('GET', 'runs?limit=50');
	return runs.find((r) => r.notes).id;
};
/** Answers the page's own request for the page with one that loads another script. */
const newer = (route) => (route.request().resourceType() === 'fetch'
	? route.fulfill({ contentType: 'text/html', body: '<script type="module" src="page-NEW00000.js"></script>' })
	: route.fallback());

test('the first screen loads little, and nothing twice', async (t) => {
	const html = readFileSync(path.join(dist, 'index.html'), 'utf8');
	const names = [...html.matchAll(/(?:href|src)="([^"]+\.js)"/g)].map((m) => m[1]);
	const bytes = names.reduce((n, f) => n + gzipSync(readFileSync(path.join(dist, f)), { level: 9 }).length, 0);
	console.log(`# scripts of the first screen: ${bytes} bytes compressed`);
	assert.ok(bytes <= FIRST_BYTES, `${bytes} bytes`);
	const { page, scripts } = await open(t, '');
	await page.waitForSelector('.app[data-ready="true"]', WAIT);
	for (const n of names) assert.equal(scripts.filter((s) => s === '/' + n).length, 1, n);
	assert.ok(!scripts.some((s) => MARKDOWN.test(s)), String(scripts));
	const reply = await fetch(here.server.url + names[0]);
	assert.match(reply.headers.get('cache-control'), /immutable/);
});

test('a note is never shown as plain text before Markdown', async (t) => {
	let pre = false;
	const { page, scripts } = await open(t, '?r=' + await withNotes(), async (p) => {
		await p.exposeFunction('sawText', () => (pre = true));
		await p.addInitScript(() =>
			new MutationObserver(() => document.querySelector('.notes pre') && globalThis.sawText())
			.observe(document, { childList: true, subtree: true }));
	});
	await page.waitForSelector('.notes .markdown', WAIT);
	assert.ok(scripts.some((s) => MARKDOWN.test(s)));
	assert.equal(pre, false);
});

test('a part that failed to load is reported, and loads on retry', async (t) => {
	const { page } = await open(t, '?r=' + await withNotes(), (p) => p.route(MARKDOWN, (r) => r.abort()));
	await page.waitForSelector('.notes .lost:has-text("could not be loaded")', WAIT);
	assert.ok((await page.textContent('.notes pre')).length > 10, 'the text is shown nevertheless');
	await page.unroute(MARKDOWN);
	await loaded(page, '.notes .markdown');
	assert.equal(await page.locator('.lost').count(), 0);
});

test('a server with a newer page makes the page offer a reload', async (t) => {
	const { page } = await open(t, '?r=' + await withNotes(), async (p) => {
		await p.route(RUN, (r) => r.fulfill({ status: 404, body: '' }));
		await p.route(here.server.url, newer);
	});
	await page.waitForSelector('.lost:has-text("newer version")', WAIT);
	await page.unroute(RUN);
	await page.unroute(here.server.url);
	await page.click('.lost button:has-text("Reload")');
	await page.waitForSelector('.runpage h1', WAIT);
});

test('a part waits for a server that is down', async (t) => {
	const { page } = await open(t, '?r=' + await withNotes(), async (p) => {
		await p.route(MARKDOWN, (r) => r.abort());
		await p.route(here.server.url,
			(r) => (r.request().resourceType() === 'fetch' ? r.abort() : r.fallback()));
	});
	await page.waitForSelector('.banner:has-text("does not answer")', WAIT);
	await page.waitForSelector('.notes pre', WAIT);
	await page.unroute(MARKDOWN);
	await page.unroute(here.server.url);
	await page.waitForSelector('.banner', { ...WAIT, state: 'detached' });
	await loaded(page, '.notes .markdown');
});
