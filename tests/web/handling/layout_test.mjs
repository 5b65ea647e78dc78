// SPDX-License-Identifier: Apache-2.0
// The frame of the page with long names, many sections and narrow windows: it does not scroll away, names are cut or
// wrapped where they are, and controls keep their places.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { says, until } from '../browser.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage();

async function run(experiment, name, series = {}, { params = {}, status = 'finished' } = {}) {
	const { id } = await here.ask('POST', 'runs', { experiment, name, params });
	const points = Object.entries(series).flatMap(([key, list]) => list.map((value, i) =>
		({ key, step: i + 1, value, wall_time: 1.8e9 + i })));
	if (points.length) await here.ask('POST', `runs/${id}/metrics`, { points });
	await here.ask('PATCH', 'runs/' + id, { status });
	return id;
}

/** Opens an address in a window of this size, after the page shows the element. */
async function shown(t, address, there, width = 1440, height = 900) {
	const page = await here.open(t);
	await page.setViewportSize({ width, height });
	await page.goto(here.server.url + address);
	await page.waitForSelector(there, WAIT);
	return page;
}

const boxes = (page, selector) => page.$$eval(selector, (l) => l.map((e) => e.getBoundingClientRect().toJSON()));

test('below the last section the page does not scroll away', async (t) => {
	for (let i = 0; i < 24; i++) await run('sections', 'r' + i, { loss: [1, 1 / (i + 2)] },
		{ params: { lr: 0.1 * i, width: i % 3, depth: i % 2 } });
	const page = await shown(t, '?e=sections', '.chartpane h2 button[aria-expanded=false]');
	for (const name of ['Pivot', 'Importance']) {
		await page.click(`.chartpane h2 button:has-text("${name}")`);
		await page.waitForSelector(`.${name.toLowerCase()} table`, WAIT);
	}
	await page.mouse.move(700, 600);
	for (let i = 0; i < 6; i++) await page.mouse.wheel(0, 2000);
	await until(() => page.$eval('.app', (e) => e.scrollTop + e.clientHeight >= e.scrollHeight - 1), (end) => end);
	const [{ top }] = await boxes(page, '.app > .head');
	assert.equal(top, 0, 'the header stays');
	assert.equal(await page.evaluate(() => document.documentElement.scrollHeight), 900);
});

const LONG = 'a-very-long-name-of-the-ablation-of-learning-rate-schedules-and-warmup-fractions-for-transformers-';

/** Logs an experiment with a long name whose runs and metric have long names too, and returns its runs. */
async function logLong() {
	const key = 'validation/metrics/super_glue/multirc/exact_match_score';
	await run('fashion', 'short', { 'val/acc': [1, 2] });
	return Promise.all([0, 1, 2, 3, 4].map((i) => run(LONG, LONG + i, { [key]: [0.1, 0.2 + i / 10] },
		{ params: { learning_rate_schedule_warmup_fraction: i, dataset_path: LONG.replace(/-/g, '/') + i } })));
}

test('a metric with a long name leaves the experiments on a phone as wide as the window', async (t) => {
	await logLong();
	const page = await shown(t, '?all', `main.experiments td:nth-child(5) a >> nth=1`, 390, 844);
	assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
	const right = Math.max(...(await boxes(page, 'main.experiments td:last-child')).map((b) => b.right));
	assert.ok(right <= 390, `the menus end at ${right} px`);
	const name = page.locator('main.experiments td:first-child a:text-is("fashion")');
	assert.equal((await name.evaluate((e) => e.getClientRects())).length ?? 1, 1);
	assert.ok((await name.boundingBox()).height < 22, 'a short name is on one line');
});

test('runs with long names are compared in columns of one width', async (t) => {
	const ids = await logLong();
	const page = await shown(t, `?e=${LONG}&side&o=${ids.map((id) => id.slice(0, 8)).join('.')}`,
		'.side tbody th[scope=row]');
	for (const width of [1440, 1024]) {
		await page.setViewportSize({ width, height: 900 });
		const heads = await boxes(page, '.side thead th + th');
		for (const b of heads) assert.ok(b.width <= 280, `${width} px: a column of ${b.width} px`);
		const [name] = await boxes(page, '.side tbody th[scope=row]');
		assert.ok(name.width >= 140, `${width} px: names have ${name.width} px`);
	}
	const rows = await page.$$eval('.side thead a', (l) => l.map((e) => e.textContent));
	assert.equal(new Set(rows).size, 5, rows.join());
});

test('one long experiment name leaves the other names, the counts and the filter their room', async (t) => {
	await logLong();
	const page = await shown(t, '?e=fashion', '.grid .body .row');
	const counts = await page.$$eval('.nav .exps li', (l) => l.map((e) =>
		e.querySelector('small').getBoundingClientRect().right - e.getBoundingClientRect().right));
	for (const by of counts) assert.ok(by <= 0, `a count ends ${by} px outside`);
	const fits = () => page.$$eval('.nav .exps li > a > span', (l) => l.filter((e) =>
		e.scrollWidth > e.clientWidth).map((e) => getComputedStyle(e).textOverflow));
	assert.deepEqual(await fits(), ['ellipsis']);
	const where = async () => (await boxes(page, '.head .where'))[0].width;
	assert.ok(await where() < 160, `the name fashion has ${await where()} px`);
	for (const e of ['fashion', LONG]) {
		await page.goto(`${here.server.url}?e=${e}`);
		await page.waitForSelector('.head .kept', WAIT);
		for (const width of [1440, 1024, 1001, 1000, 740]) {
			await page.setViewportSize({ width, height: 900 });
			const [filter] = await boxes(page, '.filter');
			assert.ok(filter.width >= 150, `${width} px, ${e}: a filter of ${filter.width} px`);
			const list = await boxes(page, '.app > .head > *, .head > .goal > button');
			list.filter((b) => b.width).sort((a, b) => a.left - b.left).reduce((a, b) => {
				assert.ok(b.right <= a.right || b.left >= a.right + 3, JSON.stringify([width, a, b]));
				return b;
			});
		}
	}
});

test('in narrow windows the experiment has the first line, and no room is empty below the header', async (t) => {
	await run('nans', 'a', { loss: [1, 0.5] });
	await run('nans', 'b', { loss: [1, 0.4] });
	for (const width of [720, 640, 390]) {
		const page = await shown(t, '?e=nans', '.head .others', width, 844);
		const [where, filter, head, facts] = await Promise.all(['.where', '.filter', '.app > .head', '.facts']
			.map((q) => page.locator(q).boundingBox()));
		assert.ok(filter.y >= where.y + where.height, `${width} px: ${JSON.stringify([where, filter])}`);
		assert.ok(facts.y - head.y - head.height < 8, `${width} px: ${JSON.stringify([head, facts])}`);
	}
});

test('the places of the sidebar stay where they are after a run and the alerts', async (t) => {
	const id = await run('alerted', 'a', { loss: [1, 0.5] });
	const page = await shown(t, `?e=alerted&r=${id}`, '.runpage h1');
	const tops = async () => (await boxes(page, '.places a')).map((b) => b.top);
	const before = await tops();
	await page.click('.places a[title="Alerts"]');
	await page.waitForSelector('main.alerts form', WAIT);
	assert.deepEqual(await tops(), before);
	const [box, word] = await page.$eval('main.alerts form label', (e) => {
		const text = document.createRange();
		text.selectNodeContents(e);
		text.setStartAfter(e.firstElementChild);
		return [e.firstElementChild, text].map((x) => x.getBoundingClientRect())
			.map((b) => (b.top + b.bottom) / 2);
	});
	assert.ok(Math.abs(box - word) < 2, `the check box is ${word - box} px too high`);
});

test('a name has room with its marks, also while the pointer is on its row', async (t) => {
	const ids = [await run('marks', 'cnn-ddp4-lr0.8', { loss: [1, 'NaN'] }, { params: { lr: 0.8 } }),
		await run('marks', 'mlp', { loss: [1, 0.5] }, { params: { lr: 0.1 } })];
	await here.ask('PATCH', 'runs/' + ids[0], { notes: 'too much' });
	const page = await shown(t, '?e=marks', `.grid [data-run="${ids[0]}"] .mark.dim`);
	const cut = () => page.$$eval('.grid .body .first .cut > span', (l) =>
		l.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent));
	assert.deepEqual(await cut(), []);
	await page.hover(`.grid [data-run="${ids[0]}"]`);
	assert.deepEqual(await cut(), []);
	const head = page.locator('.grid .head .cell', { hasText: /^lr/ });
	await head.hover();
	const [text, menu] = await head.evaluate((e) => ['.cut', '.headmenu'].map((q) =>
		e.querySelector(q).getBoundingClientRect().toJSON()));
	assert.ok(text.right <= menu.left + 1.5, `the menu covers the name of its column: ${text.right} ${menu.left}`);
	const status = await page.$$eval('.grid .body .cell:last-child .says', (l) => l.map((e) =>
		e.getBoundingClientRect().right - e.parentElement.getBoundingClientRect().right + 7));
	for (const by of status) assert.ok(by <= 0, `a status ends ${by} px in the margin`);
});

test('the tools stay where no run matches, whatever the kind of filter', async (t) => {
	for (const [i, lr] of [0.1, 0.2, 0.3].entries())
		await run('filtered', 'r' + i, { 'val/acc': [0.1, lr] }, { params: { lr } });
	const page = await shown(t, '?e=filtered', '.grid .body .row');
	const seen = async (filter, facts) => {
		await page.fill('.filter input', filter);
		await says(page, '.facts', new RegExp('^' + facts)); // absent while nothing is loaded
		return [await page.$$eval('.app > .head > *', (l) => l.map((e) => [e.className, e.offsetWidth])),
			await page.inputValue('.goal select'), await page.locator('.chartpane').count(),
			await page.locator('.empty').count()];
	};
	const words = await seen('zzz', '0 of 3 runs');
	assert.equal(words[1], 'val/acc');
	assert.deepEqual(words.slice(2), [0, 1]);
	assert.deepEqual(await seen('lr > 99', '0 of 3 runs'), words);
	await seen('lr > 0.15', '2 of 3 runs');
	assert.equal(await page.locator('.chartpane').count(), 1);
});

test('a section that is opened comes into view', async (t) => {
	for (const i of [0, 1]) await run('opened', 'r' + i, { loss: [1, 0.5 + i] }, { params: { lr: i } });
	const page = await shown(t, '?e=opened', '.chartpane h2 button:has-text("Scatter")');
	await page.setViewportSize({ width: 1280, height: 640 });
	const head = page.locator('.chartpane h2 button:has-text("Pivot")');
	await head.scrollIntoViewIfNeeded();
	await head.click();
	await page.waitForSelector('.pivot table', WAIT);
	await until(async () => (await boxes(page, '.pivot'))[0], (b) => b.bottom <= 640);
	const scatter = page.locator('.chartpane h2 button:has-text("Scatter")');
	await scatter.click();
	await page.waitForSelector('.scatter', WAIT);
	await until(async () => (await boxes(page, '.scatter .plot'))[0], (b) => b.top < 400);
});

test('the tools of a report keep their places while it is edited', async (t) => {
	await run('reported', 'a', { loss: [1, 0.5] });
	const { id } = await here.ask('POST', 'reports', { experiment: 'reported', name: 'R', text: 'A text.' });
	const page = await shown(t, `?report=${id}`, 'main.reports button:text-is("Edit")');
	const place = () => page.locator('main.reports .options button:text-is("Edit")').boundingBox();
	const was = await place();
	await page.click('main.reports .options button:text-is("Edit")');
	await page.waitForSelector('.reporteditor textarea', WAIT);
	assert.deepEqual(await place(), was);
	const [editor] = await boxes(page, '.reporteditor');
	assert.ok(editor.width > 1180, `the editor has ${editor.width} px`);
});

test('heads stand above their columns, boxes have room, and keys close in the corner', async (t) => {
	for (const i of [0, 1, 2]) await run('small', 'r' + i, { loss: [1, 0.5 + i] },
		{ params: { opt: 'ab'[i % 2] } });
	const page = await shown(t, '?e=small&by=opt', '.grouped [data-group]');
	const lefts = await Promise.all(['.head .first .lines', '.body .first .cut'].map((q) =>
		page.$eval('.grid ' + q, (e) => e.getBoundingClientRect().left)));
	assert.ok(Math.abs(lefts[0] - lefts[1]) < 1.5, lefts.join());
	await page.keyboard.press('?');
	await page.waitForSelector('.keys > button', WAIT);
	const [keys, close] = [await boxes(page, '.keys'), await boxes(page, '.keys > button')].map((l) => l[0]);
	assert.ok(keys.right - close.right < 20 && close.top - keys.top < 20, JSON.stringify([keys, close]));
	for (let i = 0; i < 6; i++) await run('of-many-' + i, 'a');
	await page.goto(here.server.url + '?all');
	await page.waitForSelector('main.experiments input', WAIT);
	const [input, box] = [await boxes(page, 'main.experiments input'), await boxes(page, 'main.experiments .box')];
	assert.ok(box[0].top - input[0].bottom >= 8, 'the search box touches its list');
	assert.ok(await page.$eval('main.experiments input', (e) => {
		const c = document.createElement('canvas').getContext('2d');
		c.font = getComputedStyle(e).font;
		return c.measureText(e.placeholder).width < e.clientWidth - 30;
	}), 'the placeholder is cut');
});

test('the sparkline of a run that ended early is shorter', async (t) => {
	await run('sparks', 'whole', { loss: [1, 0.8, 0.6, 0.5, 0.4] });
	await run('sparks', 'half', { loss: [1, 0.9, 0.7] }, { status: 'failed' });
	const page = await shown(t, '?e=sparks', '.spark path >> nth=1', 390, 844);
	const widths = () => page.$$eval('.card.run', (l) => Object.fromEntries(l.map((e) =>
		[e.querySelector('.name').textContent, e.querySelector('path[d]:not(.shape path)').getBBox().width])));
	const { whole, half } = await until(widths, (w) => w.whole > 60);
	assert.ok(Math.abs(half / whole - 0.5) < 0.05, JSON.stringify({ whole, half }));
});

test('Enter inserts the only suggestion of a filter without its end', async (t) => {
	for (const lr of [0.1, 0.2]) await run('typed', 'a', { 'val/acc': [0.1, lr] }, { params: { warmup: lr } });
	const page = await shown(t, '?e=typed', '.grid .body .row');
	await page.focus('.filter input');
	await page.keyboard.type('val/acc > 0 and warmu');
	await until(() => page.locator('.completion li').count(), (n) => n === 1);
	await page.keyboard.press('Enter');
	assert.match(await page.inputValue('.filter input'), /and warmup\s*$/);
});
