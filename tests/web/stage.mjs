// SPDX-License-Identifier: Apache-2.0
// The stage of a test file: a browser and `dptrack serve` on a private folder, created before its first test and closed
// after its last. An exception in a page's script fails the test.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before } from 'node:test';
import { launch } from './browser.mjs';
import { serveFolder } from './serve.mjs';

/** Creates the stage {browser, server, logdir, open, ask}; fill(logdir) writes what the server reads at its start. */
export function stage(fill = () => {}) {
	const s = {};
	before(async () => {
		s.logdir = mkdtempSync(path.join(tmpdir(), 'dptrack-web-'));
		fill(s.logdir);
		s.server = await serveFolder(s.logdir);
		s.browser = await launch();
	});
	after(async () => {
		await s.browser?.close();
		await s.server?.close();
		rmSync(s.logdir, { recursive: true, force: true });
	});
	/** Opens a page in a fresh context, which is closed after test t. */
	s.open = async (t, address = '') => {
		const context = await s.browser.newContext({ viewport: { width: 1280, height: 800 } });
		const page = await context.newPage();
		const thrown = [];
		page.on('pageerror', (e) => thrown.push(String(e.stack)));
		t.after(async () => {
			await context.close();
			assert.deepEqual(thrown, []);
		});
		await page.goto(s.server.url + address);
		return page;
	};
	/** Makes a REST v1 call that must succeed; returns its JSON. */
	s.ask = async (method, address, body) => {
		const r = await fetch(s.server.url + 'api/v1/' + address,
			{ method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
		assert.ok(r.ok, `${method} ${address}: ${r.status}`);
		return r.json();
	};
	return s;
}
