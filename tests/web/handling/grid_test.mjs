// SPDX-License-Identifier: Apache-2.0
// The grid of charts: columns by the window or chosen, charts pinned, hidden, moved and resized by pointer and by menu,
// all of which the address and a saved view keep; the handle of the table.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { says, until, whole } from '../browser.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage();
const KEYS = ['train/loss', 'val/acc', 'val/a', 'val/b', 'val/c', 'val/d', 'val/e', 'one/x', 'two/y'];
const TOPS = ['train/loss', 'val/acc'];
const VAL = ['val/a', 'val/b', 'val/c', 'val/d', 'val/e'];

async function record() {
	for (const n of [1, 2, 3]) {
		const { id } = await here.ask('POST', 'runs', { experiment: 'grid', name: 'r' + n, params: { n } });
		const value = (key, step) => (key === 'val/acc' ? step * n / 20 : n / step);
		await here.ask('POST', `runs/${id}/metrics`, { points: KEYS.flatMap((key) => [1, 2, 3, 4].map((step) =>
			({ key, step, value: value(key, step), wall_time: 1.8e9 + step }))) });
		await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	}
}
let recorded;

async function shown(t, query = '', width = 1440, height = 900) {
	await (recorded ??= record());
	const page = await here.open(t);
	await page.setViewportSize({ width, height });
	await page.goto(`${here.server.url}?e=grid${query}`);
	await page.waitForSelector('.sections [data-chart]', WAIT);
	return page;
}

/** Metrics of a section's charts as they are drawn. */
const cards = (page, section) => page.$$eval(section + ' > .chart > [data-chart]', (l) =>
	l.map((e) => e.dataset.chart));
const top = (page) => cards(page, '.first');
const group = (page) => cards(page, '[aria-label=val] > .charts');
const box = (page, key) => page.locator(`.chart:has(> [data-chart="${key}"])`).boundingBox();
const perRow = async (page, keys) => {
	const boxes = await Promise.all(keys.map((k) => box(page, k)));
	return boxes.filter((b) => Math.abs(b.y - boxes[0].y) < 2).length;
};
const asked = (page, key) => new URL(page.url()).searchParams.getAll(key);

for (const [width, columns] of [[1920, 4], [1440, 3], [1024, 2], [390, 1]])
	test(`a window of ${width} px has ${columns} charts in a row`, async (t) => {
		const page = await shown(t, '', width);
		assert.equal(await perRow(page, VAL), columns);
		assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
		assert.equal(await perRow(page, ['one/x', 'two/y']), Math.min(2, columns), 'small groups share a row');
		const b = await Promise.all(['one/x', 'two/y'].map((k) => box(page, k)));
		const pane = await page.locator('.chartpane').boundingBox();
		assert.ok(b[1].x + b[1].width > pane.x + pane.width - 20, 'a row is left half empty');
		const [metrics, analyses] = await Promise.all(['.sections', '.chartpane h2:has-text("Scatter")']
			.map((q) => page.locator(q).boundingBox()));
		assert.ok(analyses.y > metrics.y + metrics.height - 2, 'analyses are below the metrics');
	});

/** Opens the menu of a chart and presses one of its items. */
async function pick(page, key, item) {
	await page.hover(`.chart:has(> [data-chart="${key}"]) figcaption`);
	await page.click(`[aria-label="More of ${key}"]`);
	await whole(page);
	await page.click(`[role=dialog] button:text-is("${item}")`);
}

/** Drags from one place of a card to a place of another; places are shares of width and height. */
async function drag(page, [key, x, y], [to, toX, toY]) {
	for (const k of [key, to]) await page.locator(`.chart:has(> [data-chart="${k}"])`).scrollIntoViewIfNeeded();
	const [a, b] = [await box(page, key), await box(page, to)];
	const inside = (from, size, share) => from + Math.min(size - 5, Math.max(14, size * share));
	const at = (c, u, v) => [inside(c.x, c.width, u), inside(c.y, c.height, v)];
	await page.mouse.move(...at(a, x, y));
	await page.mouse.down();
	await page.mouse.move(...at(b, toX, toY), { steps: 8 });
	await page.mouse.up();
}

const CAPTION = [0.1, 0.02];
const ARRANGED = [
	{ what: 'a menu pins', act: (p) => pick(p, 'val/c', 'Pin to the top'),
		top: [...TOPS, 'val/c'], val: VAL.filter((k) => k !== 'val/c') },
	{ what: 'a menu takes from the top', act: (p) => pick(p, 'train/loss', 'Take from the top'),
		top: ['val/acc'], val: VAL },
	{ what: 'a menu hides', act: (p) => pick(p, 'val/b', 'Hide'),
		top: TOPS, val: VAL.filter((k) => k !== 'val/b') },
	{ what: 'a menu moves', act: (p) => pick(p, 'val/b', 'Move after'),
		top: TOPS, val: ['val/a', 'val/c', 'val/b', 'val/d', 'val/e'],
		address: { ord: ['val/a', 'val/c', 'val/b'] } },
	{ what: 'a caption is dragged in its group', act: (p) => drag(p, ['val/c', ...CAPTION], ['val/a', 0.2, 0.5]),
		top: TOPS, val: ['val/c', 'val/a', 'val/b', 'val/d', 'val/e'] },
	{ what: 'a caption is dragged to the top', query: '&cols=6',
		act: (p) => drag(p, ['val/d', ...CAPTION], ['train/loss', 0.8, 0.5]),
		top: ['train/loss', 'val/d', 'val/acc'], val: VAL.filter((k) => k !== 'val/d') },
	{ what: 'a caption is dragged from the top', query: '&cols=6',
		act: (p) => drag(p, ['val/acc', ...CAPTION], ['val/b', 0.2, 0.5]),
		top: ['train/loss'], val: ['val/a', 'val/acc', 'val/b', 'val/c', 'val/d', 'val/e'] },
	{ what: 'a caption is dragged to another group', query: '&cols=6',
		act: (p) => drag(p, ['val/b', ...CAPTION], ['one/x', 0.5, 0.5]),
		top: TOPS, val: VAL },
	{ what: 'a corner is dragged', act: (p) => drag(p, ['val/a', 1, 1], ['val/b', 0.9, 1]),
		top: TOPS, val: VAL, address: { sz: ['21.val/a'] } },
	{ what: 'a menu sets columns and rows', act: async (p) => {
		await pick(p, 'val/a', '3');
		await p.click('[role=dialog] [aria-label=Rows] button:text-is("2")');
	}, top: TOPS, val: VAL, address: { sz: ['32.val/a'] } },
];
for (const { what, query, act, top: tops, val, address = {} } of ARRANGED)
	test(`${what}, which the address and Back know`, async (t) => {
		const page = await shown(t, query);
		const was = [await top(page), await group(page)];
		assert.deepEqual(was, [TOPS, VAL]);
		await act(page);
		await until(async () => [await top(page), await group(page)], (l) => String(l) === String([tops, val]),
			what);
		for (const [k, list] of Object.entries(address))
			await until(() => asked(page, k), (l) => String(l) === String(list), `${k}=${list}`);
		await page.waitForTimeout(300); // the address follows
		await page.goto(page.url());
		await page.waitForSelector('.sections [data-chart]', WAIT);
		assert.deepEqual([await top(page), await group(page)], [tops, val], 'after opening the address');
		if (!address.sz) return;
		const [a, b] = await Promise.all([box(page, 'val/a'), box(page, 'val/b')]);
		const [w, h] = address.sz[0];
		assert.ok(Math.abs(a.width - w * (b.width + 10) + 10) < 2, JSON.stringify([a, b]));
		assert.ok(Math.abs(a.height - h * (b.height + 10) + 10) < 2, JSON.stringify([a, b]));
	});

test('Back undoes an arrangement, and hidden charts are named, found and shown again', async (t) => {
	const page = await shown(t);
	await pick(page, 'val/a', 'Hide');
	await until(() => group(page), (l) => l.length === 4);
	await page.goBack();
	await until(() => group(page), (l) => l.length === 5);
	await page.goForward();
	await says(page, '.panels', /1 hidden/);
	await page.fill('.find', 'val/a');
	await until(() => group(page), (l) => String(l) === 'val/a,val/acc');
	await page.fill('.find', '');
	await page.click('.panels button:text-is("1 hidden")');
	await page.click('[role=dialog] button:text-is("Show val/a")');
	await until(() => group(page), (l) => String(l) === String(VAL));
	await page.selectOption('[aria-label="Columns of charts"]', '2');
	await until(() => perRow(page, VAL), (n) => n === 2);
	await page.click('.panels button:text-is("Default layout")');
	await until(() => perRow(page, VAL), (n) => n === 3);
	await until(() => page.url(), (u) => u.endsWith('?e=grid'));
});

test('three charts side by side on top are kept as the default of the experiment: 6 clicks', async (t) => {
	const page = await shown(t);
	await pick(page, 'val/c', 'Pin to the top'); // 2
	await until(() => perRow(page, [...TOPS, 'val/c']), (n) => n === 3);
	await page.click('.head button:has-text("Views")'); // 3
	await page.fill('[aria-label="Name of the view"]', 'three');
	await page.click('[role=dialog] button:text-is("Save")'); // 4
	await page.click('[aria-label="Show as default: three"]'); // 5
	await page.waitForSelector('[aria-label="Show as default: three"][aria-pressed=true]', WAIT);
	const other = await shown(t);
	await until(() => top(other), (l) => String(l) === String([...TOPS, 'val/c']));
	const { views } = await here.ask('GET', 'views?experiment=grid');
	await here.ask('DELETE', 'views/' + views[0].id);
});

test('addresses that nobody wrote show all charts', async (t) => {
	const page = await shown(t);
	for (const query of ['&cols=99', '&cols=-1', '&cols=x', '&sz=00.val/a', '&sz=99999.val/a', '&top=nothing',
		'&top=', '&hide=nothing&ord=nothing']) {
		await page.goto(`${here.server.url}?e=grid${query}`);
		await page.waitForSelector('.sections [data-chart="two/y"]', WAIT);
		const all = await page.$$eval('.chart > [data-chart]', (l) => l.map((e) => [e.dataset.chart,
			e.offsetWidth > 100 && e.offsetHeight > 100]));
		assert.deepEqual(all.sort(), KEYS.map((k) => [k, true]).sort(), query);
		assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1440, query);
	}
});

test('the handle of the table is seen and moves its edge', async (t) => {
	const page = await shown(t);
	const grip = await page.$eval('.handle', (e) => {
		const { width, height, backgroundColor } = getComputedStyle(e, '::after');
		return [width, height, backgroundColor];
	});
	assert.deepEqual(grip.slice(0, 2), ['48px', '5px']);
	assert.notEqual(grip[2], 'rgba(0, 0, 0, 0)');
	const height = () => page.$eval('.grid', (e) => e.clientHeight);
	const was = await height();
	const b = await page.locator('.handle').boundingBox();
	await page.mouse.move(b.x + b.width / 2, b.y + 4);
	await page.mouse.down();
	await page.mouse.move(b.x + b.width / 2, 130, { steps: 4 });
	await page.mouse.up();
	assert.ok(await height() <= was);
});
