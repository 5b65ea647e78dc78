// SPDX-License-Identifier: Apache-2.0
// Choosing runs: the filter completes fields, operators and values, and keeps the table while an expression lacks its
// end; the menu at a column's head. By keyboard.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clean, drawn, says, until } from '../browser.mjs';
import { writeTwelve } from '../serve.mjs';
import { stage } from '../stage.mjs';

const FIELD = 'input[aria-label="Filter runs"]';
const here = stage(writeTwelve);

const names = (page) => page.$$eval('.grid :is(.pins, .body) .row', (l) => l
	.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((r) => r.querySelector('a').textContent));
const offered = (page) => page.$$eval('#completion [role=option] > span', (l) => l.map((e) => e.textContent));
const offers = (page, test) => until(() => offered(page), test);
/** The names that REST lists for a filter. */
const found = async (filter) => (await here.ask('GET', 'runs?experiment=fashion&limit=100&filter='
	+ encodeURIComponent(filter))).runs.map((r) => r.name).sort().join();
const lists = (page, want) => until(async () => (await names(page)).sort().join(), (n) => n === want, want);

test('a filter is completed by keys; the table keeps its last state until it has its end', async (t) => {
	const page = await here.open(t, '?e=fashion');
	await drawn(page);
	const all = (await names(page)).join();
	await page.keyboard.press('/');
	await page.keyboard.type('l');
	await offers(page, (l) => l[0] === 'lr');
	await page.keyboard.press('ArrowDown');
	await until(() => page.getAttribute(FIELD, 'aria-activedescendant'), (a) => a === 'completion-0');
	await clean(page);
	await page.keyboard.press('Enter');
	await offers(page, (l) => l.includes('>') && l.includes('IS NULL') && !l.includes('LIKE'));
	await page.keyboard.type('> ');
	await offers(page, (l) => l.join() === '0.05,0.1,0.2,0.8');
	await page.waitForTimeout(600); // longer than the filter waits for the next letter
	assert.equal((await names(page)).join(), all, 'no run is hidden yet');
	assert.ok(!/[?&]q=/.test(page.url()), page.url());
	await page.keyboard.type('0.1');
	await lists(page, await found('params.lr > 0.1'));
	const few = (await names(page)).join();
	await page.keyboard.type(' and mod');
	await offers(page, (l) => l.join() === 'model');
	await page.waitForTimeout(600);
	assert.equal((await names(page)).join(), few);
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Tab');
	await page.keyboard.type('= ');
	await offers(page, (l) => l.includes("'cnn'") && l.includes("'resnet'"));
	await page.keyboard.type('cnn');
	await page.keyboard.press('Enter');
	await lists(page, await found("params.lr > 0.1 AND params.model = 'cnn'"));
	assert.equal(await page.inputValue(FIELD), 'lr > 0.1 and model = cnn');
	await page.keyboard.press('Escape');
	await lists(page, all.split(',').sort().join());
	await page.keyboard.press('/');
	for (const c of 'epoch/top1.max > 0.9') {
		await page.keyboard.type(c);
		await page.waitForTimeout(/[p> .]/.test(c) ? 300 : 20);
		assert.ok((await names(page)).length > 0);
	}
	await lists(page, await found('metrics."epoch/top1".max > 0.9'));
});

test('a bare name is a param or a metric, in a link too; mistakes are explained and hide nothing', async (t) => {
	const page = await here.open(t, '?e=fashion&q=epoch/top1.max+%3E+0.9');
	const want = await found('metrics."epoch/top1".max > 0.9');
	await lists(page, want);
	assert.ok(want.length > 20);
	for (const typed of ['batch size = 256', 'params.batch size<200 and lr > 0.05']) {
		await page.fill(FIELD, typed);
		await lists(page, await found(typed.replace('batch size', 'batch_size')));
		assert.equal(await page.inputValue(FIELD), typed, 'the text stays as typed');
	}
	await page.fill(FIELD, 'epoch/top1.max > 0.9');
	await lists(page, want);
	await page.fill(FIELD, 'lrr > 0.1');
	await says(page, '.head > .problem', /no run has a param or metric 'lrr'/);
	await lists(page, want);
	await page.fill(FIELD, 'lr >');
	await page.keyboard.press('Enter');
	await says(page, '.head > .problem', /^The filter is not complete: a value is missing\.$/);
	for (const width of [1440, 800, 390]) {
		await page.setViewportSize({ width, height: 844 });
		const [filter, message, facts] = await until(() => Promise.all(['.filter', '.head > .problem', '.facts']
			.map((q) => page.locator(q).boundingBox())), (l) => l.every((b) => b !== null));
		assert.ok(message.y >= filter.y + filter.height && message.y + message.height <= facts.y,
			`${width} px: ${JSON.stringify([filter, message, facts])}`);
		assert.ok(message.x >= 0 && message.x + message.width <= width, JSON.stringify(message));
	}
	await page.setViewportSize({ width: 1280, height: 800 });
	await lists(page, want);
	await page.fill(FIELD, 'resnet');
	await lists(page, (await found("name LIKE '%resnet%'")));
	const other = await here.open(t, '?e=fashion&q=lr+%3E');
	await until(() => names(other), (l) => l.length === 12, 'a link without its end lists every run');
});

test('a complete filter has no list until an arrow key asks; the name of a field is no search', async (t) => {
	const page = await here.open(t, '?e=fashion');
	await drawn(page);
	const all = (await names(page)).length;
	await page.fill(FIELD, 'lr > 0.1 ');
	await until(() => names(page), (l) => l.length < all);
	assert.deepEqual(await offered(page), []);
	await page.keyboard.press('ArrowDown');
	await offers(page, (l) => l.join() === 'AND,OR');
	await page.keyboard.press('Escape');
	await page.fill(FIELD, 'lr > 0.1 a');
	await offers(page, (l) => l[0] === 'AND');
	await page.fill(FIELD, 'lr');
	await page.waitForTimeout(600); // longer than the filter waits for the next letter
	assert.ok(!/[?&]q=lr(?:&|$)/.test(page.url()), page.url());
	await page.keyboard.press('Enter');
	await until(() => page.url(), (u) => /[?&]q=lr(?:&|$)/.test(u), 'Enter searches for the word');
});

/** Opens the menu of a column's head by keys, and chooses an item by its first letters. */
async function choose(page, title, word) {
	const cell = page.locator('.grid .head .cell', { hasText: new RegExp('^' + title) });
	await cell.focus();
	await page.keyboard.press('Alt+ArrowDown');
	await page.waitForSelector(`[role=dialog] button:text-is("${word}")`);
	for (let i = 0; i < 20; i++) {
		if (await page.evaluate(() => document.activeElement.textContent) === word) break;
		await page.keyboard.press('ArrowDown');
	}
	await page.keyboard.press('Enter');
}
const titles = (page) => page.$$eval('.grid .head .cell', (l) => l.map((c) => c.textContent.replace(/[▾▴]/, '')));
const column = async (page, title) => {
	const at = (await titles(page)).indexOf(title);
	return page.$$eval('.grid .body .row', (l, i) => l.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)
		.map((r) => r.children[i].textContent), at);
};

test('the menu of a head sorts twice, filters, groups, pins, moves and hides, by keys', async (t) => {
	const page = await here.open(t, '?e=fashion');
	await drawn(page);
	const before = await names(page);
	await choose(page, 'model', 'Sort Z to A');
	await choose(page, 'lr', 'Then low to high');
	const { runs } = await here.ask('GET', 'runs?experiment=fashion&limit=100');
	const want = runs.map((r) => [r.params.model, Number(r.params.lr)])
		.sort((a, b) => (a[0] < b[0] ? 1 : a[0] > b[0] ? -1 : a[1] - b[1]));
	await until(async () => JSON.stringify([await column(page, 'model'), (await column(page, 'lr')).map(Number)]),
		(s) => s === JSON.stringify([want.map((w) => w[0]), want.map((w) => w[1])]));
	await until(() => page.url(), (u) => /[?&]s=-p:model/.test(u) && /[?&]s2=p:lr/.test(u));
	await page.reload();
	await drawn(page);
	assert.deepEqual(await column(page, 'model'), want.map((w) => w[0]), 'the address holds both');
	await choose(page, 'lr', 'Sort by the goal');
	await until(() => names(page), (l) => l.join() === before.join());

	await choose(page, 'model', 'Filter by value');
	await page.waitForSelector('[role=dialog][aria-label="Filter by model"]');
	await clean(page);
	await page.keyboard.press('Space');
	await page.keyboard.press('Enter');
	await lists(page, await found("params.model = 'cnn'"));
	assert.equal(await page.inputValue(FIELD), "model = 'cnn'");
	await choose(page, 'lr', 'Filter by value');
	await page.fill('[role=dialog] label:has-text("At least") input', '0.1');
	await page.keyboard.press('Enter');
	await lists(page, await found("params.model = 'cnn' AND params.lr >= 0.1"));
	await choose(page, 'model', 'Filter by value');
	await page.waitForSelector('[role=dialog] input:checked');
	await page.keyboard.press('Space');
	await page.keyboard.press('Enter');
	await lists(page, await found('params.lr >= 0.1'));
	await page.focus(FIELD);
	await page.keyboard.press('Escape');

	await choose(page, 'lr', 'Pin to the left');
	await until(() => titles(page), (l) => l[1] === 'lr');
	await page.setViewportSize({ width: 800, height: 700 });
	await page.$eval('.grid', (e) => (e.scrollLeft = 400));
	const left = (sel) => page.$eval(sel, (e) => e.getBoundingClientRect().left);
	await until(async () => await left('[data-cell="0:1"]') - await left('.grid'), (x) => x > 0 && x < 400);
	assert.equal(await left('[data-cell="0:1"]'), await left('[data-cell="-1:1"]'));
	await page.setViewportSize({ width: 1280, height: 800 });
	await choose(page, 'lr', 'Unpin');
	await choose(page, 'model', 'Move right');
	await until(() => titles(page), (l) => l.indexOf('model') === l.indexOf('strategy') + 1);
	await page.keyboard.press('Escape');
	await choose(page, 'strategy', 'Hide');
	await until(() => titles(page), (l) => !l.includes('strategy') && l[l.indexOf('Status') + 1] === 'model');
	await choose(page, 'model', 'Group by this');
	await until(() => page.locator('.grouped [data-group]').count(), (n) => n === 3);
});

test('groups are sorted twice, too: by the head with Shift, by Shift+Enter, from the address', async (t) => {
	const page = await here.open(t, '?e=fashion&by=model&by=lr&s=p:model&s2=-p:lr');
	const groups = () => page.$$eval('.grouped .body .row', (l) => l.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)
		.map((r) => r.dataset.group ?? r.querySelector('a').textContent).join('; '));
	const { runs } = await here.ask('GET', 'runs?experiment=fashion&limit=100');
	const name = (model, lr) => {
		const [one, ...more] = runs.filter((r) => r.params.model === model && r.params.lr === lr);
		return more.length ? `model ${model}, lr ${lr}` : one.name;
	};
	const pairs = [...new Set(runs.map((r) => r.params.model + ' ' + r.params.lr))].map((p) => p.split(' '));
	const sorted = (sign) => pairs.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : sign * (a[1] - b[1])))
		.map(([model, lr]) => name(model, lr)).join('; ');
	await until(groups, (l) => l === sorted(-1), sorted(-1));
	assert.notEqual(sorted(-1), sorted(1));
	const head = page.locator('.grouped .head .cell:has-text("lr")').first();
	await head.click({ modifiers: ['Shift'] });
	await until(() => page.url(), (u) => !u.includes('s2='));
	await head.focus();
	await page.keyboard.press('Shift+Enter');
	await until(() => page.url(), (u) => u.includes('s2=p:lr'));
	await until(groups, (l) => l === sorted(1), sorted(1));
	await page.keyboard.press('Shift+Enter');
	await until(groups, (l) => l === sorted(-1), sorted(-1));
});

test('Tab goes from the table to the actions on its selection, and e on a run to its notes', async (t) => {
	const page = await here.open(t, '?e=fashion');
	await drawn(page);
	await page.focus('.grid .body .row[aria-rowindex="3"] .c-name');
	await page.keyboard.press('Space');
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Space');
	await says(page, '.bulk', /^2 selected/);
	const where = () => page.evaluate(() => document.activeElement.closest('.bulk, .grid')?.className ?? '');
	assert.match(await where(), /grid/);
	await page.keyboard.press('Tab');
	assert.match(await where(), /bulk/);
	assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Compare');
	await page.keyboard.press('Shift+Tab');
	assert.match(await where(), /grid/);
	const [bar, facts] = await page.$$eval('.bulk, .tablepane .facts:not(.bulk)',
		(l) => l.map((e) => e.getBoundingClientRect().top));
	assert.equal(bar, facts, 'it covers the facts, and nothing moves');
	await page.click('.bulk [aria-label="More actions"]');
	await clean(page);
	await page.keyboard.press('Escape');
	await page.focus('.grid .body .row[aria-rowindex="3"] .c-name');
	await page.keyboard.press('Enter');
	await page.waitForSelector('.runpage h1');
	await page.click('nav.tabs a:text-is("Charts")');
	await page.keyboard.press('?');
	await says(page, '.keys', /eEdit the notes/);
	await page.keyboard.press('Escape');
	await page.keyboard.press('e');
	await page.waitForSelector('.notes textarea');
	await page.keyboard.type('seen');
	assert.equal(await page.inputValue('.notes textarea:focus'), 'seen');
	await page.keyboard.press('Control+Enter');
	await says(page, '.notes', /seen/);
	assert.match(await page.getAttribute('.notes button', 'title'), /\(e\)/);
	await page.goto(page.url() + '&t=charts');
	await says(page, '.runhead > button', /^Edit the notes/);
	await page.keyboard.press('Tab');
	const way = page.locator(':focus');
	assert.equal(await way.textContent(), 'Edit the notes e');
	const [own, name] = await Promise.all([way, page.locator('.runpage h1')].map((e) => e.boundingBox()));
	assert.ok(own.width > 60 && own.x + own.width <= name.x, JSON.stringify([own, name]));
	await clean(page);
	await page.keyboard.press('Enter');
	await page.waitForSelector('.notes textarea:focus');
});

test('a table of groups shows that it has columns beyond its edge, and keys bring them into view', async (t) => {
	const page = await here.open(t, '?e=fashion&by=params.model');
	await page.setViewportSize({ width: 900, height: 800 });
	await page.waitForSelector('.grid.grouped .body .row');
	const more = '.tablepane > .more';
	const left = () => page.$eval('.grid', (g) => g.scrollLeft);
	const address = page.url();
	await page.click(more);
	await until(left, (x) => x > 0, 'a click on the edge scrolls');
	assert.equal(page.url(), address, 'and does not sort');
	await page.focus('.grid.grouped .body [data-cell="0:0"]');
	await page.keyboard.press('Home');
	await page.waitForSelector(more, { state: 'visible' });
	await page.focus('.grid.grouped .body [data-cell="0:0"]');
	await page.keyboard.press('End');
	const last = '.grid.grouped .body .row:first-child .cell:last-child';
	await until(() => page.$eval(last, (c) => c === document.activeElement
		&& c.getBoundingClientRect().right <= c.closest('.grid').getBoundingClientRect().right + 1),
		(ok) => ok);
	await page.waitForSelector(more, { state: 'hidden' });
	await clean(page);
});

test('on a phone two runs side by side fit, a third begins, and the names stay at the left', async (t) => {
	const page = await here.open(t);
	await page.setViewportSize({ width: 390, height: 844 });
	await page.goto(here.server.url + '?e=fashion&side');
	await page.waitForSelector('.side > .scroll thead th:nth-child(6)');
	const spans = () => page.$$eval('.side > .scroll :is(thead th, [aria-label=Metrics] tr:nth-child(2) > *)',
		(l) => l.map((e) => [e.getBoundingClientRect().left, e.getBoundingClientRect().right]));
	const box = await page.locator('.side > .scroll').boundingBox();
	const all = await spans();
	const n = all.length / 2;
	for (const row of [all.slice(0, n), all.slice(n)]) {
		assert.ok(row[2][1] <= box.x + box.width, `the second run ends at ${row[2][1]}`);
		assert.ok(row[3][0] <= box.x + box.width - 24, `the third run begins at ${row[3][0]}`);
	}
	await page.$eval('.side > .scroll', (e) => (e.scrollLeft = 200));
	const moved = await spans();
	assert.equal(moved[n][0], all[n][0]);
	assert.ok(Math.abs(all[n + 2][0] - moved[n + 2][0] - 200) < 1);
	await clean(page);
});
