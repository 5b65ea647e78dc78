// What the first screen loads and what comes later; what a reader sees when a later part cannot be had: the server is
// away, has a newer page, or this once something went wrong.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { loaded } from './browser.mjs';
import { dist, writeTwelve } from './serve.mjs';
import { stage } from './stage.mjs';

const FIRST_BYTES = 60 * 1024;
const WAIT = { timeout: 30000 };
const MARKDOWN = /\/markdown-[\w-]+\.js/;
const RUN = /\/run-[\w-]+\.js/;
const here = stage(writeTwelve);

/** A page of the stage whose scripts are noted; before(page) sets what stands in their way. */
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
/** Answers the page's script that asks for the page itself with one that has another script in it. */
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

test('a note is never shown first as text, then as Markdown', async (t) => {
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

test('a part that could not be loaded says so, and comes when asked again', async (t) => {
	const { page } = await open(t, '?r=' + await withNotes(), (p) => p.route(MARKDOWN, (r) => r.abort()));
	await page.waitForSelector('.notes .lost:has-text("could not be loaded")', WAIT);
	assert.ok((await page.textContent('.notes pre')).length > 10, 'the text is there all the same');
	await page.unroute(MARKDOWN);
	await loaded(page, '.notes .markdown');
	assert.equal(await page.locator('.lost').count(), 0);
});

test('a server with a newer page asks for a reload', async (t) => {
	const { page } = await open(t, '?r=' + await withNotes(), async (p) => {
		await p.route(RUN, (r) => r.fulfill({ status: 404, body: '' }));
		await p.route(here.server.url, newer);
	});
	await page.waitForSelector('.lost:has-text("newer version")', WAIT);
	await page.unroute(RUN);
	await page.unroute(here.server.url);
	await page.click('.lost button:has-text("reload")');
	await page.waitForSelector('.runpage h1', WAIT);
});

test('a part waits for a server that is away', async (t) => {
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
