// SPDX-License-Identifier: Apache-2.0
// The view and its persistence: axes, zoom, the first evaluation of a live run, searches, selections, saved views, and
// what a reload keeps.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { charted, drawn, says, until } from './browser.mjs';
import { stage } from './stage.mjs';

const WAIT = { timeout: 30000 };
const DAY_S = 86400;
const here = stage();

/** Creates a run with points {key: [[step, value, seconds], …]}; it ends unless live is set. */
async function run(experiment, name, series, { params = { lr: '0.1' }, live = false, start = 1.7e9 } = {}) {
	const { id } = await here.ask('POST', 'runs', { experiment, name, params, start_time: start * 1000 });
	await log(id, series, start);
	if (!live) await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	return id;
}

function log(id, series, start = 1.7e9) {
	return here.ask('POST', `runs/${id}/metrics`, { points: Object.entries(series).flatMap(([key, list]) =>
		list.map(([step, value, at = step]) => ({ key, step, value, wall_time: start + at }))) });
}

const steps = (n, f, every = 1) => Array.from({ length: n }, (_, i) => [i + 1, f(i), (i + 1) * every]);

test('a zoom over steps does not affect charts that count epochs; these zoom separately', async (t) => {
	await run('epochs', 'a', { 'train/loss': steps(4000, (i) => 1 / (i + 1)), 'epoch/top1': steps(12, (i) => i) });
	const page = await here.open(t, '?e=epochs&z=1000~2000');
	await charted(page, 'train/loss', (d) => d.from === 1000 && d.to === 2000);
	await charted(page, 'epoch/top1', (d) => d.from === 1 && d.to === 12 && d.lines.length === 1
		&& d.lines[0].points === 12);
	await page.focus('[data-chart="epoch/top1"]');
	await page.goto(here.server.url + '?e=epochs&z=1000~2000&ze=3~6');
	await charted(page, 'epoch/top1', (d) => d.from === 3 && d.to === 6);
	await charted(page, 'train/loss', (d) => d.from === 1000 && d.to === 2000);
});

test('x is the time since the start in hours and days, or the clock', async (t) => {
	const start = Date.UTC(2026, 2, 1, 22) / 1000;
	await run('times', 'long', { 'train/loss': steps(200, (i) => 1 / (i + 1), 2 * DAY_S / 200) }, { start });
	const page = await here.open(t, '?e=times&x=time');
	const d = await charted(page, 'train/loss', (c) => c.lines.length === 1);
	assert.ok(d.ticks.some((x) => /^\d+ h$|^\d+ d( \d+ h)?$/.test(x)) && !d.ticks.some((x) => /min/.test(x)),
		d.ticks.join());
	await page.click('[role=group][aria-label="X axis"] button:has-text("Clock")');
	const c = await charted(page, 'train/loss', (x) => x.from > 1e9);
	assert.ok(c.from >= start && c.to <= start + 2 * DAY_S + 1, `${c.from} ${c.to}`);
	assert.ok(c.ticks.includes('Mar 2') || c.ticks.some((x) => /^\w{3} \d+$/.test(x)), c.ticks.join());
});

test('the first evaluation of a live run changes neither goal nor columns nor the order of charts', async (t) => {
	const id = await run('live', 'a', { 'train/loss': steps(50, (i) => 1 / (i + 1)),
		'sys/load': steps(50, () => 1) }, { live: true });
	const page = await here.open(t, '?e=live');
	await charted(page, 'train/loss', (d) => d.lines.length === 1);
	const seen = () => page.evaluate(() => [document.querySelector('.goal select').value,
		document.querySelector('.grid .head').textContent,
		[...document.querySelectorAll('[data-chart]')].map((c) => c.dataset.chart).slice(0, 2).join()]
		.join(' | '));
	const before = await seen();
	await log(id, { 'epoch/top1': [[1, 40]], 'epoch/val_loss': [[1, 2]], 'train/loss': [[60, 0.01]] });
	await page.waitForSelector('.goal .new:has-text("epoch/top1")', WAIT);
	assert.equal(await seen(), before);
	await page.click('.goal .new');
	await until(() => page.inputValue('.goal select'), (v) => v === 'epoch/top1');
	await page.waitForSelector('.goal .new', { ...WAIT, state: 'detached' });
});

test('two of twelve runs are selected in two clicks, one by a key, a range with shift', async (t) => {
	for (let i = 0; i < 12; i++)
		await run('twelve', 'r' + i, { loss: steps(5, (k) => i + k) }, { params: { lr: String(i) } });
	const page = await here.open(t, '?e=twelve');
	const eye = (n) => `.grid .body .row[aria-rowindex="${n}"] .shows`;
	const drawnRuns = (n) => charted(page, 'loss', (d) => d.lines.length === n);
	await drawnRuns(12);
	await page.hover('.grid .body .row[aria-rowindex="4"]');
	await page.click('.grid .body .row[aria-rowindex="4"] [title^="Only this run"]');
	await drawnRuns(1);
	await page.hover('.grid .body .row[aria-rowindex="7"]');
	await page.click(eye(7));
	const two = await drawnRuns(2);
	assert.deepEqual([...two.names].sort(), ['r2', 'r5']);
	await page.hover('.grid .body .row[aria-rowindex="9"]');
	await page.click(eye(9), { modifiers: ['Shift'] });
	await drawnRuns(4);
	await page.focus('.grid .body .row[aria-rowindex="3"] [role=rowheader]');
	await page.keyboard.press('o');
	await drawnRuns(1);
});

test('the CSV has the filter, order and columns of the table, with every digit', async (t) => {
	for (const [i, v] of [0.1 + 0.2, 1 / 3, NaN].entries())
		await run('saved', ['ab, "c"', 'abd', 'abe'][i], { 'x/acc': [[1, Number.isNaN(v) ? 'NaN' : v]] },
			{ params: { lr: String(i + 1), note: 'n' + i } });
	await run('saved', 'other', { 'x/acc': [[1, 5]] }, { params: { lr: '9' } });
	const page = await here.open(t, '?e=saved&q=ab&c=p:lr&c=m:last:x/acc&s=-p:lr');
	await says(page, '.grid .body .row[aria-rowindex="2"]', /abe/);
	await page.click('.others > .pop > button');
	const [download] =
		await Promise.all([page.waitForEvent('download'),
			page.click('.others button:text-is("Download CSV")')]);
	const text = (await readFile(await download.path(), 'utf8')).trimEnd().split('\r\n');
	assert.equal(text[0], '\ufeffrun_id,run_name,params.lr,metrics.x/acc.last');
	assert.deepEqual(text.slice(1).map((l) => l.slice(33)),
		['abe,3,NaN', `abd,2,${1 / 3}`, `"ab, ""c""",1,${0.1 + 0.2}`]);
});

test('a reload keeps searches, open parts, the brush and the table\'s height', async (t) => {
	for (let i = 0; i < 40; i++)
		await run('kept', 'k' + i, { 'a/x': [[1, i]], 'b/y': [[1, i]], 'train/loss': steps(3, () => i) },
			{ params: { lr: String(i / 10), wd: String(i % 3) } });
	const page = await here.open(t, '?e=kept&par&br=0.5~1~lr');
	const tableHeight = () => page.$eval('.grid', (e) => Math.round(e.getBoundingClientRect().height));
	await says(page, '.parallel .options', /20 runs within/);
	const before = await tableHeight();
	assert.ok(before < 0.45 * 800, 'a long table leaves room for the charts');
	await page.focus('.handle');
	for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowUp');
	const height = await until(tableHeight, (h) => h < before - 0.1 * 800);
	await page.click('.group[aria-label="b"] h2 button');
	await page.waitForURL(/gr=0\.b/);
	await page.reload();
	await says(page, '.parallel .options', /20 runs within/);
	await until(tableHeight, (h) => h === height);
	assert.equal(await page.locator('.group[aria-label="b"] [data-chart]').count(), 0);
	await page.fill('input[aria-label="Find a chart"]', 'y b');
	await page.waitForURL(/f=y\+b/);
	await page.reload();
	await until(() => page.$$eval('[data-chart]', (l) => l.map((c) => c.dataset.chart).join()), (k) => k === 'b/y');
	await page.setViewportSize({ width: 390, height: 844 });
	await page.goto(here.server.url + '?e=kept');
	await charted(page, 'train/loss', (d) => d.lines.length > 0);
	assert.ok(await page.$eval('[data-chart]', (e) => e.getBoundingClientRect().top + scrollY) < 1500,
		'on a phone the charts follow a few cards');
	await page.click('.cards button:has-text("All 40 runs")');
	await until(() => page.locator('.cards .card').count(), (n) => n === 40);
});

test('200 runs leave room for the charts: below the table, and on a phone below a few cards', async (t) => {
	const one = (i) => run('long', 'l' + i, { 'train/loss': steps(3, () => i) }, { params: { lr: String(i) } });
	for (let i = 0; i < 200; i += 10) await Promise.all(Array.from({ length: 10 }, (_, k) => one(i + k)));
	const page = await here.open(t, '?e=long');
	await charted(page, 'train/loss', (d) => d.lines.length > 0);
	const room = await page.$eval('[data-chart]', (e) =>
		innerHeight - e.closest('.charts').getBoundingClientRect().top);
	assert.ok(room >= 340, `${room} px of charts in the window`);
	await page.setViewportSize({ width: 390, height: 844 });
	await page.waitForSelector('.cards .card', WAIT);
	const top = () => page.$eval('[data-chart]', (e) => e.getBoundingClientRect().top + scrollY);
	await until(top, (y) => y > 100 && y < 1500, 'the first chart follows a few cards');
});

/** Three settings with four seeds each; one run failed half-way, one has no final value. */
async function repeats(experiment) {
	for (const lr of [1, 2, 3])
		for (const seed of [0, 1, 2, 3]) {
			const short = lr === 3 && seed === 3;
			await run(experiment, `l${lr}s${seed}`, { loss: steps(short ? 2 : 4, (i) => lr * 10 + seed + i),
				'val/acc': [[4, lr === 2 && seed === 2 ? 'NaN' : (lr * 10 + seed * seed) / 100]] },
				{ params: { lr: String(lr), seed: String(seed), wd: '0' } });
		}
}

test('groups: a line with a band for the seeds of each setting, kept in the address', async (t) => {
	await repeats('grouped');
	const page = await here.open(t, '?e=grouped');
	await charted(page, 'loss', (d) => d.lines.length === 12);
	await page.click('button:text-is("Group by")');
	await page.click('.picker label:has-text("lr")');
	const d = await charted(page, 'loss', (c) => c.lines.length === 3);
	assert.deepEqual([...d.names].sort(), ['lr 1 (4)', 'lr 2 (4)', 'lr 3 (4)']);
	const one = d.lines.find((l) => l.id === 'group:lr 1');
	assert.ok(Math.abs(one.top - 14.5) < 1e-9 && Math.abs(one.bottom - 11.5) < 1e-9, JSON.stringify(one));
	assert.ok(d.hi >= 35.9 && d.lo <= 10, `the band is within the axis: ${d.lo} ${d.hi}`);
	await page.keyboard.press('Escape');
	await page.selectOption('select[aria-label="Band"]', 'se');
	await charted(page, 'loss', (c) => c.hi < 36);
	await page.selectOption('select[aria-label="Line"]', 'median');
	await page.waitForURL(/by=lr&band=se&median/);
	await page.reload();
	await charted(page, 'loss', (c) => c.lines.length === 3 && c.hi < 36);
});

test('group rows: n, mean, deviation as the server computes them; a hidden run changes only its group', async (t) => {
	await repeats('rows');
	const { groups } = await here.ask('GET', 'runs?experiment=rows&group_by=params.lr');
	const page = await here.open(t, '?e=rows&g=val/acc');
	await page.click('button:text-is("Group by all but seed")');
	const full = async (name) => /Mean (\S+), standard deviation (\S+), of (\d+) runs/.exec(await page.getAttribute(
		`[data-group="${name}"] .c-m`, 'title')).slice(1).map(Number);
	await page.waitForSelector('[data-group="lr 3"] .c-m', WAIT);
	for (const g of groups) {
		const lr = g.group['params.lr'];
		const [mean, std, n] = await full('lr ' + lr);
		const expected = g.metrics['val/acc'].max;
		assert.equal(n, expected.n);
		assert.ok(Math.abs(mean - expected.mean) < 1e-12 && Math.abs(std - expected.std) < 1e-12,
			`${lr}: ${mean} ${std}`);
	}
	assert.deepEqual(await page.$$eval('.grouped .body .row',
		(l) => l.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((r) => r.dataset.group)), ['lr 3',
			'lr 2', 'lr 1']);
	await page.focus('[data-group="lr 1"] [role=rowheader]');
	await page.keyboard.press('Enter');
	await until(() => page.locator('.grouped .body .row').count(), (n) => n === 7);
	await page.keyboard.press('ArrowDown');
	const before = await full('lr 3');
	await page.keyboard.press('v');
	await says(page, '[data-group="lr 1"]', /3 of 4/);
	assert.deepEqual(await full('lr 3'), before);
	await charted(page, 'loss', (d) => d.names.includes('lr 1 (3)') && d.names.includes('lr 3 (4)'));
	await page.focus('[data-chart="loss"]');
	await page.keyboard.press('End');
	await says(page, '.readings:not([hidden])', /lr 1 \(3\)/);
	await page.setViewportSize({ width: 390, height: 844 });
	await says(page, '.cards', /lr 3.*4 runs/);
});

test('a run that failed is in no mean; groups, charts and pivots say so with the same words', async (t) => {
	await repeats('early');
	const { runs } = await here.ask('GET', 'runs?experiment=early&limit=100');
	for (const [name, status] of [['l1s0', 'failed'], ['l2s0', 'killed'], ['l2s1', 'failed']])
		await here.ask('PATCH', 'runs/' + runs.find((r) => r.name === name).id, { status });
	const page = await here.open(t, '?e=early&by=lr&g=val/acc&pv=p:lr&pv=p:wd&pv=m:best:val/acc');
	const cell = (name) => page.getAttribute(`[data-group="${name}"] .c-m`, 'title');
	await says(page, '[data-group="lr 1"]', /^▸lr 1mean of 3; 1 failed left out/);
	assert.match(await cell('lr 1'),
		/^Mean 0\.14666\d+, standard deviation 0\.0404\d+, of 3 runs; 1 failed left out$/);
	assert.match(await cell('lr 3'), /of 4 runs$/);
	assert.match(await page.getAttribute('[data-group="lr 3"] .first .dim', 'title'),
		/^± is the sample standard deviation/);
	const d = await charted(page, 'loss', (c) => c.lines.length === 3);
	assert.deepEqual([...d.names].sort(),
		['lr 1 (3; 1 failed left out)', 'lr 2 (2; 2 failed left out)', 'lr 3 (4)']);
	assert.ok(Math.abs(d.lines.find((l) => l.id === 'group:lr 1').bottom - 12) < 1e-9, 'seeds 1 to 3');
	await says(page, '.pivot tbody tr', /^10\.147 ± 0\.040 mean of 3; 1 failed left out/);
	assert.match(await page.getAttribute('.pivot td button', 'title'), /± is the sample standard deviation/);
	await page.setViewportSize({ width: 390, height: 844 });
	await says(page, '.cards', /lr 1.*4 runs, mean of 3; 1 failed left out/);
});

test('any two columns as points, the Pareto front, a rectangle; importance in words', async (t) => {
	for (let i = 0; i < 40; i++)
		await run('why', 'w' + i, { 'val/acc': [[1, (i % 8) / 8 + 0.001 * (i % 5)]], cost: [[1, i % 8]] },
			{ params: { lr: String((i % 8) + 1), seed: String(i % 5), noise: String((i * 7) % 11) } });
	const page = await here.open(t, '?e=why&sc=m:last:cost&sc=m:best:val/acc&sc=p:lr&front&imp');
	const chart = () => page.evaluate(() => document.querySelector('[data-scatter]')?.chart?.drawn() ?? null);
	const d = await until(chart, (c) => c?.points.length === 40);
	assert.equal(d.front, 8, 'a run of each cost is on the front');
	const box = await page.locator('[data-scatter]').boundingBox();
	const right = Math.max(...d.points.map((p) => p.px));
	await page.locator('[data-scatter]').scrollIntoViewIfNeeded();
	const at = await page.locator('[data-scatter]').boundingBox();
	await page.mouse.move(at.x + right - 20, at.y + 15);
	await page.mouse.down();
	await page.mouse.move(at.x + right + 12, at.y + box.height - 36);
	await page.mouse.up();
	await says(page, '.scatter .options', /5 runs/);
	await page.click('.scatter button:has-text("only these")');
	await charted(page, 'cost', (c) => c.lines.length === 5);
	const lines = await until(() => page.$$eval('.importance tbody tr', (l) => l.map((r) => r.textContent)),
		(l) => l.length === 3);
	assert.match(lines[0], /^lr\d+ %/);
	for (const name of ['seed', 'noise']) assert.match(lines.find((l) => l.startsWith(name)), /cannot tell/);
	await says(page, '.importance ul', /lr differs|noise differs/);
});

test('scatter and axes describe what they show, offer tables, and take ranges by keys', async (t) => {
	for (let i = 0; i < 12; i++)
		await run('said', 's' + i, { 'val/acc': [[1, i / 20]], cost: [[1, (i * 5) % 12]] },
			{ params: { lr: String(i + 1), noise: String((i * 7) % 11) } });
	const page = await here.open(t, '?e=said&sc=p:lr&sc=m:best:val/acc&par');
	await says(page, '.scatter .said', /^12 points\. Higher lr goes with higher acc: rank correlation 1 /);
	await says(page, '.scatter .said', /Best acc: 0\.55 at lr 12 \(s11\)\.$/);
	await says(page, '.parallel .said', /^12 lines\. Higher lr goes .* Cannot tell whether acc moves with noise\./);
	for (const of of ['scatter', 'parallel'])
		assert.match(await page.$eval(`[data-${of}]`, (e) =>
			document.getElementById(e.getAttribute('aria-describedby')).textContent), /^12 /);
	await page.click('.scatter button:text-is("Table")');
	await says(page, '.values caption', /^Scatter: 12 runs/);
	assert.deepEqual(await page.$$eval('.values tr', (l) => l.slice(0, 3).map((r) =>
		[...r.cells].map((c) => c.textContent))), [['Run', 'lr', 'acc'], ['s11', '12', '0.55'],
		['s10', '11', '0.5']]);
	await page.press('[role=dialog] [aria-label=Close]', 'Enter');
	await page.waitForSelector('.values', { state: 'detached' });
	assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Table');
	await page.click('.parallel button:text-is("Table")');
	await says(page, '.values caption', /^Params and goal: 12 runs/);
	assert.equal(await page.locator('.values tbody tr').count(), 12);
	await page.keyboard.press('Escape');
	await page.mouse.move(0, 0); // otherwise a row under the pointer is highlighted

	await page.focus('[data-scatter]');
	const press = async (...keys) => {
		for (const key of keys) await page.keyboard.press(key);
	};
	await press('ArrowRight', 'ArrowRight', ' ', 'ArrowRight', 'ArrowRight', ' ');
	await says(page, '.scatter .options', /3 runs/);
	await page.focus('[data-parallel]');
	await press('ArrowRight', 'ArrowUp', ' ', 'ArrowDown', 'ArrowDown', ' ');
	await says(page, '.parallel .options', /3 runs within/);
	await says(page, '.parallel [aria-live]', /^Axis lr.*; s\d+: lr \d+, noise \d+, acc 0\.\d+$/);
	await page.keyboard.press('Delete');
	await says(page, '.parallel .options', /Drag along an axis/);
});

test('a panel takes the focus and returns it; a closed filter stays closed', async (t) => {
	await run('keys', 'one', { loss: [[1, 1]] }, { params: { lr: '1' } });
	const { runs } = await here.ask('GET', 'runs?experiment=keys');
	await here.ask('PUT', `runs/${runs[0].id}/tags/team`, { value: 'a' });
	const page = await here.open(t, '?e=keys&r=' + runs[0].id);
	const focused = (what) => until(() => page.evaluate(() => document.activeElement.getAttribute('aria-label')
		?? document.activeElement.textContent), (s) => s === what, what);
	await page.focus('button[aria-label="Change team"]');
	await page.keyboard.press('Enter');
	await focused('Value');
	await page.keyboard.press('Escape');
	await focused('Change team');
	await page.goto(here.server.url + '?e=keys');
	await drawn(page);
	await page.focus('.head button:text-is("Columns")');
	await page.keyboard.press('/');
	await page.keyboard.type('nothing like that');
	await page.keyboard.press('Escape');
	await focused('Columns');
	await page.waitForTimeout(600); // longer than the filter waits for the next letter
	assert.ok(!/[?&]q=/.test(page.url()), page.url());
	await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
	await page.click('.others > .pop > button');
	await page.click('.others button:text-is("Copy table")');
	await page.click('[role=dialog] button:text-is("Markdown")');
	await focused('The table as text');
	assert.match(await page.evaluate(() => getSelection().toString()), /^\|/);
	await page.keyboard.press('Escape');
	await focused('More');
});

test('arrows, Home and End move among the items of a menu, and Escape returns to its button', async (t) => {
	for (const name of ['a', 'b']) await run('menus', name, { loss: [[1, 1]] });
	const page = await here.open(t, '?e=menus');
	await page.setViewportSize({ width: 1280, height: 300 }); // a page that scrolls
	await drawn(page);
	for (const name of ['a', 'b']) await page.click(`[aria-label="Select ${name}"]`);
	const button = page.locator('.bulk button[aria-label="More actions"]');
	await button.focus();
	await page.keyboard.press('Enter');
	const words = await page.$$eval('.bulk .menu .item', (l) => l.map((e) => e.textContent));
	const at = () => page.evaluate(() => document.activeElement.textContent);
	const [first, second, last] = [words[0], words[1], words.at(-1)];
	await until(at, (word) => word === first);
	const scrolled = () => page.evaluate(() =>
		[scrollY, ...[...document.querySelectorAll('*')].map((e) => e.scrollTop)].join());
	const before = await scrolled();
	for (const [key, word] of [['ArrowDown', second], ['ArrowUp', first], ['ArrowUp', last], ['ArrowDown', first],
		['End', last], ['Home', first]]) {
		await page.keyboard.press(key);
		assert.equal(await at(), word, key);
	}
	assert.equal(await scrolled(), before);
	await page.keyboard.press('Escape');
	await until(() => button.evaluate((e) => e === document.activeElement), Boolean);
});

test('panels: several metrics or a pattern in one chart, one metric over another, as CSV', async (t) => {
	for (const name of ['a', 'b'])
		await run('panels', name, { 'train/loss': steps(50, (i) => 1 / (i + 1)), 'val/loss': steps(50,
			(i) => 2 / (i + 1)),
			lr: steps(50, (i) => i / 10) }, { params: { name } });
	const page = await here.open(t, '?e=panels');
	await page.click('button:text-is("Add panel")');
	await page.fill('.panel .pattern', 'LOSS$');
	await page.keyboard.press('Enter');
	const d = await charted(page, 'panel /LOSS$/', (c) => c.lines.length === 4);
	assert.deepEqual([...d.names].sort(), ['a', 'b'], 'each run once');
	assert.ok(d.hi >= 2 && d.lines.some((l) => l.top === 2));
	await page.waitForURL(/pn=[^&]*LOSS/);
	await page.reload();
	await charted(page, 'panel /LOSS$/', (c) => c.lines.length === 4);
	await page.goto(here.server.url + '?e=panels&pn=train/loss~lr');
	const over = await charted(page, 'panel train/loss over lr', (c) => c.lines.length === 2 && c.to > 4);
	assert.ok(over.from === 0 && Math.abs(over.to - 4.9) < 1e-3, JSON.stringify(over));
	await page.hover('.panel');
	await page.click('.panel [aria-label^="More of"]');
	await page.click('[role=dialog] button:text-is("Make a figure")');
	await page.waitForSelector('dialog.figurebox svg');
	const [download] = await Promise.all([page.waitForEvent('download'),
		page.click('dialog.figurebox [aria-label="Save as CSV"]')]);
	const rows = (await readFile(await download.path(), 'utf8')).trim().split('\r\n');
	assert.equal(rows[0], 'line,lr,train/loss over lr');
	assert.equal(rows.length, 101);
	await page.click('dialog.figurebox [aria-label="Close"]');
	await page.click('.panel button[aria-label="Remove the panel"]');
	await until(() => page.locator('.panel').count(), (n) => n === 0);
});

test('experiments are shown as a tree and found by words', async (t) => {
	for (const name of ['tree/a', 'tree/b', 'tree/sub/c', 'lone', 'other/x', 'other/y'])
		await run(name, 'r', { loss: steps(2, (i) => i) });
	const page = await here.open(t, '?all');
	const folder = page.locator('tr:has(button[aria-label^="tree:"])');
	await until(() => folder.textContent(), (x) => /tree\/ 3 experiments3/.test(x));
	const names = () => page.$$eval('main.experiments td:first-child a', (l) => l.map((e) => e.textContent).sort());
	assert.ok((await names()).includes('sub/c') && (await names()).includes('lone'));
	await page.click('button[aria-label="tree: 3 experiments"]');
	await until(names, (l) => !l.includes('a') && l.includes('lone'));
	await page.fill('input[aria-label="Find experiments"]', 'tree/b');
	await until(names, (l) => l.join() === 'tree/b');
	await page.click('main.experiments td a');
	await page.waitForURL(/e=tree\/b/);
});

/** Presses a button that saves a file; resolves to the file's name and text. */
async function saved(page, selector) {
	const [download] = await Promise.all([page.waitForEvent('download'), page.click(selector)]);
	return { name: download.suggestedFilename(), text: await readFile(await download.path(), 'utf8') };
}

test('a saved view opens alike for others; it can be the experiment\'s default; its deletion is undone', async (t) => {
	for (let i = 0; i < 4; i++)
		await run('views', 'v' + i, { 'train/loss': steps(20, (k) => 1 + i / (k + 1)), 'b/y': [[1, i]] },
			{ params: { lr: String(i / 10), seed: String(i) } });
	const first = await here.open(t, '?e=views&log&sm=0.5&s=-p:lr&q=params.lr+>+0&pn=train/loss,b/y&z=2~9');
	await charted(first, 'train/loss', (d) => d.lines.length === 3 && d.from === 2);
	await first.click('.head button:text-is("Views")');
	await first.fill('[aria-label="Name of the view"]', 'high rates');
	await first.click('.picker button:text-is("Save")');
	const link = await first.waitForSelector('.savedline a:text-is("high rates")', WAIT);
	const address = await link.getAttribute('href');
	assert.match(address, /^\?v=\d+$/);
	await first.waitForURL(/v=\d+$/);
	const seen = (page) => page.evaluate(() => [...document.querySelectorAll('[data-chart]')]
		.map((c) => [c.dataset.chart, c.chart?.drawn()]).filter(([, d]) => d)
		.map(([k, d]) => JSON.stringify([k, d.from, d.to, d.lines.map((l) => [l.id, l.points, l.colour])])));
	const second = await here.open(t, address);
	await charted(second, 'train/loss', (d) => d.lines.length === 3 && d.from === 2);
	await until(() => seen(second), (s) => s.length === 2); // b/y has no point in the zoom
	assert.deepEqual(await seen(second), await seen(first));
	assert.equal(await second.textContent('.grid .body .row[aria-rowindex="2"] a'), 'v3');
	assert.equal(await second.evaluate(() => location.search), await first.evaluate(() => location.search));

	await first.click('[aria-label="Show as default: high rates"]');
	await first.waitForSelector('[aria-label="Show as default: high rates"][aria-pressed="true"]', WAIT);
	const third = await here.open(t, '?e=views');
	await charted(third, 'train/loss', (d) => d.lines.length === 3 && d.from === 2);
	await says(third, '.viewshown', /^default view high rates Without a view$/);
	await third.click('button:has-text("Log y")');
	await says(third, '.viewshown', /changed/);
	await third.click('.viewshown button:text-is("Reset")');
	await says(third, '.viewshown', /^default view high rates Without a view$/);
	await third.click('.viewshown a:text-is("Without a view")');
	await third.waitForSelector('.viewshown', { ...WAIT, state: 'detached' });
	await third.goBack();
	await says(third, '.viewshown', /high rates/);
	await third.click('.head button:text-is("Views")');
	await third.click('.picker a:text-is("Without a view")');
	await charted(third, 'train/loss', (d) => d.lines.length === 4 && d.from === 1);
	await third.reload();
	await charted(third, 'train/loss', (d) => d.lines.length === 4 && d.from === 1);

	await first.click('[aria-label="Delete high rates"]');
	await first.waitForSelector('.savedline', { ...WAIT, state: 'detached' });
	await first.click('.picker [role=status] button:text-is("Undo")');
	await first.waitForSelector('[aria-label="Show as default: high rates"][aria-pressed="true"]', WAIT);
	const lost = await here.open(t, '?v=999');
	await says(lost, '.banner', /no view 999/);
});

test('y limits are kept in the address; a chart is saved as an equal SVG', async (t) => {
	await run('axis', 'a', { 'train/loss': [[1, 9], [2, 1], [3, 'NaN'], [4, 0.5]] });
	await run('axis', 'b <1>', { 'train/loss': steps(4, (i) => i) });
	const page = await here.open(t, '?e=axis');
	await charted(page, 'train/loss', (d) => d.lines.length === 2);
	const card = 'figure:has([data-chart="train/loss"])';
	await page.hover(card);
	await page.click(`${card} .limits button`);
	await page.fill('[aria-label="Y axis: To"]', '2');
	await page.press('[aria-label="Y axis: To"]', 'Enter');
	const d = await charted(page, 'train/loss', (c) => c.hi === 2);
	assert.ok(d.marks.some((m) => /outside|above/.test(m.kind) || m.y === 9), JSON.stringify(d.marks));
	await page.waitForURL(/y=~2~train\/loss/);
	await page.reload();
	await charted(page, 'train/loss', (c) => c.hi === 2);
	await page.hover(card);
	await page.click('[aria-label="More of train/loss"]');
	const { name, text } = await saved(page, `${card} button:text-is("Save as SVG")`);
	assert.match(name, /^train-loss\.svg$/);
	const drawn = await page.evaluate((svg) => {
		const doc = new DOMParser().parseFromString(svg, 'image/svg+xml');
		return { wrong: doc.querySelector('parsererror')?.textContent ?? '',
			words: [...doc.querySelectorAll('text')].map((w) => w.textContent),
			strokes: [...doc.querySelectorAll('path[stroke]')].map((l) => l.getAttribute('stroke')) };
	}, text);
	assert.equal(drawn.wrong, '');
	assert.ok(drawn.words.includes('axis: train/loss'), drawn.words.join());
	assert.ok(drawn.words.some((w) => w.includes('b <1>')), drawn.words.join());
	for (const l of d.lines) assert.ok(drawn.strokes.includes(l.colour), `${l.colour} of ${drawn.strokes}`);
});

test('the table as Markdown and LaTeX, as displayed', async (t) => {
	for (const [i, v] of [0.5, 0.75].entries())
		await run('texts', 'r_' + i, { acc: [[1, v]] }, { params: { lr: String(i + 1), seed: '1' } });
	const page = await here.open(t, '?e=texts&c=p:lr&c=m:best:acc');
	await says(page, '.grid .body', /0\.75/);
	await page.click('.others > .pop > button');
	await page.click('.others button:text-is("Copy table")');
	const text = async (form) => {
		await page.click(`.picker button:text-is("${form}")`);
		return until(() => page.inputValue('[aria-label="The table as text"]').catch(() => ''), (s) =>
			s.startsWith(form === 'LaTeX' ? '\\begin' : '|'));
	};
	assert.equal(await text('Markdown'), '| Run | lr | acc best |\n| :--- | ---: | ---: |\n'
		+ '| r\\_1 | 2 | **0.750** |\n| r\\_0 | 1 | 0.500 |\n');
	assert.match(await text('LaTeX'), /r\\_1 & 2 & \\textbf\{0\.750\}/);
});

test('a formula in a panel: two metrics and a param, a spike is drawn; an error is explained', async (t) => {
	for (const i of [0, 1])
		await run('formulas', 'f' + i, { 'train/loss': steps(3000, (k) => (k === 1234 ? 50 : 2)),
			'val/loss': steps(300, () => 1.5, 1).map(([n, v]) => [n * 5, v]) },
		{ params: { lr: String(i + 1) } });
	const words = '= (train/loss - val/loss) * params.lr';
	const page = await here.open(t, '?e=formulas&pn=' + encodeURIComponent(words));
	const d = await charted(page, 'panel ' + words,
		(c) => c.lines.length === 2 && c.lines.every((l) => l.points > 100));
	assert.deepEqual(d.lines.map((l) => [l.top, l.topX, l.bottom]).sort((a, b) => a[0] - b[0]),
		[[48.5, 1235, 0.5], [97, 1235, 1]]);
	await page.fill('.panel .pattern', '= train/loss +');
	await page.press('.panel .pattern', 'Enter');
	await says(page, '.panel .nothing', /the formula is incomplete: expected a name or a number at character/);
	await page.reload();
	await says(page, '.panel .nothing', /the formula is incomplete: expected a name or a number at character/);
});
