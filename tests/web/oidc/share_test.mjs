// SPDX-License-Identifier: Apache-2.0
// An admin makes links on the page; a browser without a token opens them. It sees what they show, asks for nothing that
// is refused, is offered nothing else, and the secret is not in its address.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { builddir, writeTwelve } from '../serve.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage(writeTwelve);
const dptrack = (...words) => execFileSync(path.join(builddir, 'dptrack'), [...words, '--logdir', here.logdir],
	{ stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' });

/** Opens a link in a browser of its own; complaints: refused requests and errors. */
async function visit(t, link) {
	const page = await here.open(t);
	const complaints = [];
	page.on('response', (r) => r.status() >= 400 && complaints.push(`${r.status()} ${r.url()}`));
	page.on('console', (m) => m.type() === 'error' && complaints.push(m.text()));
	page.on('pageerror', (e) => complaints.push(String(e)));
	await page.goto(link);
	return { page, complaints };
}

const make = async (page, button) => {
	await page.click(button, WAIT);
	await page.click('button:has-text("Make link")', WAIT);
	await page.waitForSelector('[aria-label=Link]', WAIT);
	return page.inputValue('[aria-label=Link]');
};

async function quiet(page, complaints, link) {
	await page.waitForSelector('.app[data-ready="true"]', WAIT);
	await page.waitForSelector('.sharednote:has-text("Shared by boss")', WAIT);
	await page.waitForTimeout(1500);
	assert.deepEqual(complaints, []);
	assert.ok(!page.url().includes(link.split('#')[1]), 'the secret is not in the address');
	for (const gone of ['.nav', '.where', '.head .filter'])
		assert.equal(await page.locator(gone + ' >> visible=true').count(), 0, gone);
	assert.equal(await page.locator('button:has-text("Share")').count(), 0);
}

test('links to a run, a report, a view and a comparison', async (t) => {
	const token = dptrack('token', 'add', 'boss', '--scope', 'admin').trim();
	const headers = { Authorization: 'Bearer ' + token, 'Content-Type': 'application/json' };
	const api = async (to, body, method = body ? 'POST' : 'GET') => (await fetch(here.server.url + 'api/v1/' + to,
		{ method, headers, body: body && JSON.stringify(body) })).json();
	const { runs } = await api('runs?experiment=fashion&limit=3');
	const view = await api('views', { experiment: 'fashion', name: 'some',
		query: `?e=fashion&q=name+%3D+%27${encodeURIComponent(runs[0].name)}%27` });
	const report = await api('reports', { experiment: 'fashion', name: 'Told',
		text: `Text.\n\n\`\`\`panel\nmetrics: train/loss\nruns: ${runs[0].id.slice(0, 8)}\n\`\`\`\n` });
	const admin = await here.open(t);
	await admin.goto(here.server.url + `?e=fashion&r=${runs[0].id.slice(0, 12)}`);
	await admin.fill('#token', token);
	await admin.click('button');

	const run = await make(admin, '.runhead button:has-text("Share")');
	const one = await visit(t, run);
	await one.page.waitForSelector(`.runpage h1:has-text("${runs[0].name}")`, WAIT);
	await quiet(one.page, one.complaints, run);
	for (const tab of ['charts', 'media', 'console', 'files', 'timeline']) {
		await one.page.click(`.tabs a[href*="t=${tab}"]`);
		await one.page.waitForTimeout(300);
	}
	assert.deepEqual(one.complaints, [], 'the tabs of the run');
	assert.equal(await one.page.evaluate(async (id) => (await fetch('api/v1/runs/' + id)).status, runs[1].id), 404);

	await admin.goto(here.server.url + `?e=fashion&report=${report.id}`);
	const told = await visit(t, await make(admin, '.reports button:has-text("Share")'));
	await told.page.waitForSelector('.reporttext h1:has-text("Told")', WAIT);
	await told.page.waitForSelector('.reporttext canvas, .reporttext svg', WAIT);
	await quiet(told.page, told.complaints, run);

	await admin.goto(here.server.url + `?e=fashion&o=${runs.map((r) => r.id.slice(0, 8)).join('.')}`);
	await admin.click('.head button:text-is("Compare")', WAIT); // with the two of make(): 3 clicks
	const side = await visit(t, await make(admin, '.side button:has-text("Share")'));
	await side.page.waitForSelector('.side table', WAIT);
	await quiet(side.page, side.complaints, run);

	await admin.goto(here.server.url + '?e=fashion');
	await admin.click('.head button:has-text("Views")', WAIT);
	const some = await visit(t, await make(admin, '[aria-label="Share some"]'));
	await some.page.waitForSelector('.grid .body .row', WAIT);
	await quiet(some.page, some.complaints, run);
	assert.deepEqual(await some.page.$$eval('.grid .body .row a', (l) => l.map((a) => a.textContent)),
		[runs[0].name]);

	const { shares } = await api('shares');
	assert.deepEqual(shares.map((s) => s.kind).sort(), ['comparison', 'report', 'run', 'view']);
	for (const s of shares) await api('shares/' + s.id, undefined, 'DELETE');
	const late = await visit(t, run);
	await late.page.waitForSelector('h1:has-text("has ended: ask boss")', WAIT);
	assert.equal(view.name, 'some');
});
