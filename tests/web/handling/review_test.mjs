// SPDX-License-Identifier: Apache-2.0
// Defects that a new user met: notes, failures, order of metrics, system series by rank, long names, formulas, the
// number of charted runs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { charted, clean, drawn, loaded, says, until } from '../browser.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage();

async function run(experiment, name, series = {}, { params = {}, status = 'finished' } = {}) {
	const { id } = await here.ask('POST', 'runs', { experiment, name, params });
	const points = Object.entries(series).flatMap(([key, list]) => list.map(([step, value]) =>
		({ key, step, value, wall_time: 1.8e9 + step })));
	if (points.length) await here.ask('POST', `runs/${id}/metrics`, { points });
	await here.ask('PATCH', 'runs/' + id, { status });
	return id;
}

test('a note has the focus when it is begun, and is saved when the page is left', async (t) => {
	const [a] = [await run('notes', 'a', { loss: [[1, 1]] }), await run('notes', 'b', { loss: [[1, 2]] })];
	const page = await here.open(t, '?e=notes&r=' + a);
	await page.click('.notes button:text-is("Add")', WAIT);
	await until(() => page.evaluate(() => document.activeElement.tagName), (n) => n === 'TEXTAREA');
	await page.keyboard.type('no nan now');
	assert.equal(await page.inputValue('.notes textarea'), 'no nan now');
	assert.match(await page.textContent('h1'), /^a/, 'n wrote a letter and did not open the next run');
	await page.keyboard.press('Escape');
	await page.evaluate(() => document.activeElement.blur());
	await page.keyboard.press('n');
	await says(page, 'h1', /^b/);
	await page.goto(here.server.url + '?e=notes&r=' + a);
	await says(page, '.notes', /no nan now/);
});

test('the table marks runs with a note, and on a phone the note follows the first charts', async (t) => {
	const [a] = [await run('marked', 'a', { loss: [[1, 1]] }), await run('marked', 'b', { loss: [[1, 2]] })];
	await here.ask('PATCH', 'runs/' + a, { notes: 'the better schedule' });
	const page = await here.open(t, '?e=marked');
	await until(() => page.$$eval('.grid .body .row', (l) => l.map((r) => r.querySelector('a').textContent
		+ ':' + (r.querySelector('.mark.dim')?.title ?? ''))),
		(l) => l.sort().join() === 'a:the better schedule,b:');
	await page.click('.grid .mark.dim');
	await says(page, '.notes', /the better schedule/);
	await page.setViewportSize({ width: 390, height: 844 });
	const tops = () => page.$$eval('.overview :is(.chartpart, .notes, .metrics)', (l) => l
		.sort((x, y) => x.getBoundingClientRect().top - y.getBoundingClientRect().top).map((e) => e.classList[0]
			+ (e.classList[1] ?? '')));
	await until(tops, (l) => l.join() === 'chartpart,boxnotes,boxmetrics');
});

test('a note is saved while one types; what the server refused is kept as a draft', async (t) => {
	const a = await run('kept', 'a', { loss: [[1, 1]] });
	const page = await here.open(t, '?e=kept&r=' + a);
	const stored = async () => (await here.ask('GET', 'runs/' + a)).notes;
	await page.click('.notes button:text-is("Add")', WAIT);
	await page.keyboard.type('first');
	await says(page, '.notes [role=status]', /^Saved$/);
	assert.equal(await stored(), 'first');
	await page.keyboard.type(', which takes a while to type', { delay: 150 });
	assert.match(await stored(), /^first, which/, 'saved before the typing paused');
	await page.keyboard.type('.');
	await says(page, '.notes [role=status]', /^Saved$/);
	const refusal = { status: 400, json: { error: { code: 'full', message: 'the disk is full' } } };
	await page.route('**/api/v1/runs/' + a, (r) => r.request().method() === 'PATCH' ? r.fulfill(refusal)
		: r.continue());
	await page.keyboard.type(' second');
	await says(page, '.notes [role=alert]', /the disk is full/);
	await page.reload();
	await page.unroute('**/api/v1/runs/' + a);
	await page.click('.notes button:text-is("Continue draft")', WAIT);
	const whole = 'first, which takes a while to type. second';
	assert.equal(await page.inputValue('.notes textarea'), whole);
	await says(page, '.notes [role=status]', /^Saved$/);
	assert.equal(await stored(), whole, 'a continued draft is saved');
	await page.click('.notes button:text-is("Done")');
	await page.waitForSelector('.notes textarea', { state: 'detached' });
	await page.keyboard.press('e');
	await page.keyboard.type(' third');
	await page.click('.notes button:text-is("Undo changes")');
	await until(stored, (text) => text === whole);
});

test('a failed run says first that it failed and at which step, once', async (t) => {
	const id = await run('fails', 'a', { 'train/loss': [[316, 1], [317, 2]] }, { status: 'failed' });
	const page = await here.open(t, '?e=fails&r=' + id);
	await says(page, '.failure h2', /failed/);
	const text = await page.evaluate(() => document.querySelector('.runhead').textContent
		+ document.querySelector('.failure h2').textContent);
	assert.equal(new Set(text.match(/step \d+/g)).size, 1, text);
	assert.ok(await page.$eval('.failure', (e) => e.getBoundingClientRect().bottom < innerHeight));
});

test('a run\'s metrics begin with the goal and the loss; those of layers are folded', async (t) => {
	const points = [[1, 0.5], [2, 0.6]];
	const dead = Object.fromEntries(Array.from({ length: 14 }, (_, i) => ['dead_units/l' + i, points]));
	const id = await run('layers', 'a', { ...dead, 'train/loss': points, 'val/top1': points, 'aaa/first': points });
	const page = await here.open(t, '?e=layers&r=' + id);
	await page.waitForSelector('.metrics tbody tr', WAIT);
	const keys = await page.$$eval('.metrics tbody tr', (l) => l.map((r) => r.cells[0].textContent));
	assert.deepEqual(keys.slice(0, 2), ['val/top1', 'train/loss']);
	assert.ok(!keys.some((k) => k.startsWith('dead_units/')), keys.join());
	assert.ok(await page.$eval('[data-chart]', (e) => e.getBoundingClientRect().top < innerHeight),
		'a chart is seen');
});

/** Logs series of some ranks over REST: the values of each key by rank. */
async function ranked(name, ranks, keys) {
	const { id } = await here.ask('POST', 'runs', { experiment: 'system', name });
	const points = keys.flatMap((key, k) => Array.from({ length: 20 * ranks }, (_, i) => ({ key,
		rank: Math.floor(i / 20), step: i % 20, value: (1.6 + k) * 2 ** 30 + (i % 20) * 1e6,
		wall_time: 1.8e9 + i })));
	await here.ask('POST', `runs/${id}/metrics`, { points });
	await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	return id;
}

const MEMORY = ['memory/peak_bytes', 'memory/rss_bytes'];

test('system series of one rank are charted at once, with round byte ticks', async (t) => {
	const id = await ranked('one', 1, MEMORY);
	const { ranks } = await here.ask('GET', 'runs/' + id);
	assert.deepEqual(ranks, [{ rank: 0, host: '', pid: 0, segment: 0, last_record_time: null }]);
	const page = await here.open(t, `?e=system&r=${id}&t=system`);
	for (const key of MEMORY) {
		const d = await charted(page, key, (c) => c.lines.length === 1);
		assert.ok(d.ticksY.length > 1, d.ticksY.join());
		for (const text of d.ticksY) assert.match(text, /^\d\.\d+ GiB$/);
		assert.equal(new Set(d.ticksY).size, d.ticksY.length, d.ticksY.join());
	}
	const text = await page.innerText('main');
	assert.doesNotMatch(text, /by rank|more of|No system metrics/i);
});

test('system series of two ranks are compared by rank; the button for more says how many', async (t) => {
	const keys = Array.from({ length: 14 }, (_, i) => `memory/part${i + 10}_bytes`);
	const page = await here.open(t, `?e=system&r=${await ranked('two', 2, keys)}&t=system`);
	await charted(page, keys[0], (c) => c.lines.length === 2);
	await says(page, '.runfacts', /2 ranks/);
	const more = 'section[aria-label="By rank"] > button';
	await says(page, more, /^Show 2 more$/);
	await page.click(more);
	await page.locator(`[data-rank-chart="${keys[13]}"]`).scrollIntoViewIfNeeded();
	await charted(page, keys[13], (c) => c.lines.length === 2);
	assert.equal(await page.locator(more).count(), 0);
});

test('hovering a row leaves its name whole, and one long name does not widen the column', async (t) => {
	const ids = [await run('names', 'base', { loss: [[1, 1]] }, { params: { lr: '1' } }),
		await run('names', 'x'.repeat(90), { loss: [[1, 2]] }, { params: { lr: '2' } })];
	const page = await here.open(t, '?e=names');
	await page.setViewportSize({ width: 1440, height: 900 });
	await drawn(page);
	const width = () => page.$eval(`[data-run="${ids[0]}"] a`, (e) => [e.scrollWidth, e.offsetWidth,
		e.textContent]);
	const before = await width();
	await page.hover(`[data-run="${ids[0]}"]`);
	assert.deepEqual(await width(), before);
	assert.ok(before[0] <= before[1], 'base is not cut');
	assert.ok(await page.$eval('[data-cell="-1:0"]', (e) => e.offsetWidth) <= 420);
});

test('an invalid formula adds no column, by Enter or by the button', async (t) => {
	await run('formula', 'a', { loss: [[1, 1]] }, { params: { lr: '1' } });
	await run('formula', 'b', { loss: [[1, 2]] }, { params: { lr: '2' } });
	const page = await here.open(t, '?e=formula');
	await drawn(page);
	const heads = () => page.locator('.grid .head .cell').count();
	const before = await heads();
	await page.click('.head button:text-is("Columns")');
	for (const [text, why] of [['= params.lr *', /./], ['= params.frog * 2', /^No run has frog\.$/]]) {
		await page.fill('.picker input[type=search]', text);
		await says(page, '.picker .problem', why);
		await page.keyboard.press('Enter');
		assert.equal(await heads(), before, text);
	}
	await page.fill('.picker input[type=search]', '= params.lr * 2');
	await page.keyboard.press('Enter');
	await until(heads, (n) => n === before + 1);
});

/** Five runs with a goal, one of which failed, one diverged and one has a spike. */
async function pitfalls(experiment) {
	const curve = (n, at = () => 0) => Array.from({ length: n }, (_, i) => [i, 2 - i / 500 + at(i)]);
	const top = (n, v) => Array.from({ length: n }, (_, i) => [i * 60, v + i / 100]);
	const made = (name, n, goal, o = {}) => run(experiment, name, { 'train/loss': curve(n, o.at), 'val/top1':
		top(Math.ceil(n / 60), goal) }, { params: { lr: String(goal), wd: String(goal / 3) }, ...o });
	const ids = { best: await made('best', 300, 0.8), second: await made('second', 300, 0.7),
		spiky: await made('spiky', 300, 0.6, { at: (i) => (i === 150 ? 90 : 0) }),
		failed: await made('lost', 200, 0.75, { status: 'failed' }),
		nan: await made('gone', 300, 0.5, { at: (i) => (i > 250 ? 1e6 : 0) }) };
	return ids;
}

test('a row shows by signs after the name what is wrong; they lead to charts and reasons', async (t) => {
	const ids = await pitfalls('signs');
	const page = await here.open(t, '?e=signs');
	await drawn(page);
	const signs = (id) => page.$$eval(`[data-run="${id}"] .first .mark`, (l) => l.map((e) => e.title));
	await until(() => signs(ids.failed), (l) => /failed after step 199/.test(l[0]));
	await until(() => signs(ids.spiky), (l) => /spike/.test(l[0]));
	assert.deepEqual([await signs(ids.best), await signs(ids.second)], [[], []]);
	await page.click(`[data-run="${ids.spiky}"] .first .mark`);
	await charted(page, 'train/loss', (c) => c.from > 100 && c.to < 200);
	for (const link of ['.first .mark', '.c-status button.failed']) {
		await page.click(`[data-run="${ids.failed}"] ${link}`);
		await says(page, '.failure h2', /failed after step 199/);
		await page.goBack();
		await drawn(page);
	}
});

test('a failure is flagged at its step in every chart, in the words of the table', async (t) => {
	const ids = await pitfalls('flagged');
	const page = await here.open(t, '?e=flagged');
	for (const key of ['train/loss', 'val/top1']) {
		const { marks } = await charted(page, key, (c) => c.marks.some((m) => m.kind === 'flag-failed'));
		const { x, text } = marks.find((m) => m.kind === 'flag-failed');
		assert.deepEqual([x, text], [199, 'failed after step 199'], key);
	}
	const alone = await here.open(t, `?e=flagged&r=${ids.failed}`);
	await charted(alone, 'val/top1', (c) => c.marks.some((m) => m.kind === 'flag-failed' && m.x === 199));
});

test('the words of a flag read its step, and lead to the reason of a failure', async (t) => {
	await pitfalls('words');
	const page = await here.open(t, '?e=words');
	const { marks, box } = await charted(page, 'train/loss', (c) => ['flag-failed', 'flag-spike'].every((kind) =>
		c.marks.some((m) => m.kind === kind)));
	const plot = await page.locator('[data-chart="train/loss"]').boundingBox();
	const at = (kind) => page.evaluate(([m, b]) => {
		const { from, to } = document.querySelector('[data-chart="train/loss"]').chart.drawn();
		return b.left + ((m.x - from) / (to - from)) * b.width;
	}, [marks.find((m) => m.kind === kind), box]);
	const seen = () => page.evaluate(() =>
		document.querySelector('[data-chart="train/loss"] .readings:not([hidden]) .where')?.textContent);
	for (const [kind, words] of [['flag-spike', 'step 150'], ['flag-failed', 'step 199']]) {
		const x = plot.x + await at(kind) + 30;
		let y = plot.y + box.top - 8; // in one of the rows
		for (; y > plot.y; y -= 14) {
			await page.mouse.move(x, y);
			if (await seen() === words) break;
		}
		assert.equal(await seen(), words);
		await page.mouse.click(x, y);
	}
	await says(page, '.failure h2', /failed after step 199/);
});

test('several failed runs: their count lists them alone', async (t) => {
	const lost = await Promise.all(['x', 'y'].map((name) =>
		run('counts', name, { loss: [[1, 1]] }, { status: 'failed' })));
	await run('counts', 'z', { loss: [[1, 1]] });
	const page = await here.open(t, '?e=counts');
	await page.click('.facts button.failed', WAIT);
	await until(() => page.$$eval('.grid .body .row', (l) => l.map((r) => r.dataset.run).sort().join()),
		(ids) => ids === [...lost].sort().join());
	await page.click('.facts button:text-is("List all runs")');
	await until(() => page.locator('.grid .body .row').count(), (n) => n === 3);
});

test('a run\'s page names its charts in full, its place, its status and the time of its points', async (t) => {
	const ids = await pitfalls('page');
	const page = await here.open(t, '?e=page&r=' + ids.second);
	await page.setViewportSize({ width: 1280, height: 800 });
	await page.waitForSelector('[data-chart="val/top1"]', WAIT);
	const names = await page.$$eval('.overview .chart figcaption b', (l) =>
		l.map((e) => [e.textContent, e.scrollWidth <= e.clientWidth, e.getBoundingClientRect().width > 40]));
	assert.deepEqual(names, [['train/loss', true, true], ['val/top1', true, true]]);
	await says(page, '.runfacts', /val\/top1 0\.74, 2nd of \d runs \(\d failed or diverged\)/);
	await says(page, '.runfacts', / · 5 min · /);
	await says(page, 'h1 .says', /^finished/);
});

test('table and charts scroll together: the parallel plot is seen in full', async (t) => {
	await pitfalls('whole');
	const page = await here.open(t, '?e=whole&par');
	await page.setViewportSize({ width: 1280, height: 800 });
	await page.waitForSelector('.parallel .plot', WAIT);
	await page.$eval('.parallel .plot', (e) => e.scrollIntoView({ block: 'center' }));
	const box = (selector) => page.$eval(selector, (e) => e.getBoundingClientRect().toJSON());
	const [{ top, bottom }, { bottom: tools }] = [await box('.parallel .plot'), await box('.toolbar')];
	assert.ok(top >= tools && bottom <= 800, `${top} to ${bottom} below ${tools}`);
	await says(page, '.parallel .options', /grey: \d runs? failed or diverged/);
});

test('on a phone runs are selected by boxes on their cards, and the bar acts on them', async (t) => {
	const ids = [];
	for (const name of ['one', 'two', 'three']) ids.push(await run('phone', name, { loss: [[1, 1], [2, 0.5]] }));
	const page = await here.open(t, '?e=phone');
	await page.setViewportSize({ width: 390, height: 844 });
	await page.waitForSelector('.cards .pick', WAIT);
	for (const name of ['one', 'three']) await page.click(`.cards [aria-label="Select ${name}"]`);
	await says(page, '.bulk', /2 selected/);
	await clean(page);
	await page.click('.bulk [aria-label="More actions"]');
	await page.click('.bulk button:text-is("Delete")');
	await page.click('[role=dialog] button:has-text("Delete 2 runs")');
	await until(() => page.locator('.cards .pick').count(), (n) => n === 1);
});

test('on a phone panels open next to their buttons, and the editor of a note above the bottom bar', async (t) => {
	const metrics = Object.fromEntries(Array.from({ length: 12 }, (_, i) => ['m' + i, [[1, 1], [2, 0.5]]]));
	const id = await run('near', 'one', { loss: [[1, 1], [2, 0.5]], ...metrics });
	await run('near', 'two', { loss: [[1, 1], [2, 0.5]] });
	const page = await here.open(t, '?e=near');
	await page.setViewportSize({ width: 390, height: 844 });
	await drawn(page);
	/** Pixels between a panel and its button; the panel is in the window, above the bottom bar. */
	const gap = async (q) => (await page.waitForSelector(q, WAIT)).evaluate((panel) => {
		const [p, b] = [panel, panel.parentElement].map((e) => e.getBoundingClientRect());
		if (p.top < 0 || p.bottom > innerHeight - 56) return `cut: ${p.top} to ${p.bottom}`;
		return Math.max(p.top - b.bottom, b.top - p.bottom);
	});
	for (const name of ['one', 'two']) await page.click(`.cards [aria-label="Select ${name}"]`);
	await page.click('.bulk [aria-label="More actions"]');
	await until(() => gap('.bulk .picker'), (px) => px >= 0 && px < 12);
	await page.click('.bulk button:text-is("Delete")');
	await until(() => gap('.bulk .picker'), (px) => px < 30);
	await page.click('.bulk .picker button:text-is("Cancel")');
	await page.click('.bulk button:text-is("Clear")');
	await page.click('figure:has([data-chart="loss"]) button:text-is("Add to report")');
	await until(() => gap('figure:has([data-chart="loss"]) .picker'), (px) => px >= 0 && px < 12);
	await page.goto(here.server.url + '?e=near&r=' + id);
	await page.click('.notes button:text-is("Add")', WAIT);
	const save = await page.waitForSelector('.notes .options .primary', WAIT);
	await until(() => save.evaluate((e) => e.getBoundingClientRect().bottom), (px) => px <= 844 - 56);
});

for (const [width, second] of [[1440, '.grid .row[aria-rowindex="3"]'], [800, '.grid .row[aria-rowindex="3"]'],
	[390, '.card.run:nth-child(2)']])
	test(`the bar of the selected runs moves nothing (${width} px)`, async (t) => {
		const experiment = 'still' + width;
		for (const name of ['one', 'two', 'three']) await run(experiment, name, { loss: [[1, 1], [2, 0.5]] });
		const page = await here.open(t, '?e=' + experiment);
		await page.setViewportSize({ width, height: 844 });
		await page.waitForSelector(second, WAIT);
		await drawn(page);
		await page.evaluate((q) => {
			globalThis.tops = new Set();
			const look = () => {
				globalThis.tops.add(document.querySelector(q).getBoundingClientRect().top);
				requestAnimationFrame(look);
			};
			look();
		}, second);
		await page.locator(second).locator('.pick').click();
		await says(page, '.bulk', /1 selected/);
		await page.click('.bulk button:text-is("Clear")');
		await page.waitForSelector('.bulk', { state: 'detached' });
		assert.equal(await page.evaluate(() => globalThis.tops.size), 1);
	});

test('Space selects a run, v takes it out of the charts; a box that was clicked keeps Space', async (t) => {
	for (const name of ['one', 'two', 'three']) await run('space', name, { loss: [[1, 1], [2, 0.5]] });
	const page = await here.open(t, '?e=space');
	await drawn(page);
	const row = (n) => page.locator(`.grid .row[aria-rowindex="${n}"]`);
	const state = () => page.$$eval('.grid .body .row', (l) => l.map((r) => r.ariaRowIndex
		+ (r.querySelector('.pick').checked ? 'x' : '')
		+ (r.dataset.shown === 'true' ? 'v' : '')).sort().join());
	const becomes = (want) => until(state, (s) => s === want, want);
	await row(2).locator('[role=rowheader]').focus();
	await page.keyboard.press('Space');
	await becomes('2xv,3v,4v');
	await page.keyboard.press('v');
	await becomes('2x,3v,4v');
	await row(3).locator('.pick').click();
	await becomes('2x,3xv,4v');
	await page.keyboard.press('Space');
	await becomes('2x,3v,4v');
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Shift+Space');
	await becomes('2x,3xv,4xv');
	await page.keyboard.press('?');
	await says(page, '.keys', /Space x\s*Select.*v\s*Show or hide in the charts/s);
});

test('the items of a menu fit into it', async (t) => {
	await run('menu', 'a', { loss: [[1, 1], [2, 0.5]] });
	const page = await here.open(t, '?e=menu');
	for (const width of [1440, 390]) {
		await page.setViewportSize({ width, height: 844 });
		await page.goto(here.server.url + '?e=menu');
		await page.click('[aria-label="Select a"]', WAIT);
		await page.click('.bulk button[aria-label="More actions"]', WAIT);
		await page.waitForSelector('.picker .item', WAIT);
		const out = await page.$eval('.picker', (e) => [...e.querySelectorAll('.item')].map((i) =>
			e.getBoundingClientRect().right - i.getBoundingClientRect().right));
		assert.ok(out.length > 2 && out.every((px) => px >= 0), `${width}: ${out}`);
	}
});

test('the sidebar counts all runs of an archived experiment, whatever the filter', async (t) => {
	for (const name of ['a', 'b']) await run('put away', name, { loss: [[1, 1]] });
	const { experiments } = await here.ask('GET', 'experiments');
	await here.ask('PATCH', 'experiments/' + experiments.find((e) => e.name === 'put away').id, { archived: true });
	const page = await here.open(t, '?e=put+away&q=name+%3D+%27a%27');
	await says(page, '.grid .body', /^a/);
	await says(page, '.exps a.here', /^put away2$/);
});

test('"Show 100" goes once 100 runs are charted', async (t) => {
	for (let i = 0; i < 110; i++)
		await here.ask('POST', 'runs', { experiment: 'many', name: 'r' + i, params: { i: `${i}` } });
	const page = await here.open(t, '?e=many');
	await page.click('.facts button:text-is("Show 100")', WAIT);
	await says(page, '.facts', /100 in the charts/);
	assert.equal(await page.locator('.facts button:has-text("Show 100")').count(), 0);
});

test('the list of experiments says what its best value is of', async (t) => {
	await run('best', 'a', { 'val/top1': [[1, 0.5], [2, 0.75]] });
	const page = await here.open(t, '?all');
	await loaded(page, 'main.experiments table');
	await until(() => page.$$eval('main.experiments tr', (l) => l.find((r) => /^best/.test(r.textContent.trim()))
		?.cells[4].textContent ?? ''), (s) => /val\/top1\s*0\.75/.test(s));
});

test('on a phone the button of a panel stays in place when its choice shortens the page', async (t) => {
	for (let i = 0; i < 10; i++) await run('jump', 'r' + i, { loss: [[1, i + 1], [2, i + 0.5]] },
		{ params: { model: i < 5 ? 'cnn' : 'mlp', seed: String(i) } });
	const page = await here.open(t, '?e=jump');
	await page.setViewportSize({ width: 390, height: 844 });
	await drawn(page);
	const button = page.locator('.grouping button:text-is("Group by")');
	await button.evaluate((e) => scrollBy(0, e.getBoundingClientRect().top - 500));
	await button.click();
	const top = () => page.$eval('.grouping .pop', (e) => Math.round(e.getBoundingClientRect().top));
	const was = await top();
	await page.click('.grouping .picker label:has-text("model")');
	await until(() => page.locator('.card.run').count(), (n) => n < 10);
	const now = await until(top, (px) => px > 0);
	assert.ok(now <= was + 1, `${was} to ${now}`);
	await until(() => page.$eval('.grouping .picker', (e) => {
		const [p, b] = [e, e.parentElement].map((x) => x.getBoundingClientRect());
		return Math.max(p.top - b.bottom, b.top - p.bottom);
	}), (px) => px >= 0 && px < 12);
});

/** Opens a page as on a phone with a touch screen. */
async function phone(t, address) {
	const context = await here.browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true,
		isMobile: true });
	t.after(() => context.close());
	const page = await context.newPage();
	await page.goto(here.server.url + address);
	return page;
}

test('on a phone boxes can be hit, and a double tap on Delete deletes nothing', async (t) => {
	const of = (i) => ({ params: { model: i ? 'cnn' : 'mlp', seed: String(i) } });
	for (const i of [0, 1, 2]) await run('touch', 'r' + i, { loss: [[1, 1], [2, 0.5]] }, of(i));
	const page = await phone(t, '?e=touch');
	await drawn(page);
	const sides = (q) => page.$$eval(q, (l) => l.flatMap((e) => [e.offsetWidth, e.offsetHeight]));
	assert.ok((await sides('.cards .pick')).every((px) => px >= 24));
	await page.tap('.grouping button:text-is("Group by")');
	await page.waitForSelector('.grouping .choice', WAIT);
	const choices = await sides('.grouping .choice, .grouping .choice input');
	assert.ok(choices.length >= 8 && choices.every((px) => px >= 24), choices.join());
	await page.tap('.grouping button:text-is("Group by")');
	for (const i of [0, 1]) await page.tap(`.cards [aria-label="Select r${i}"]`);
	await page.tap('.bulk [aria-label="More actions"]');
	await page.tap('.bulk button:text-is("Delete")');
	// where the second tap of a finger is, if the button is below it
	assert.equal(await page.$eval('[role=dialog] .danger', (e) => {
		const { left, top, width, height } = e.getBoundingClientRect();
		return document.elementFromPoint(left + width / 2, top + height / 2) === e;
	}), false);
	await page.tap('[role=dialog] .danger');
	await until(() => page.locator('.cards .pick').count(), (n) => n === 1);
});

test('phases that ranks log under other names have their share, too', async (t) => {
	for (const name of ['one', 'two']) {
		const id = await run('phased', name, { loss: [[1, 1], [2, 0.5], [3, 0.4]] });
		const values = { forward: 2, backward: 3, data: 1, allreduce: 2, eval: 2 };
		const points = Object.entries(values).flatMap(([k, value]) => [1, 2, 3].map((step) =>
			({ key: 'phase/' + k, step, value, rank: 0, wall_time: 1.8e9 + step })));
		await here.ask('POST', `runs/${id}/metrics`, { points });
	}
	const page = await here.open(t, '?e=phased');
	await until(() => page.$eval('.grid .phases', (e) => e.title).catch(() => ''), (s) => s
		=== 'data 10 %, forward 20 %, backward 30 %, allreduce 20 %, eval 20 %');
});

test('a sorted head has its whole name where it fits, else both ends of it', async (t) => {
	const points = [[1, 0.5], [2, 0.25]];
	const long = 'layers/attention_probabilities_entropy_';
	for (const [i, name] of ['a', 'b'].entries())
		await run('heads', name, { 'c/loss': points, 'd/loss': points,
			[long + 'head1']: points, [long + 'head2']: points },
			{ params: { dropout: String(i), learning_rate_schedule: 'cosine' + i } });
	const ids = ['p:dropout', 'p:learning_rate_schedule', 'm:last:c/loss', 'm:min:d/loss', `m:last:${long}head1`,
		`m:last:${long}head2`];
	const page = await here.open(t, '?e=heads');
	await drawn(page);
	/** Lines that are cut, and whether the last characters of each are within its cell. */
	const look = () => page.$$eval('.grid .head .cell:nth-child(n + 2) .lines > *', (l) => l.flatMap((e) => {
		const end = new Range();
		end.setStart(e.lastChild, Math.max(0, e.lastChild.length - 5));
		end.setEnd(e.lastChild, e.lastChild.length);
		const [own, cell] = [end, e.closest('.cell')].map((x) => x.getBoundingClientRect().right);
		return [e, ...e.children].some((x) => x.scrollWidth > x.clientWidth)
			? [`${e.textContent} ${own <= cell}`] : [];
	}));
	for (const id of ids) {
		await page.goto(`${here.server.url}?e=heads&s=${encodeURIComponent(id)}${
			ids.map((c) => '&c=' + encodeURIComponent(c)).join('')}`);
		await page.waitForSelector('.grid .head .cell .arrow', WAIT);
		assert.deepEqual((await look()).map((x) => x.replace(/^.*_/, '')), ['head1 true', 'head2 true']);
	}
});
