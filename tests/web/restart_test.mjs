// The page of a run that was restarted: one curve, on request what the restart took back; and its artifacts, folder by
// folder, each a link to its bytes.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch } from './browser.mjs';
import { builddir, serveFolder } from './serve.mjs';

let browser, server, logdir, id;
const record = (script, ...options) => execFileSync(path.join(builddir, 'tests/tracker/record'),
	['runs_dir=' + logdir, 'experiment=again', 'run_name=twice', 'url=', ...options], { input: script, encoding: 'utf8' });

before(async () => {
	logdir = mkdtempSync(path.join(tmpdir(), 'dptrack-web-'));
	id = record('burst 100 train/loss 1\nclose 3\n').split(' ')[1];
	record('burst 80 train/loss 41\nclose 1\n', 'run_id=' + id, 'reopen=1', 'first_step=41');
	server = await serveFolder(logdir);
	browser = await launch();
	for (const [name, body] of [['notes/a b.txt', 'hello'], ['top.txt', 'x']]) {
		const r = await fetch(`${server.url}api/v1/runs/${id}/artifacts/${name.split('/').map(encodeURIComponent).join('/')}`, { method: 'PUT', body });
		assert.ok(r.ok, `PUT ${name}: ${r.status}`);
	}
});
after(async () => {
	await browser?.close();
	await server?.close();
	rmSync(logdir, { recursive: true, force: true });
});

test('what a restart took back, and artifacts', async (t) => {
	const context = await browser.newContext();
	t.after(() => context.close());
	const page = await context.newPage();
	const complaints = [];
	page.on('pageerror', (e) => complaints.push(String(e)));
	await page.goto(server.url + '?e=again');
	await page.click('text=twice');
	await page.waitForSelector('.runpage h1');
	const lines = () => page.evaluate(() => document.querySelector('[data-chart="train/loss"]')?.chart.drawn().lines.map((l) => l.id) ?? []);
	const until = async (n) => {
		for (let i = 0; i < 300 && (await lines()).length !== n; i++) await page.waitForTimeout(100);
		assert.equal((await lines()).length, n);
	};
	await until(1);
	await page.click('text=show what restarts took back');
	await until(2);
	assert.deepEqual(await lines(), [id, id + ':0']);
	await page.click('text=hide what restarts took back');
	await until(1);

	await page.click('text=notes/');
	const link = page.locator('.files a', { hasText: 'a b.txt' });
	await link.waitFor();
	const reply = await page.evaluate(async (href) => (await fetch(href)).text(), await link.getAttribute('href'));
	assert.equal(reply, 'hello');
	assert.deepEqual(complaints, []);
});
