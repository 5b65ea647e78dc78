// SPDX-License-Identifier: Apache-2.0
// The page of a server that requires a token: a sign-in form replaces the page; the session authorises reads, live
// events and changes; it ends when the token is revoked.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { builddir, writeTwelve } from './serve.mjs';
import { stage } from './stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage(writeTwelve);
const dptrack = (...words) => execFileSync(path.join(builddir, 'dptrack'), [...words, '--logdir', here.logdir],
	{ stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' });

test('a reader is offered no changes; addresses of MLflow\'s clients also open experiments', async (t) => {
	const token = dptrack('token', 'add', 'reader', '--scope', 'read').trim();
	const auth = { headers: { Authorization: 'Bearer ' + token } };
	const [experiment] = (await (await fetch(here.server.url + 'api/v1/experiments',
		auth)).json()).experiments.filter((e) => e.name === 'fashion');
	const page = await here.open(t, `#/experiments/${experiment.id}`);
	await page.fill('#token', token);
	await page.click('button');
	await page.waitForSelector('.grid .body .row', WAIT);
	await page.waitForURL(/[?&]e=fashion/);
	await page.click('.grid .body .row a');
	await page.waitForSelector('.runpage h1', WAIT);
	await page.click('.nav a[title="Settings"]', WAIT);
	await page.waitForSelector('text=Sign out', WAIT);
	await page.goBack();
	await page.waitForSelector('.notes', WAIT);
	assert.equal(await page.locator('.notes button').count(), 0);
});

test('sign in, and lose access when the token is revoked', async (t) => {
	const token = dptrack('token', 'add', 'browser', '--scope', 'write').trim();
	const page = await here.open(t);
	const complaints = [];
	page.on('console', (m) => m.type() === 'error' && !/40[13]/.test(m.text()) && complaints.push(m.text()));
	const first = await page.goto(here.server.url + '?e=fashion');
	assert.equal(first.status(), 401);
	assert.equal(await page.title(), 'dptrack: sign in');
	await page.fill('#token', 'wrong');
	await page.click('button');
	await page.waitForSelector('[role=alert]');
	await page.fill('#token', token);
	await page.click('button');
	await page.waitForSelector('.app[data-ready="true"]', { timeout: 30000 });
	assert.ok(page.url().endsWith('/?e=fashion'), page.url());
	assert.equal(await page.evaluate(() => document.cookie), '', 'scripts cannot read the session');

	const run = await page.evaluate(async () => (await (await fetch('api/v1/runs?limit=1')).json()).runs[0].id);
	const patch = (body) => page.evaluate(async ([id, b]) => (await fetch('api/v1/runs/' + id,
		{ method: 'PATCH', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(b) })).status,
		[run, body]);
	assert.equal(await patch({ notes: 'seen' }), 200, 'the page may change what its token allows');
	const notified = page.evaluate(() => new Promise((done) => {
		const es = new EventSource('api/v1/events');
		es.addEventListener('changes', (e) => JSON.parse(e.data).runs?.length && (es.close(), done(true)));
	}));
	await new Promise((done) => setTimeout(done, 500));
	assert.equal(await patch({ notes: 'seen again' }), 200);
	assert.equal(await notified, true, 'live events arrive with a session');
	assert.equal(await page.evaluate(async () => (await fetch('api/v1/tokens')).status), 403,
		'nothing beyond the rights of the token');

	await page.goto(`${here.server.url}#/experiments/1/runs/${run}`);
	await page.waitForSelector('.runpage h1', WAIT);
	await page.click('.nav a[title="Settings"]', WAIT);
	await page.click('text=Sign out', WAIT);
	await page.waitForSelector('#token', WAIT);
	assert.equal((await page.context().cookies()).length, 0, 'signed out');
	await page.goto(`${here.server.url}#/experiments/1/runs/${run}`);
	await page.fill('#token', 'wrong');
	await page.click('button');
	await page.waitForSelector('[role=alert]');
	await page.fill('#token', token);
	await page.click('button');
	await page.waitForSelector('.runpage h1', WAIT);
	await page.waitForURL((address) => address.search.includes('r=' + run.slice(0, 8)));

	dptrack('token', 'revoke', 'browser');
	assert.equal(await page.evaluate(async () => (await fetch('api/v1/runs')).status), 401, 'revoked at once');
	await page.waitForSelector('.banner:has-text("signed out")', WAIT);
	await page.reload();
	assert.equal(await page.title(), 'dptrack: sign in');
	assert.deepEqual(complaints, []);
});
