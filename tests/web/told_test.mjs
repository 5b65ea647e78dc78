// SPDX-License-Identifier: Apache-2.0
// Media over steps, the console, code, files and alerts on a run's page; and two runs side by side.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { charted, clean, require, says, until } from './browser.mjs';
import { builddir } from './serve.mjs';
import { stage } from './stage.mjs';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';

const WAIT = { timeout: 30000 };
const here = stage((logdir) => {
	execFileSync(path.join(builddir, 'tests/web/told_record'), [logdir]);
	const own = path.join(logdir, 'told', readdirSync(path.join(logdir, 'told')).find((n) => n.startsWith('one-')));
	mkdirSync(path.join(own, 'checkpoints/step-30'), { recursive: true });
	writeFileSync(path.join(own, 'checkpoints/step-30/model.safetensors'), new Uint8Array(4096));
	writeFileSync(path.join(own, 'final.safetensors'), new Uint8Array(2048));
});

/** Opens a tab of a run's page; those of media and the console have charts too. */
async function opened(t, name, query = '') {
	const { runs } = await here.ask('GET', 'runs?experiment=told');
	const page = await here.open(t, `?e=told&r=${runs.find((r) => r.name === name).id}${query}`);
	if (!/t=files/.test(query)) await charted(page, 'train/loss', (d) => d.lines.length === 1);
	return page;
}

test('a failed run says the reason that its program gave, which is not a fact of its environment', async (t) => {
	const { runs: [small] } = await here.ask('GET', 'runs?experiment=reason');
	const { status_reason: reason, environment } = await here.ask('GET', 'runs/' + small.id);
	assert.equal(reason, 'the quota of the store is exceeded');
	assert.equal(environment.status_reason, undefined);
	const page = await here.open(t, '?e=reason&r=' + small.id);
	await says(page, '.failure h2 code', /^the quota of the store is exceeded$/);
	const table = await here.open(t, '?e=reason');
	await table.waitForSelector('.grid .mark.failed[title$=": the quota of the store is exceeded"]', WAIT);
});

test('byte counts of a run have units, with the exact number as their tooltip', async (t) => {
	const params = { memory_bytes: '17179869184', bytes_of: 'x', steps: '2048' };
	await here.ask('POST', 'runs', { experiment: 'sizes', name: 'other', params });
	const { id } = await here.ask('POST', 'runs', { experiment: 'sizes', name: 'large', params });
	await here.ask('POST', `runs/${id}/metrics`, { points: [1, 2].map((step) =>
		({ key: 'sent_bytes', step, wall_time: 1.8e9 + step, value: 1536 * step })) });
	const page = await here.open(t, '?e=sizes&r=' + id);
	await page.waitForSelector('.pairs dd', WAIT);
	assert.deepEqual(await page.$$eval('.pairs dd', (l) => l.map((e) => [e.textContent, e.title])
		.filter(([, title]) => /^(17179869184|2048)$/.test(title)).sort()),
	[['16.0 GiB', '17179869184'], ['2048', '2048']]);
	assert.equal(await page.textContent('.metrics td[title="3072"]'), '3.0 KiB');
	await page.goto(here.server.url + '?e=sizes');
	await says(page, '.same', /memory bytes 16\.0 GiB/);
});

const card = (key) => `[data-media="${key}"]`;
const slide = (page, key, i) => page.$eval(`${card(key)} input[type=range]`, (el, to) => {
	el.value = to;
	el.dispatchEvent(new Event('input', { bubbles: true }));
}, i);

test('media over steps: a slider, the charts\' cursor, changes between steps', async (t) => {
	const page = await opened(t, 'one', '&t=media');
	await page.waitForSelector(`${card('seen/picture')} img`, WAIT);
	await says(page, card('seen/words'), /step 30, 4 of 4.*fox of step 30/);
	await slide(page, 'seen/words', 1);
	await says(page, card('seen/words'), /step 10, 2 of 4.*fox of step 10/);
	await charted(page, 'train/loss', (d) => d.at === 10);
	await page.click(`${card('seen/words')} input[type=checkbox]`);
	await until(() => page.$$eval(`${card('seen/words')} .text :is(ins, del)`, (l) => l.map((e) => e.textContent)),
		(l) => l.join() === '0,10');
	await page.focus('[data-chart="train/loss"]');
	await page.keyboard.press('Home');
	await says(page, card('seen/words'), /step 0, 1 of 4/);
	const box = await page.locator('[data-chart="train/loss"]').boundingBox();
	await page.mouse.move(box.x + box.width - 60, box.y + box.height / 2);
	await says(page, card('seen/words'), /step [23]0, [34] of 4/);
	await page.mouse.move(5, 5);
	await says(page, card('seen/words'), /step 10, 2 of 4/); // the slider's step again
	await says(page, card('seen/picture'), /step 10, 2 of 4/); // sliders have one step
	await page.focus('[data-chart="train/loss"]');
	await page.keyboard.press('Home');
	await says(page, card('seen/words'), /step 0, 1 of 4/);
	await until(() => page.$$eval(`${card('seen/weights')} svg rect`, (l) => l.length), (n) => n === 3);
	await until(() => page.evaluate((q) => Number(document.querySelector(q)?.dataset.ridges ?? 0),
		`${card('seen/weights')} canvas`), (n) => n > 1, 'a ridge for each step');
	await says(page, card('seen/weights'), /Middle .* at step 0, .* at step 30/);
	await says(page, `${card('seen/cells')} td:last-child`, /^0\.1$/);
	await page.keyboard.press('Tab');
	await says(page, card('seen/words'), /step 10, 2 of 4/);
	await charted(page, 'train/loss', (d) => d.at === null);
	await page.click(`${card('seen/weights')} button:text-is("Table")`);
	await says(page, '.values caption', /^Histograms: 4 steps/);
	await page.keyboard.press('Escape');
	assert.equal(await page.$eval(`${card('seen/picture')} img`, (i) => i.complete && i.naturalWidth), 1);
	await page.waitForSelector(`${card('seen/tone')} audio`, WAIT);
});

test('media of several runs: names, true sizes, aligned tables, all steps in a grid, by keys', async (t) => {
	const page = await here.open(t, '?e=told');
	await page.setViewportSize({ width: 1440, height: 900 });
	await charted(page, 'train/loss', (d) => d.lines.length === 2);
	await page.click('button[aria-expanded]:has-text("Media")');
	await page.waitForSelector(`${card('seen/large')} img`, WAIT);
	const keys = await page.$$eval('[data-media] .whose .key',
		(l) => l.map((e) => e.getBoundingClientRect().width));
	assert.ok(keys.length >= 6 && keys.every((w) => w <= 24), keys.join());
	const outside = await page.$$eval('[data-media]', (l) => l.flatMap((c) => [...c.querySelectorAll('.item')]
		.filter((e) => e.getBoundingClientRect().right > c.getBoundingClientRect().right + 1
			|| e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)));
	assert.deepEqual(outside, []);
	await page.locator(`${card('seen/large')} img >> nth=0`).scrollIntoViewIfNeeded();
	const size = await until(() => page.$eval(`${card('seen/large')} img`,
		(i) => [i.naturalWidth, i.width, i.height]),
		([natural]) => natural > 0);
	assert.deepEqual(size, [240, 240, 160]);
	await page.waitForSelector(`${card('seen/cells')} td`, WAIT);
	const aligned = await page.$$eval(`${card('seen/cells')} table`, (l) => l.map((e) => [
		[...e.querySelectorAll('th')].map((c) => getComputedStyle(c).textAlign.replace('start', 'left')),
		[...e.querySelectorAll('tbody tr:first-child td')].map((c) => getComputedStyle(c).textAlign
			.replace('start', 'left')), e.clientWidth / e.closest('.item').clientWidth]));
	for (const [heads, cells, share] of aligned) {
		assert.deepEqual(heads, cells);
		assert.deepEqual(cells, ['left', 'right']);
		assert.ok(share > 0.95, `the table takes ${share} of its place`);
	}
	await page.focus(`${card('seen/words')} .items`);
	await page.keyboard.press('Home');
	await says(page, card('seen/words'), /step 0, 1 of 4/);
	await page.keyboard.press('ArrowRight');
	await says(page, card('seen/words'), /step 10, 2 of 4.*fox of step 10.*fox of step 10/);
	await page.click(`${card('seen/words')} button:text-is("All steps")`);
	await until(() => page.$$eval(`${card('seen/words')} .stepgrid tbody tr`, (l) => l.map((r) =>
		[...r.querySelectorAll('td')].map((c) => /step \d+/.exec(c.textContent)?.[0]).join())),
		(l) => l.join(';') === Array(2).fill('step 0,step 10,step 20,step 30').join(';'));
	await clean(page);
});

test('a small picture alone in its card is enlarged by a whole number, which its caption gives', async (t) => {
	const page = await here.open(t, '?e=told');
	await page.route(/\/media\?.*key=seen%2Fpicture$/, async (route) => {
		const reply = await (await route.fetch()).json();
		await route.fulfill({ json: { ...reply,
			media: reply.media.map((m) => ({ ...m, width: 96, height: 64 })) } });
	});
	const { runs } = await here.ask('GET', 'runs?experiment=told');
	const own = here.server.url + `?e=told&r=${runs.find((r) => r.name === 'one').id}&t=media`;
	for (const [width, times] of [[1440, 4], [390, 3]]) {
		await page.setViewportSize({ width, height: 900 });
		await page.goto(own);
		await page.locator(`${card('seen/picture')} img`).scrollIntoViewIfNeeded();
		assert.deepEqual(await page.$eval(`${card('seen/picture')} img`, (i) =>
			[i.width, getComputedStyle(i).imageRendering]), [96 * times, 'pixelated']);
		await says(page, `${card('seen/picture')} .item`, new RegExp(`^${times}×`));
		assert.ok(!/×/.test(await page.textContent(`${card('seen/large')} .item`)));
		await clean(page);
	}
});

test('a caption is below its picture, at every step and in the grid of steps, and has no card', async (t) => {
	const page = await opened(t, 'one', '&t=media');
	await says(page, `${card('seen/large')} a + .caption`, /^large at 30$/);
	await slide(page, 'seen/large', 1);
	await says(page, `${card('seen/large')} a + .caption`, /^large at 10$/);
	await page.click(`${card('seen/large')} button:text-is("All steps")`);
	await until(() => page.$$eval(`${card('seen/large')} td .caption`, (l) => l.map((e) => e.textContent).join()),
		(s) => s === 'large at 0,large at 10,large at 20,large at 30');
	assert.equal(await page.locator(card('seen/large/caption')).count(), 0);
});

test('a run without media up to a step says at which step its first are, and goes there', async (t) => {
	const { runs } = await here.ask('GET', 'runs?experiment=told');
	const late = runs.find((r) => r.name === 'two').id;
	const page = await here.open(t, '?e=told');
	await page.route(`**/runs/${late}/media?*key=seen*words*`, async (route) => {
		const reply = await (await route.fetch()).json();
		await route.fulfill({ json: { ...reply, media: reply.media.filter((m) => m.step >= 20) } });
	});
	await charted(page, 'train/loss', (d) => d.lines.length === 2);
	await page.click('button[aria-expanded]:has-text("Media")');
	await says(page, card('seen/words'), /fox of step 30.*fox of step 30/);
	await page.focus(`${card('seen/words')} .items`);
	await page.keyboard.press('Home');
	await says(page, `${card('seen/words')} [data-of="${late}"]`, /Nothing up to this step, first at step 20/);
	await page.click(`${card('seen/words')} [data-of="${late}"] button:text-is("step 20")`);
	await says(page, card('seen/words'), /step 20, 3 of 4.*fox of step 20.*fox of step 20/);
	await clean(page);
});

test('a video, an HTML document in a sandbox, a figure of Plotly', async (t) => {
	const page = await opened(t, 'one', '&t=media');
	await page.waitForSelector(`${card('doc/film')} video`, WAIT);
	const frame = await page.waitForSelector(`${card('doc/html')} iframe`, WAIT);
	assert.equal(await frame.getAttribute('sandbox'), 'allow-scripts');
	await frame.scrollIntoViewIfNeeded();
	const inner = await frame.contentFrame();
	await until(() => inner.evaluate(() => document.body?.textContent ?? '').catch(() => ''),
		(s) => s.startsWith('script of step 30'), 'its script runs');
	assert.equal(await inner.evaluate(() => self.origin), 'null', 'it has no origin');
	const asked = await inner.evaluate(() => fetch('/api/v1/runs').then(() => 'answered', () => 'refused'));
	assert.equal(asked, 'refused');
	const figure = `${card('doc/figure')} .figure`;
	await says(page, figure, /a curve.*does not draw traces of type pie/s);
	await until(() => page.$eval(`${figure} path[stroke-width]`, (e) => e.getAttribute('d')),
		(d) => /^M.*L.*L/.test(d));
	await page.click(`${figure} button:text-is("Table")`);
	await says(page, '.values', /roc.*0.*30.*roc.*1.*1.*roc.*2.*4/s);
	await page.keyboard.press('Escape');
	await clean(page);
});

test('a failed run names the reason from its console and shows the last lines, on the first screen', async (t) => {
	const { runs } = await here.ask('GET', 'runs?experiment=failed');
	const page = await here.open(t, `?e=failed&r=${runs[0].id}`);
	await says(page, '.failure h2 code', /^torch\.OutOfMemoryError: CUDA out of memory\.$/);
	const last = await page.textContent('.failure pre');
	assert.match(last, /line 12\ntorch\.OutOfMemoryError: CUDA out of memory\.\nstopping workers$/);
	assert.equal(last.split('\n').length, 8);
	assert.ok(await page.$eval('.failure pre', (e) => e.getBoundingClientRect().bottom < innerHeight));
	await page.click('.failure a');
	await says(page, '.console .line:last-child', /stopping workers/);
});

test('the console: its end first, search, colours, a link from a line to its time and back', async (t) => {
	const page = await opened(t, 'two', '&x=clock&t=console');
	await says(page, '.console .line:last-child', /line 1499/);
	const tops = await Promise.all(['.console', '.chartpart'].map((q) => page.locator(q).boundingBox()));
	assert.ok(tops[0].y < tops[1].y, 'what was asked first');
	await page.fill('.console input[type=search]', 'needle');
	await says(page, '.console .screen', /^[\d:]+needle 700$/);
	assert.equal(await page.textContent('.console .line .c1'), 'needle');
	await page.click('.console .line button');
	await until(() => page.$eval('.console .marked', (e) => e.dataset.line).catch(() => ''), (n) => n === '700');
	const lines = await page.$$eval('.console .line', (l) => l.length);
	assert.ok(lines > 300, `${lines} lines around it`);
	await page.click('.console button:text-is("First line")');
	await says(page, '.console .line:first-child', /line 0$/);
});

test('code and alerts are shown on the run\'s page', async (t) => {
	const page = await opened(t, 'one');
	await says(page, '.alerts', /loss is odd three times the usual/);
	await page.click('.tabs a:text-is("Files")');
	await page.click('summary:has-text("2 lines changed")');
	assert.deepEqual(await page.$$eval('.edits .added', (l) => l.map((e) => e.textContent)), ['+rate = 0.1']);
	await page.click('summary:has-text("2 packages")');
	await page.waitForSelector('li:text-is("numpy==2.1.0")', WAIT);
});

test('weights and checkpoints are listed as files of the run, reachable by keyboard', async (t) => {
	const page = await opened(t, 'one', '&t=files');
	await says(page, 'section[aria-label=Files]', /^Files checkpoints\/final\.safetensors 2.0 KiBPath: told\/one-/);
	await page.focus('section[aria-label=Files] button:text-is("checkpoints/")');
	await page.keyboard.press('Enter');
	await says(page, 'section[aria-label=Files]', /^Files checkpoints…step-30\//);
	await page.focus('section[aria-label=Files] button:text-is("step-30/")');
	await page.keyboard.press('Enter');
	await says(page, 'section[aria-label=Files]', /model\.safetensors 4.0 KiB/);
	await page.focus('section[aria-label=Files] button[aria-label="The folder above"]');
	await page.keyboard.press('Enter');
	await says(page, 'section[aria-label=Files]', /^Files checkpoints…step-30\//);
});

test('side by side shows exactly what differs, down to one line and one package', async (t) => {
	const page = await here.open(t, '?e=told');
	await page.click('.head button:text-is("Compare")');
	await says(page, '.side tbody[aria-label=Packages]', /numpy/);
	const names = (part) => page.$$eval(`.side tbody[aria-label="${part}"] th[scope=row]`,
		(l) => l.map((e) => e.textContent));
	assert.deepEqual(await names('Params'), ['lr']);
	assert.deepEqual(await names('Packages'), ['numpy']);
	assert.deepEqual(await names('Code'), []);
	const edits = await page.$$eval('.side .edits :is(.added, .removed)',
		(l) => l.map((e) => e.textContent).sort());
	assert.equal(edits.length, 2);
	assert.match(edits.join('|'), /rate = 0\.[12].*rate = 0\.[12]/);
	await page.click('text=Differences only');
	assert.deepEqual(await names('Params'), ['lr', 'model']);
	assert.deepEqual(await names('Packages'), ['numpy', 'requests']);
	await page.reload();
	await says(page, '.side tbody[aria-label=Metrics]', /train\/loss/);
	await page.click('text=Table and charts');
	await charted(page, 'train/loss', (d) => d.lines.length === 2);
});

for (const [colorScheme, width] of [['light', 1280], ['dark', 390]])
	test(`axe finds nothing serious on either page (${colorScheme}, ${width} px)`, async (t) => {
		const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
		const page = await opened(t, 'one');
		await page.emulateMedia({ colorScheme });
		await page.setViewportSize({ width, height: 844 });
		const clean = async () => {
			await page.evaluate(axe);
			const { violations } = await page.evaluate(() => globalThis.axe.run(document));
			assert.deepEqual(violations.filter((v) => ['serious', 'critical'].includes(v.impact))
				.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).slice(0, 3).join(' ')}`), []);
			const wide = await page.evaluate(() => document.documentElement.scrollWidth);
			assert.ok(wide <= width, `${wide} px wide`);
		};
		await page.click('.tabs a:text-is("Console")');
		await says(page, '.console .line:last-child', /line 1499/);
		await clean();
		await page.goto(here.server.url + '?e=told&side');
		await says(page, '.side tbody[aria-label=Packages]', /numpy/);
		await clean();
	});
