// SPDX-License-Identifier: Apache-2.0
// Several runs are archived, moved, deleted and restored together; rows are pinned, columns moved and resized by keys;
// the overview describes experiments. Keyboard only where the test name says so.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clean, says, until } from '../browser.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage();

async function made(experiment, names) {
	const ids = {};
	for (const [i, name] of names.entries()) {
		const { id } = await here.ask('POST', 'runs',
			{ experiment, name, params: { lr: String(i + 1), seed: '0' } });
		await here.ask('POST', `runs/${id}/metrics`, { points: [1, 2].map((step) =>
			({ key: 'val/loss', step, value: i + 1 / step, wall_time: 1.7e9 + step })) });
		await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
		ids[name] = id;
	}
	return ids;
}

const names = (page) => page.$$eval('.grid :is(.pins, .body) .row', (l) => l
	.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((r) => r.querySelector('a').textContent).join());
const listed = (page, want) => until(() => names(page), (n) => n === want, want);
const heads = (page) => page.$$eval('.grid .head .cell',
	(l) => l.map((c) => c.textContent.replace(/[▾▴]/, '')).join('|'));

/** Presses keys in turn. */
async function press(page, ...keys) {
	for (const k of keys) await page.keyboard.press(k);
}

test('runs are deleted together by keyboard, undone at once, later restored from the trash', async (t) => {
	const ids = await made('many', ['a', 'b', 'c', 'd']);
	const page = await here.open(t, '?e=many');
	await listed(page, 'a,b,c,d');
	await page.focus(`[data-run="${ids.a}"] [role=rowheader]`);
	await press(page, 'v', 'ArrowDown', 'ArrowDown', 'Space', 'ArrowDown', 'x');
	await says(page, '.bulk', /^2 selected/);
	await page.focus('.bulk button[aria-label="More actions"]');
	await press(page, 'Enter');
	await page.focus('.bulk button:text-is("Delete")');
	await press(page, 'Enter');
	await says(page, '[role=dialog]', /^Delete 2 runs\?c, dThey move to the trash/);
	assert.equal((await here.ask('GET', 'runs/' + ids.c)).deleted, false, 'it asks before it deletes');
	await page.focus('[role=dialog] button:text-is("Delete 2 runs")');
	await press(page, 'Enter');
	await listed(page, 'a,b');
	await says(page, '.banner', /^2 runs are deleted\./);
	await press(page, '?');
	await says(page, '.keys', /zUndo the last removal/);
	await press(page, 'Escape', 'z');
	await listed(page, 'a,b,c,d');
	await page.waitForSelector('.banner', { state: 'detached' });
	for (const n of ['c', 'd']) assert.equal((await here.ask('GET', 'runs/' + ids[n])).deleted, false);
	for (const n of ['a', 'b']) await here.ask('DELETE', 'runs/' + ids[n]);
	await page.click('.nav a[title="Trash"]', WAIT);
	await page.click('button:text-is("Restore all 2 runs")', WAIT);
	await says(page, 'main.trash', /The trash is empty/);
	assert.equal((await here.ask('GET', 'runs/' + ids.a)).deleted, false);
});

/** Waits until the selector matches the focused element. */
const focusOn = (page, selector) => until(() => page.evaluate((q) => document.activeElement.outerHTML.slice(0, 160)
	+ document.activeElement.matches(q), selector), (said) => said.endsWith('true'), 'focus: ' + selector);

test('the focus is on the heading of an opened page, on the undo of a removal, then on the table', async (t) => {
	const ids = await made('focus', ['a', 'b', 'c']);
	const page = await here.open(t, '?e=focus');
	await listed(page, 'a,b,c');
	await page.focus(`[data-run="${ids.a}"] [role=rowheader]`);
	await press(page, 'Enter');
	await focusOn(page, '.runpage h1');
	await says(page, '.runpage h1', /^a/);
	await page.focus('.runhead a:text-is("All runs")');
	await press(page, 'Enter');
	await listed(page, 'a,b,c');
	await focusOn(page, 'main.tablepane h1');
	await page.focus('header button:text-is("Compare")');
	await press(page, 'Enter');
	await page.waitForSelector('main.side h1', WAIT);
	await focusOn(page, 'main h1');
	await page.click('main a:text-is("Table and charts")');
	await listed(page, 'a,b,c');
	await page.focus(`[data-run="${ids.a}"] [role=rowheader]`);
	await press(page, 'x');
	await page.focus('.bulk button[aria-label="More actions"]');
	await press(page, 'Enter');
	await page.focus('.bulk button:text-is("Delete")');
	await press(page, 'Enter');
	await listed(page, 'b,c');
	await focusOn(page, '.undo button, .grid [data-cell]');
	await page.focus('.undo button:text-is("Undo")');
	await press(page, 'Enter');
	await listed(page, 'a,b,c');
	await focusOn(page, '.grid [data-cell]');
});

test('a page opened before the script that keeps the focus has loaded gets it when that script runs', async (t) => {
	const ids = await made('early', ['a']);
	const page = await here.open(t);
	let go;
	const opened = new Promise((done) => {
		go = done;
	});
	await page.route(/afterwards/, (route) => opened.then(() => route.continue()));
	await page.goto(here.server.url + '?e=early');
	await listed(page, 'a');
	await page.focus(`[data-run="${ids.a}"] [role=rowheader]`);
	await press(page, 'Enter');
	await says(page, '.runpage h1', /^a/);
	assert.equal(await page.evaluate(() => document.activeElement === document.body), true);
	go();
	await focusOn(page, '.runpage h1');
});

test('undo of a deletion offers what the trash still has, and ends when all is restored there', async (t) => {
	await made('stale', ['a', 'b', 'c', 'd']);
	const page = await here.open(t, '?e=stale');
	await listed(page, 'a,b,c,d');
	await page.click('[aria-label="Select all runs"]', WAIT);
	await page.click('.bulk button[aria-label="More actions"]', WAIT);
	await page.click('.bulk button:text-is("Delete")');
	await page.click('[role=dialog] button:text-is("Delete 4 runs")');
	await says(page, '.banner', /^4 runs are deleted\./);
	await page.click('.banner button[aria-label="Undo for a"]');
	await says(page, '.banner', /^3 runs are deleted\./);
	await page.click('.nav a[title="Trash"]', WAIT);
	await says(page, 'main.trash', /brun of stale[-:\d ]+\d{4}-\d\d-\d\d \d\d:\d\dRestore/);
	await page.click('button[aria-label="Restore b"]', WAIT);
	await says(page, '.banner', /^2 runs are deleted\. Undoor onlycd/);
	await page.click('button:text-is("Restore all 2 runs")', WAIT);
	await says(page, 'main.trash', /The trash is empty/);
	await page.waitForSelector('.banner', { state: 'detached' });
});

test('runs are selected and compared while they are grouped', async (t) => {
	await made('grouped', ['a', 'b', 'c']);
	const page = await here.open(t, '?e=grouped&by=seed');
	await page.waitForSelector('.grouped [data-group]', WAIT);
	const compare = page.locator('.head button:text-is("Compare")');
	assert.equal(await compare.isEnabled(), true, 'the charted runs');
	await page.click('[aria-label="Select all runs"]');
	await says(page, '.bulk', /^3 selected/);
	assert.equal(await compare.isVisible(), true, 'it stays where it was');
	await clean(page);
	await page.click('.bulk button:text-is("Compare")');
	await until(() => page.$$eval('.side thead a', (l) => l.map((a) => a.textContent).sort().join()),
		(n) => n === 'a,b,c');
	await page.goBack();
	await page.click('.bulk button:text-is("Clear")', WAIT);
	await page.waitForSelector('.bulk', { state: 'detached' });
	await page.click('.head button:text-is("Compare")');
	await page.waitForSelector('main.side thead', WAIT);
});

test('runs move to another experiment and back; a live run or one with artifacts stays, with a reason', async (t) => {
	const ids = await made('from', ['a', 'b', 'kept']);
	const put = await fetch(`${here.server.url}api/v1/runs/${ids.kept}/artifacts/w.bin`,
		{ method: 'PUT', body: 'x' });
	assert.ok(put.ok);
	await here.ask('POST', 'runs', { experiment: 'from', name: 'live' });
	const page = await here.open(t, '?e=from');
	await until(() => names(page), (n) => n.split(',').length === 4);
	await page.click('[aria-label="Select all runs"]', WAIT);
	await says(page, '.bulk', /^4 selected/);
	await page.click('.bulk button:text-is("Move")');
	await page.fill('[aria-label="Experiment to move to"]', 'to/there');
	await press(page, 'Enter');
	await says(page, '.bulk .problem', /2 runs of 4 refused: run [0-9a-f]+ (has artifacts|is running)/);
	await until(() => names(page), (n) => n.split(',').sort().join() === 'kept,live');
	const there = async (id) => (await here.ask('GET', 'runs/' + id)).experiment;
	assert.deepEqual([await there(ids.a), await there(ids.b), await there(ids.kept)],
		['to/there', 'to/there', 'from']);
	const { runs } = await here.ask('GET', 'runs?experiment=to/there');
	assert.equal(runs.length, 2);
	await page.click('.banner button:text-is("Undo")');
	await until(() => names(page), (n) => n.split(',').length === 4);
	assert.equal(await there(ids.a), 'from');
});

test('runs are archived, shown on request, and unarchived', async (t) => {
	const ids = await made('away', ['a', 'b', 'c']);
	const page = await here.open(t, '?e=away');
	await listed(page, 'a,b,c');
	await page.focus(`[data-run="${ids.c}"] [role=rowheader]`);
	await press(page, 'x');
	await page.click('.bulk button[aria-label="More actions"]', WAIT);
	await page.click('.bulk button:text-is("Archive")');
	await listed(page, 'a,b');
	await page.click('.facts button:text-is("Show 1 archived")');
	await listed(page, 'a,b,c');
	await page.waitForURL(/[?&]arch/);
	await page.reload();
	await listed(page, 'a,b,c');
	assert.doesNotMatch(await heads(page), /dptrack/);
	await page.goto(here.server.url + '?r=' + ids.c);
	await page.click('.runhead button[aria-label^="More for"]', WAIT);
	await page.click('.runhead .item:text-is("Unarchive")');
	await says(page, '.banner', /restored/);
	await page.goto(here.server.url + '?e=away');
	await listed(page, 'a,b,c');
});

test('rows are pinned, one is the baseline, some are listed alone: by keys, kept in the address', async (t) => {
	const ids = await made('arranged', ['a', 'b', 'c', 'd']);
	const page = await here.open(t, '?e=arranged');
	await listed(page, 'a,b,c,d');
	await page.focus(`[data-run="${ids.c}"] [role=rowheader]`);
	await press(page, 'p');
	await listed(page, 'c,a,b,d');
	const focused = () => page.evaluate(() => document.activeElement.closest('[data-run]')?.dataset.run);
	await until(focused, (id) => id === ids.c, 'the focus moves with the row');
	await page.focus(`[data-run="${ids.b}"] [role=rowheader]`);
	await press(page, 'b');
	await listed(page, 'b,c,a,d');
	await until(() => page.$$eval('.grid .c-delta', (l) => l.map((c) => c.textContent).join()),
		(s) => s.startsWith('baseline,'));
	await page.waitForURL(/[?&]base=/);
	await page.reload();
	await listed(page, 'b,c,a,d');
	await page.click('.facts button:has-text("Baseline b")');
	await listed(page, 'c,a,b,d');
	await page.focus(`[data-run="${ids.d}"] [role=rowheader]`);
	await press(page, 'v');
	await page.click('.facts button:text-is("List these alone")');
	await listed(page, 'c,a,b');
	await page.click('.facts button:text-is("List all runs")');
	await listed(page, 'c,a,b,d');
});

test('columns are moved and resized by keys and pointer, kept in the address', async (t) => {
	const ids = await made('columns', ['a', 'b']);
	const page = await here.open(t, '?e=columns&c=p:lr&c=p:seed&c=status');
	await listed(page, 'a,b');
	assert.equal(await heads(page), 'Run|lr|seed|Status');
	await until(() => page.evaluate(() => performance.getEntriesByType('resource')
		.some((e) => /arrange/.test(e.name))), (there) => there, 'what moves columns is loaded');
	await page.focus(`[data-run="${ids.a}"] [role=rowheader]`);
	await press(page, 'ArrowUp', 'ArrowRight', 'Alt+ArrowRight');
	await until(() => heads(page), (h) => h === 'Run|seed|lr|Status');
	const width = () => page.$eval('[data-cell="-1:2"]', (c) => c.offsetWidth);
	const before = await width();
	await press(page, 'Alt+Shift+ArrowRight', 'Alt+Shift+ArrowRight');
	await until(width, (w) => w === before + 20);
	const edge = await page.$eval('[data-cell="-1:1"] .edge', (e) => e.getBoundingClientRect().toJSON());
	const seed = await page.$eval('[data-cell="-1:1"]', (c) => c.offsetWidth);
	await page.mouse.move(edge.x + 3, edge.y + 10);
	await page.mouse.down();
	await page.mouse.move(edge.x + 53, edge.y + 10, { steps: 5 });
	await page.mouse.up();
	await until(() => page.$eval('[data-cell="-1:1"]', (c) => c.offsetWidth), (w) => Math.abs(w - seed - 50) <= 1);
	await page.waitForURL(/[?&]w=\d+\.p:seed/);
	await page.reload();
	await listed(page, 'a,b');
	await until(width, (w) => w === before + 20);
	const [from, to] = await Promise.all([1, 3].map((i) => page.$eval(`[data-cell="-1:${i}"]`,
		(c) => c.getBoundingClientRect().toJSON())));
	await page.mouse.move(from.x + 8, from.y + 10);
	await page.mouse.down();
	await page.mouse.move(to.x + 8, to.y + 10, { steps: 5 });
	await page.mouse.up();
	await until(() => heads(page), (h) => h === 'Run|lr|Status|seed');
});

test('the overview: failed runs, the best by goal, a description; archive and undo', async (t) => {
	const ids = await made('over/one', ['a', 'b']);
	await here.ask('PATCH', 'runs/' + ids.b, { status: 'failed' });
	const { experiments } = await here.ask('GET', 'experiments');
	const { id } = experiments.find((e) => e.name === 'over/one');
	const r = await fetch(here.server.url + 'api/2.0/mlflow/experiments/set-experiment-tag', { method: 'POST',
		headers: { 'content-type': 'application/json' },
		body: JSON.stringify({ experiment_id: id, key: 'mlflow.note.content', value: 'What it is **for**' }) });
	assert.ok(r.ok);
	const page = await here.open(t, '?all');
	const line = 'main tr:has(a:text-is("over/one"))';
	await until(() => page.locator(line).first().textContent(), (s) => /What it is for|What it is \*\*for/.test(s)
		&& /over\/one.*21/.test(s) && /0\.5/.test(s));
	await page.focus('button[aria-label="More for over/one"]');
	await press(page, 'Enter');
	await page.focus('[role=dialog] button:text-is("Archive")');
	await press(page, 'Enter');
	await page.waitForSelector(line, { ...WAIT, state: 'detached' });
	await says(page, '.banner', /over\/one is archived/);
	await page.click('[aria-label=Archive] button:has-text("Archive")');
	await page.waitForSelector('[aria-label=Archive] a:text-is("over/one")', WAIT);
	await clean(page);
	await page.click('.banner button:text-is("Undo")');
	await page.waitForSelector(line, WAIT);
	await page.click('button[aria-label="More for over/one"]');
	await page.click('[role=dialog] button:text-is("Delete")');
	await says(page, '.banner', /over\/one is deleted, with its runs/);
	await page.click('.banner button:text-is("Undo")');
	await page.waitForSelector(line, WAIT);
});

for (const [colorScheme, width] of [['light', 1280], ['dark', 390]])
	test(`axe finds nothing serious in the table (${colorScheme}, ${width} px)`, async (t) => {
		const ids = await made('axe' + width, ['a', 'b', 'c']);
		const page = await here.open(t, '?all');
		await page.emulateMedia({ colorScheme });
		await page.setViewportSize({ width, height: 844 });
		await page.waitForSelector(`main a:text-is("axe${width}")`, WAIT);
		await clean(page);
		await page.goto(`${here.server.url}?e=axe${width}&pin=${ids.b.slice(0, 8)}&base=${ids.c.slice(0, 8)}`);
		await page.waitForSelector('.app[data-ready="true"]', WAIT);
		if (width > 900) {
			await page.click('[aria-label="Select all runs"]', WAIT);
			await page.click('.bulk button:text-is("Tag")', WAIT);
			await says(page, '[role=dialog]', /Set on 3 runs/);
		} else {
			await page.click('.others > .pop > button', WAIT);
			await says(page, '[role=dialog]', /Download CSV/);
		}
		await clean(page);
	});
