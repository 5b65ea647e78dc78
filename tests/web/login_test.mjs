// The page of a server that wants a token, in a real browser: a form instead of the page, a session that carries reads, live
// changes and changes by the reader, and its end when the token is revoked.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch } from './browser.mjs';
import { builddir, serveFolder, writeTwelve } from './serve.mjs';

let browser, server, logdir;
const dptrack = (...words) => execFileSync(path.join(builddir, 'dptrack'), [...words, '--logdir', logdir],
	{ stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' });

before(async () => {
	logdir = mkdtempSync(path.join(tmpdir(), 'dptrack-web-'));
	writeTwelve(logdir);
	server = await serveFolder(logdir);
	browser = await launch();
});
after(async () => {
	await browser?.close();
	await server?.close();
	rmSync(logdir, { recursive: true, force: true });
});

test('signing in', async (t) => {
	const token = dptrack('token', 'add', 'browser', '--scope', 'write').trim();
	const context = await browser.newContext();
	t.after(() => context.close());
	const page = await context.newPage();
	const complaints = [];
	page.on('console', (m) => m.type() === 'error' && !/40[13]/.test(m.text()) && complaints.push(m.text()));
	page.on('pageerror', (e) => complaints.push(String(e)));
	const first = await page.goto(server.url + '?e=fashion');
	assert.equal(first.status(), 401);
	assert.equal(await page.title(), 'dptrack: sign in');
	await page.fill('#token', 'wrong');
	await page.click('button');
	await page.waitForSelector('[role=alert]');
	await page.fill('#token', token);
	await page.click('button');
	await page.waitForSelector('.app[data-ready="true"]', { timeout: 30000 });
	assert.ok(page.url().endsWith('/?e=fashion'), page.url());
	assert.equal(await page.evaluate(() => document.cookie), '', 'scripts do not see the session');

	const run = await page.evaluate(async () => (await (await fetch('api/v1/runs?limit=1')).json()).runs[0].id);
	const patch = (body) => page.evaluate(async ([id, b]) => (await fetch('api/v1/runs/' + id,
		{ method: 'PATCH', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(b) })).status, [run, body]);
	assert.equal(await patch({ notes: 'seen' }), 200, 'the page may change what its token may');
	const told = page.evaluate(() => new Promise((done) => {
		const es = new EventSource('api/v1/events');
		es.addEventListener('changes', (e) => JSON.parse(e.data).runs?.length && (es.close(), done(true)));
	}));
	await new Promise((done) => setTimeout(done, 500));
	assert.equal(await patch({ notes: 'seen again' }), 200);
	assert.equal(await told, true, 'live with a session');
	assert.equal(await page.evaluate(async () => (await fetch('api/v1/tokens')).status), 403, 'no more than the token');

	dptrack('token', 'revoke', 'browser');
	assert.equal(await page.evaluate(async () => (await fetch('api/v1/runs')).status), 401, 'revoked at once');
	await page.reload();
	assert.equal(await page.title(), 'dptrack: sign in');
	assert.deepEqual(complaints, []);
});
