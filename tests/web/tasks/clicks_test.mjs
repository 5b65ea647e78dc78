// SPDX-License-Identifier: Apache-2.0
// Tasks with a limit of clicks: by mouse, on a phone, by keys. A click, a tap, Enter and Space count; Tab, arrows and
// text do not.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { charted, clean, says, until } from '../browser.mjs';
import { builddir } from '../serve.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const WAYS = { mouse: [1440, 900], phone: [390, 844], keys: [1280, 800] };
const here = stage((logdir) => execFileSync(path.join(builddir, 'tests/web/told_record'), [logdir]));

/** Opens an address and returns {page, act, clicks}: act clicks an element, or focuses it and presses a key. */
async function begin(t, way, address) {
	const page = await here.open(t);
	const [width, height] = WAYS[way];
	await page.setViewportSize({ width, height });
	await page.goto(here.server.url + address);
	const k = { page, clicks: 0, narrow: way === 'phone', keys: way === 'keys' };
	k.act = async (selector, key = 'Enter') => {
		k.clicks++;
		if (!k.keys) return page.click(selector, WAIT);
		await page.locator(selector).first().focus(WAIT);
		await page.keyboard.press(key);
	};
	return k;
}

/** Runs a task in each of the ways, and checks the number of clicks and the page it ends on. */
function task(name, most, act) {
	for (const way of Object.keys(WAYS))
		test(`${name}: ${most} clicks (${way})`, async (t) => {
			const k = await act((address) => begin(t, way, address), way);
			assert.ok(k.clicks <= most, `${k.clicks} clicks`);
			await clean(k.page);
		});
}

task('why a run failed, with the last lines of its console', 1, async (open) => {
	const k = await open('?e=failed');
	const row = k.narrow ? '.card.run .say.failed' : '.grid .c-status .say.failed';
	await k.page.waitForSelector(row, WAIT);
	await k.act(k.keys ? '.grid [data-cell="0:0"]' : row);
	await says(k.page, '.failure h2 code', /CUDA out of memory/);
	await says(k.page, '.failure pre', /stopping workers$/);
	assert.ok(await k.page.$eval('.failure pre', (e) => e.getBoundingClientRect().bottom < innerHeight));
	return k;
});

task('why the only failed run failed, from its count', 1, async (open) => {
	const k = await open('?e=failed');
	await k.act('.facts button.failed');
	await says(k.page, '.failure h2 code', /CUDA out of memory/);
	return k;
});

/** Makes the clipboard refuse, as on a page without TLS; the link must then be selected. */
const refuse = (page) => page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));

task('a chart added to a report, and its link copied', 3, async (open, way) => {
	const { id } = await here.ask('POST', 'reports', { experiment: 'told', name: `report ${way}`, text: '' });
	const k = await open('?e=told');
	await charted(k.page, 'train/loss', (d) => d.lines.length === 2);
	await refuse(k.page);
	await k.act('figure:has([data-chart="train/loss"]) button:text-is("Add to report")');
	await k.act(`.picker button:text-is("report ${way}")`);
	await k.act('.picker button:text-is("Copy link")');
	const link = await until(() => k.page.evaluate(() => getSelection().toString()), (s) => /report=/.test(s));
	assert.equal(new URL(link).search, `?e=told&report=${id}`);
	await k.page.goto(link);
	await charted(k.page, 'train/loss (1)', (d) => d.lines.length === 2);
	await k.page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
	await k.page.click('button:text-is("Copy link")');
	await says(k.page, '.options [role=status]', /^Copied\. It opens on this computer only\.$/);
	assert.equal(await k.page.evaluate(() => navigator.clipboard.readText()), link);
	return k;
});

task('three runs deleted, one brought back', 7, async (open, way) => {
	const names = ['a', 'b', 'c', 'd'];
	const ids = {};
	for (const [i, name] of names.entries())
		ids[name] = (await here.ask('POST', 'runs',
			{ experiment: 'gone ' + way, name, start_time: 1.7e12 + i })).id;
	const gone = async () => (await Promise.all(names.map(async (n) =>
		((await here.ask('GET', 'runs/' + ids[n])).deleted ? n : '')))).join('');
	const k = await open('?e=gone+' + way);
	for (const n of ['a', 'b', 'c'])
		await (k.keys ? k.act(`[data-run="${ids[n]}"] [role=rowheader]`, 'Space')
			: k.act(`[aria-label="Select ${n}"]`));
	await k.act('.bulk button[aria-label="More actions"]');
	await k.act('.bulk button:text-is("Delete")');
	await k.act('[role=dialog] button:text-is("Delete 3 runs")');
	await says(k.page, '.banner', /^3 runs are deleted\. Undo ?or only ?cba/);
	await k.act('.banner [aria-label="Undo for b"]');
	await says(k.page, '.banner', /^2 runs are deleted\. Undo ?or only ?ca/);
	assert.equal(await gone(), 'ac');
	assert.ok(k.clicks <= 7);
	await clean(k.page);
	await k.page.click('.banner [aria-label="Undo for c"]');
	await says(k.page, '.banner', /^a is deleted\. Undo ?✕/);
	await k.page.click('.banner button:text-is("Undo")');
	await k.page.waitForSelector('.banner', { state: 'detached' });
	assert.equal(await gone(), '');
	return k;
});

/** Runs a task by mouse, and checks the number of clicks or drags. */
function byMouse(name, most, act) {
	test(`${name}: ${most}`, async (t) => {
		const k = await act((address) => begin(t, 'mouse', address));
		assert.ok(k.clicks <= most, `${k.clicks} of ${most}`);
		await clean(k.page);
	});
}

/** Logs a run; series: values by step. */
async function log(experiment, name, params, series) {
	const { id } = await here.ask('POST', 'runs', { experiment, name, params });
	const points = Object.entries(series).flatMap(([key, list]) => list.map(([step, value]) =>
		({ key, step, value, wall_time: 1.7e9 + step })));
	for (let i = 0; i < points.length; i += 20000)
		await here.ask('POST', `runs/${id}/metrics`, { points: points.slice(i, i + 20000) });
	await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	return id;
}

byMouse('the overfit runs among 200, by a formula', 4, async (open) => {
	for (let i = 0; i < 200; i++) {
		const rise = i % 20 ? 0 : 1 + i / 100;
		await log('overfit', 'run-' + i, { width: String(i) },
			{ 'val/loss': [[1, 2], [2, 1], [3, 1 + rise]], 'train/loss': [[1, 2], [3, 0.5]] });
	}
	const k = await open('?e=overfit');
	await k.act('.head button:text-is("Columns")');
	await k.page.fill('[aria-label="Find a column"]', '= val/loss.last - val/loss.min');
	await k.page.keyboard.press('Enter');
	await k.page.keyboard.press('Escape');
	const head = k.page.locator('.grid .head .cell', { hasText: 'val/loss.last' });
	await head.waitFor(WAIT);
	k.clicks += 2; // a first click sorts by the least
	await head.click();
	await head.click();
	const first = () => k.page.$$eval('.grid .body .row a', (l) => l.slice(0, 9).map((e) => e.textContent));
	await until(first, (l) => l.every((name) => Number(name.slice(4)) % 20 === 0), 'the overfit');
	return k;
});

byMouse('norms of two runs at steps 40,000 to 42,000 of 100,000, in drags', 2, async (open) => {
	for (const name of ['a', 'b'])
		await log('long', name, {}, Object.fromEntries([1, 2].map((layer) => ['grad_norm/' + layer,
			Array.from({ length: 20000 }, (_, i) => [5 * i, i === 8200 ? 9.57 : layer + i % 7 / 10])])));
	const k = await open('?e=long&find=grad_norm');
	const look = (to) => charted(k.page, 'grad_norm/1', (d) => d.lines.length === 2 && to(d));
	/** Drags over a chart from a step to another. */
	const drag = async (from, to) => {
		const d = await look(() => true);
		const el = k.page.locator('[data-chart="grad_norm/1"]');
		await el.scrollIntoViewIfNeeded();
		const b = await el.boundingBox();
		const x = (step) => b.x + d.box.left + (step - d.from) / (d.to - d.from) * d.box.width;
		const y = b.y + d.box.top + d.box.height / 2;
		await k.page.mouse.move(x(from), y);
		await k.page.mouse.down();
		await k.page.mouse.move(x(to), y, { steps: 4 });
		await k.page.mouse.up();
		k.clicks++;
	};
	await drag(39000, 43000);
	await look((d) => d.to - d.from < 6000);
	await drag(40000, 42000);
	for (const key of ['grad_norm/1', 'grad_norm/2'])
		await charted(k.page, key, (d) => Math.abs(d.from - 40000) < 40 && Math.abs(d.to - 42000) < 40
			&& d.lines.every((l) => l.top === 9.57 && l.topX === 41000 && l.points > 390));
	return k;
});

task('pictures of two runs at a step next to each other', 3, async (open) => {
	const k = await open('?e=told');
	const { runs } = await here.ask('GET', 'runs?experiment=told');
	for (const r of runs)
		await (k.keys ? k.act(`[data-run="${r.id}"] [role=rowheader]`, 'Space')
			: k.act(`[aria-label="Select ${r.name}"]`));
	await k.act('.bulk button:text-is("Compare")');
	const picture = '[data-media="seen/large"]';
	await says(k.page, `${picture} .slide`, /step 30, 4 of 4/);
	const shown = await until(() => k.page.$$eval(`${picture} [data-of] img`, (l) => l.filter((i) => i.complete
		&& i.naturalWidth === 240 && i.getBoundingClientRect().bottom < innerHeight)
		.map((i) => i.closest('[data-of]').dataset.of)), (l) => l.length === 2);
	assert.deepEqual(shown.sort(), runs.map((r) => r.id).sort());
	assert.deepEqual(await k.page.$$eval('main [data-media]', (l) => l.map((e) => e.dataset.media)),
		['seen/large', 'seen/picture']);
	await k.page.focus(`${picture} input[type=range]`);
	await k.page.keyboard.press('ArrowLeft');
	await says(k.page, `${picture} .slide`, /step 20, 3 of 4/);
	await k.page.click('button:has-text("more keys")');
	await k.page.waitForSelector('[data-media="seen/words"]');
	return k;
});
