// SPDX-License-Identifier: Apache-2.0
// The page of a run that was restarted: one curve, with the rolled-back points on request; and its artifacts, folder by
// folder, each a link to its bytes.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { charted, says, until } from './browser.mjs';
import { builddir } from './serve.mjs';
import { stage } from './stage.mjs';

let id;
const here = stage((logdir) => {
	const record = (script, ...options) => execFileSync(path.join(builddir, 'tests/tracker/record'),
		['runs_dir=' + logdir, 'experiment=again', 'run_name=twice', 'url=', ...options],
		{ input: script, encoding: 'utf8' });
	id = record('burst 100 train/loss 1\nclose 3\n').split(' ')[1];
	record('burst 80 train/loss 41\nclose 1\n', 'run_id=' + id, 'reopen=1', 'first_step=41');
});

/** Checks that a chart by rank is readable as a sentence, at the keyboard cursor, and as a table. */
async function readRanks(figure, page) {
	const by = await figure.locator('.plot').getAttribute('aria-describedby');
	assert.equal(await page.textContent('#' + by), '3 ranks. Highest mean: rank 1, 0.7; lowest: rank 2, 0.5.');
	await figure.locator('.plot').focus();
	await page.keyboard.press('Home');
	await until(() => figure.locator('.readout').textContent(),
		(text) => text === 'step 1: rank 1 0.7, rank 0 0.5, rank 2 0.5', 'the values at the first step');
	await figure.locator('button', { hasText: 'Table' }).press('Enter');
	const rows = await figure.locator('.values tbody tr').evaluateAll((list) =>
		list.map((r) => [...r.children].slice(0, 4).map((c) => c.textContent)));
	assert.deepEqual(rows, [0.5, 0.7, 0.5].map((v, i) => ['rank ' + i, ...Array(3).fill(String(v))]));
	assert.equal(await figure.locator('.values thead th').first().textContent(), 'Rank');
	await page.keyboard.press('Escape');
}

test('notes are rendered as Markdown, ranks are compared step by step', async (t) => {
	const points = [0, 1, 2].flatMap((rank) =>
		Array.from({ length: 40 }, (_, i) => [['phase/step', 1], ['phase/forward', rank === 1 ? 0.7 : 0.5],
		['phase/comm_exposed', rank === 1 ? 0.3 : 0.5]]
			.map(([key, value]) => ({ key, rank, step: i + 1, value, wall_time: 1e9 + i })))).flat();
	const made = await here.ask('POST', 'runs', { experiment: 'again', name: 'three' });
	await here.ask('POST', `runs/${made.id}/metrics`, { points });
	const notes = '## Why\n\n- **slow** disk, see [there](https://example.org/x)\n'
		+ '- <i>no</i> [x](javascript:alert(1)) [y](//host/y)\n- [x] done\n\n'
		+ '| a | b |\n|--:|---|\n| 1 | `2` |\n';
	await here.ask('PATCH', 'runs/' + made.id, { notes });
	const page = await here.open(t, '?r=' + made.id);
	await page.waitForSelector('.markdown li strong');
	assert.equal(await page.textContent('.markdown h4'), 'Why');
	assert.equal(await page.getAttribute('.markdown a', 'href'), 'https://example.org/x');
	assert.match(await page.textContent('.markdown'), /<i>no<\/i> \[x\]\(javascript:alert\(1\)\) \[y\]/);
	assert.equal(await page.locator('.markdown a').count(), 1);
	assert.ok(await page.isChecked('.markdown li input'));
	assert.equal(await page.textContent('.markdown td.right'), '1');
	await page.click('.tabs a:text-is("Timeline")');
	await page.waitForSelector('.heat canvas');
	await says(page, '.ranks', /Rank 1 was more than 5 % slower than the usual rank in 100 % of the time/);
	await says(page, '.rankbars', /Rank 1 is 40 % slower.*mostly in forward/s);
	await page.focus('.heat canvas');
	await page.keyboard.press('ArrowDown');
	await says(page, '.readout', /^rank 1, step 1: 700 ms, 40 % more than the usual rank$/);
	const inks = () => page.$eval('.heat canvas', (c) => [0.2, 0.5, 0.8]
		.map((y) => c.getContext('2d').getImageData(c.width / 2, c.height * y, 1, 1).data[3]));
	await until(inks, (ink) => ink[1] > 50 && !ink[0] && !ink[2], 'only the slow rank has ink');
	await page.click('.tabs a:text-is("System")');
	const drawn = await charted(page, 'phase/forward', (d) => d.lines.length === 3);
	assert.deepEqual(drawn.names, ['rank 0', 'rank 1', 'rank 2']);
	assert.deepEqual(drawn.lines.map((l) => [l.points, l.top]), [[40, 0.5], [40, 0.7], [40, 0.5]]);
	await readRanks(page.locator('figure', { has: page.locator('[data-rank-chart="phase/forward"]') }), page);
});

test('rolled-back points and artifacts', async (t) => {
	for (const [name, body] of [['notes/a b.txt', 'hello'], ['top.txt', 'x']]) {
		const place = name.split('/').map(encodeURIComponent).join('/');
		const address = `${here.server.url}api/v1/runs/${id}/artifacts/${place}`;
		const r = await fetch(address, { method: 'PUT', body });
		assert.ok(r.ok, `PUT ${name}: ${r.status}`);
	}
	const page = await here.open(t, '?e=again');
	await page.click('text=twice');
	await page.waitForSelector('.runpage h1');
	const lines = (...ids) => charted(page, 'train/loss', (d) => d.lines.map((l) => l.id).join() === ids.join());
	await lines(id);
	await page.click('text=Show rolled-back points');
	await lines(id, id + ':0');
	await page.click('text=Hide rolled-back points');
	await lines(id);

	await page.click('.tabs a:text-is("Files")');
	await page.click('text=notes/');
	const link = page.locator('.files a', { hasText: 'a b.txt' });
	await link.waitFor();
	const reply = await page.evaluate(async (href) => (await fetch(href)).text(), await link.getAttribute('href'));
	assert.equal(reply, 'hello');
	await says(page, '.runpage', /restarted once/);
});
