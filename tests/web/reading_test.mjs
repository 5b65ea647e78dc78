// SPDX-License-Identifier: Apache-2.0
// Reading values of charts: the tooltip at the cursor lists real points, compared with the points that REST returns,
// and nothing else moves. Axes, names at line ends and colours are what a reader expects.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chart, charted, clean, says, until } from './browser.mjs';
import { writeTwelve } from './serve.mjs';
import { stage } from './stage.mjs';

const WAIT = { timeout: 30000 };
const LOSS = 'train/loss';
const here = stage(writeTwelve);

async function run(experiment, name, series, params = {}) {
	const { id } = await here.ask('POST', 'runs', { experiment, name, params });
	const points = Object.entries(series).flatMap(([key, list]) => list.map(([step, value]) =>
		({ key, step, value, wall_time: 1.8e9 + step })));
	await here.ask('POST', `runs/${id}/metrics`, { points });
	await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	return id;
}

const plot = (key) => `[data-chart="${key}"]`;
/** The tooltip: its head and its rows. */
const tip = (page) => page.evaluate(() => {
	const e = [...document.querySelectorAll('.readings')].find((t) => !t.hidden);
	return !e ? null : { head: e.querySelector('p').textContent, rows: [...e.querySelectorAll('li')].map((l) =>
		({ id: l.dataset.line, name: l.querySelector('.name').textContent,
			value: l.querySelector('b').textContent, note: l.querySelector('small')?.textContent ?? '',
			front: l.classList.contains('front') })) };
});
const rowIds = (page) => page.$$eval('.grid .body .row', (l) => l.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)
	.map((r) => r.dataset.run).join());
/** The position in the window of a point of a chart, by its shares of the plot area. */
async function place(page, key, across, up = 0.5) {
	const d = await chart(page, key);
	const el = await page.locator(plot(key)).boundingBox();
	return [el.x + d.box.left + across * d.box.width, el.y + d.box.top + up * d.box.height];
}
const valueAt = async (id, key, step) => (await here.ask('GET', `series?run=${id}&key=${encodeURIComponent(key)}`
	+ `&rank=-1&from=${step}&to=${step}`)).points[0]?.value;

test('the pointer reads every charted run at real points, highest first, and the table does not move', async (t) => {
	const page = await here.open(t, '?e=fashion');
	await charted(page, LOSS, (d) => d.lines.length === 12);
	const head = await page.textContent('.grid .head');
	const before = await rowIds(page);
	const divided = await page.getAttribute('.row.divide', 'data-run');
	for (let i = 0; i < 60; i++) {
		await page.mouse.move(...await place(page, LOSS, 0.05 + i / 70, 0.9 - (i % 7) / 30));
		await page.evaluate(() => new Promise(requestAnimationFrame));
		assert.equal(await rowIds(page), before, `movement ${i}`);
	}
	await page.waitForTimeout(300);
	assert.equal(await rowIds(page), before);
	assert.equal(await page.textContent('.grid .head'), head);
	assert.equal(await page.getAttribute('.row.divide', 'data-run'), divided);
	await page.mouse.move(...await place(page, LOSS, 0.4, 0.85));
	const { head: where, rows } = await until(() => tip(page), (s) => s !== null && s.rows.length === 12);
	const step = Number(/^step (\d+)$/.exec(where)[1]);
	const there = rows.filter((r) => !/ends at/.test(r.note));
	for (const r of there) {
		const at = Number(/at (\d+)/.exec(r.note)?.[1] ?? step);
		const value = await valueAt(r.id, LOSS, at);
		assert.equal(r.value, value.toFixed(r.value.split('.')[1].length), `${r.name} at ${at}: ${value}`);
	}
	const values = there.map((r) => Number(r.value)).filter(Number.isFinite);
	assert.deepEqual(values, [...values].sort((a, b) => b - a));
	await page.mouse.move(5, 5);
	await until(() => tip(page), (s) => s === null);
});

test('between two points the nearest is shown, never a value between', async (t) => {
	const ys = [[50, 0.2], [100, 0.6], [150, 0.8], [200, 0.9], [250, 0.91]];
	await run('sparse', 'a', { 'val/acc': ys });
	await run('sparse', 'b', { 'val/acc': ys.filter(([x]) => x !== 150).map(([x, y]) => [x, y / 2]) });
	const page = await here.open(t, '?e=sparse');
	await charted(page, 'val/acc', (d) => d.lines.length === 2);
	await page.mouse.move(...await place(page, 'val/acc', 117 / 200, 0.02));
	const s = await until(() => tip(page), (x) => x !== null);
	assert.equal(s.head, 'step 150');
	assert.deepEqual(s.rows.map((r) => [r.name, Number(r.value), r.note]),
		[['a', 0.8, ''], ['b', 0.45, 'at 200']]);
});

/** Accepts a tooltip with the values of n lines at the step of the cursor. */
const isExact = (n) => (x) => x?.rows.length === n && x.rows.every((r) => r.note === '');

test('of thinned lines the tooltip shows what was logged at the step, without a zoom', async (t) => {
	const value = (k) => (step) => 3 + k + Math.sin(step * 1.7 + k) + step / 1000;
	const all = Array.from({ length: 6000 }, (_, i) => i + 1);
	const ids = [];
	for (const k of [0, 1, 2])
		ids.push(await run('thinned', 'r' + k, { loss: all.map((step) => [step, value(k)(step)]) }));
	const page = await here.open(t, '?e=thinned');
	const d = await charted(page, 'loss', (c) => c.lines.length === 3);
	assert.ok(d.lines.every((l) => l.points < 6000), 'fewer points are drawn than logged');
	for (const across of [0.05, 0.31, 0.5, 0.77]) {
		await page.mouse.move(...await place(page, 'loss', across, 0.3));
		const s = await until(() => tip(page), isExact(3), 'each run at the step of the cursor');
		const step = Number(/^step (\d+)$/.exec(s.head)[1]);
		for (const r of s.rows) {
			const logged = value(ids.indexOf(r.id))(step);
			const last = 10 ** -r.value.split('.')[1].length; // digit, of seven
			assert.ok(Math.abs(r.value - logged) < 0.51 * last, `at ${step}: ${r.value}, ${logged}`);
		}
	}
	await page.focus(plot('loss'));
	await page.keyboard.press('End');
	await until(() => tip(page), (x) => x?.head === 'step 6000' && isExact(3)(x));
});

test('arrows move the cursor by one logged point where the pointer rests, other keys the focus', async (t) => {
	const all = Array.from({ length: 6000 }, (_, i) => [i + 1, Math.sin(i)]);
	await run('rests', 'a', { loss: all });
	await run('rests', 'b', { loss: all });
	const page = await here.open(t, '?e=rests');
	await charted(page, 'loss', (d) => d.lines.length === 2);
	await page.click('.grid .body .row [role=gridcell]');
	const focused = () => page.evaluate(() => document.activeElement.dataset.cell);
	const cell = await focused();
	await page.mouse.move(...await place(page, 'loss', 0.5, 0.5));
	let at = -1;
	for (let calm = 0; calm < 8;) {
		const now = Number((await until(() => tip(page), isExact(2))).head.slice(5));
		calm = now === at ? calm + 1 : 0;
		at = now;
		await page.waitForTimeout(50);
	}
	for (let i = 0; i < 40; i++) {
		await page.keyboard.press('ArrowRight');
		await until(() => tip(page), (x) => x?.head === `step ${++at}` || (at--, false));
		await page.waitForTimeout(i % 10 ? 0 : 400);
	}
	await page.keyboard.press('ArrowLeft');
	await until(() => tip(page), (x) => x?.head === `step ${at - 1}`);
	assert.equal(await focused(), cell);
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('ArrowRight');
	const [row, column] = cell.split(':').map(Number);
	await until(focused, (c) => c === `${row + 1}:${column + 1}`);
	await page.keyboard.press('?');
	await says(page, '.keys', /The cursor by one logged point, also where the pointer rests/);
});

test('the enlarged chart and a tap on a phone read values', async (t) => {
	const page = await here.open(t, '?e=fashion');
	await charted(page, LOSS, (d) => d.lines.length === 12);
	await page.hover(plot(LOSS));
	await page.click(`button[aria-label="Enlarge ${LOSS}"]`);
	await charted(page, LOSS, (d) => d.box.width > 900);
	await page.mouse.move(...await place(page, LOSS, 0.5, 0.9));
	const s = await until(() => tip(page), (x) => x?.rows.length === 12);
	const step = Number(s.head.slice(5));
	assert.ok(Math.abs(step - 300) < 12, s.head);
	const free = await page.$eval('.large .readings', (e) => {
		const b = e.getBoundingClientRect();
		return b.width > 0 && b.left >= 0 && b.right <= innerWidth && b.top >= 0 && b.bottom <= innerHeight;
	});
	assert.ok(free, 'the tooltip is in the window');
	const phone = await here.browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true,
		isMobile: true });
	t.after(() => phone.close());
	const small = await phone.newPage();
	await small.goto(here.server.url + '?e=fashion');
	await charted(small, LOSS, (d) => d.lines.length === 12);
	await small.locator(plot(LOSS)).scrollIntoViewIfNeeded();
	await small.touchscreen.tap(...await place(small, LOSS, 0.5, 0.8));
	const tapped = await until(() => tip(small), (x) => x?.rows.length === 12);
	assert.match(tapped.head, /^step \d+$/);
	await small.waitForTimeout(300);
	assert.ok(await tip(small), 'it stays after the finger is lifted');
	const button = (label) => small.locator(`.readings:not([hidden]) [aria-label="${label}"]`);
	const box = await button('Next step').boundingBox();
	assert.ok(box.width >= 32 && box.height >= 32, JSON.stringify(box));
	const start = Number(/\d+/.exec(tapped.head)[0]);
	for (let at = start; at !== 300;) {
		at += Math.sign(300 - at);
		await button(300 > start ? 'Next step' : 'Previous step').tap();
		await until(() => tip(small), (x) => x?.head === `step ${at}` && x.rows.length === 12);
	}
	assert.deepEqual(await button('Next step').boundingBox(), box, 'it stays under the finger');
	const [{ id, value }] = (await tip(small)).rows;
	const { series } = await here.ask('POST', 'series/query',
		{ runs: [id], keys: [LOSS], buckets: 1, x: 'step', from: 300, to: 300, rank: -1 });
	assert.ok(Math.abs(Number(value) - series[0].buckets.last[0]) < 1e-3, value);
	await clean(small);
	await small.touchscreen.tap(20, 20);
	await until(() => tip(small), (x) => x === null);
});

test('keys move from point to point and from run to run; Enter opens the run', async (t) => {
	const ys = (k) => [[10, k], [20, 2 * k], [40, 3 * k]];
	const ids = [await run('keys', 'a', { loss: ys(1) }), await run('keys', 'b', { loss: ys(2) })];
	const page = await here.open(t, '?e=keys');
	await charted(page, 'loss', (d) => d.lines.length === 2);
	await page.keyboard.press('?');
	await says(page, '.keys', /↑ ↓From run to run, by value/);
	await page.keyboard.press('Escape');
	await page.focus(plot('loss'));
	await page.keyboard.press('Home');
	for (const at of [10, 20, 40]) {
		await until(() => tip(page), (s) => s?.head === `step ${at}`);
		await page.keyboard.press('ArrowRight');
	}
	await page.keyboard.press('ArrowDown');
	await until(() => tip(page), (s) => s?.rows.find((r) => r.front)?.id === ids[1]);
	await page.keyboard.press('ArrowDown');
	await until(() => tip(page), (s) => s?.rows.find((r) => r.front)?.id === ids[0]);
	await page.keyboard.press('Enter');
	await says(page, 'h1', /^a/);
});

test('among 40 lines the tooltip shows those around the pointer and counts the others', async (t) => {
	for (let i = 0; i < 40; i++) await run('crowd', 'r' + i, { loss: [[1, i], [2, i], [3, i]] });
	const page = await here.open(t, '?e=crowd&o=' + (await here.ask('GET', 'runs?experiment=crowd&limit=40')).runs
		.map((r) => r.id.slice(0, 8)).join('.'));
	await charted(page, 'loss', (d) => d.lines.length === 40);
	for (const [up, near] of [[0.02, 39], [0.5, 20], [0.98, 0]]) {
		await page.mouse.move(...await place(page, 'loss', 0.5, up));
		const s = await until(() => tip(page),
			(x) => x?.rows.some((r) => Math.abs(Number(r.value) - near) <= 2),
			`the value ${near} is shown`);
		const rest = await page.textContent('.readings:not([hidden]) .dim');
		const [above, below] = /^(\d+) above, (\d+) below$/.exec(rest).slice(1).map(Number);
		assert.equal(above + s.rows.length + below, 40);
		assert.ok(s.rows.length <= 24);
	}
});

/** Words of ink below the axis as [left, right], and the span that the cursor's label covers. */
const labels = (page, key) => page.evaluate((k) => {
	const el = document.querySelector(`[data-chart="${k}"]`);
	const { box } = el.chart.drawn();
	const inked = (layer, test) => {
		const c = el.querySelector(layer);
		const { data, width } = c.getContext('2d').getImageData(0, box.top + box.height + 6, c.width, 12);
		const columns = Array.from({ length: width }, (_, x) => Array.from({ length: 12 }, (_, y) =>
			data[4 * (y * width + x) + 3]).some((a) => test(a)));
		const spans = [];
		columns.forEach((on, x) => {
			if (!on) return;
			if (spans.length && x - spans.at(-1)[1] < 8) spans.at(-1)[1] = x;
			else spans.push([x, x]);
		});
		return spans;
	};
	return { words: inked('.chart-axes', (a) => a > 60),
		covers: inked('.chart-over', (a) => a > 250) };
}, key);

test('the cursor\'s label covers no tick label in part', async (t) => {
	const page = await here.open(t, '?e=fashion');
	const d = await charted(page, LOSS, (c) => c.lines.length === 12 && c.ticks.length > 2);
	let covered = 0;
	for (const step of [-30, -20, -15, -10, 10, 20].map((by) => Number(d.ticks[1]) + by)) {
		await page.mouse.move(...await place(page, LOSS, (step - d.from) / (d.to - d.from), 0.3));
		await until(() => chart(page, LOSS), (c) => c.at !== null && Math.abs(c.at - step) < 4);
		const { words, covers } = await labels(page, LOSS);
		assert.equal(covers.length, 1, JSON.stringify(covers));
		const [[left, right]] = covers;
		for (const [a, b] of words)
			if (a <= right && b >= left) {
				covered++;
				assert.ok(a >= left && b <= right,
					`${step}: the label [${left}, ${right}] cuts [${a}, ${b}]`);
			}
	}
	assert.ok(covered > 0, 'a position next to a tick was tried');
});

test('in time mode a label says where NaN begins', async (t) => {
	const page = await here.open(t, '?e=fashion&x=time');
	const d = await charted(page, LOSS, (c) => c.marks.some((m) => m.kind === 'flag-nan'));
	assert.match(d.marks.find((m) => m.kind === 'flag-nan').text, /^NaN from \d+(\.\d+)? (s|min|h)/);
});

test('a chart without points draws no axes', async (t) => {
	const a = await run('bare', 'a', { loss: [[1, 1], [2, 2]], 'only/a': [[1, 1], [2, 2]] });
	const b = await run('bare', 'b', { loss: [[1, 1], [2, 2]] });
	const page = await here.open(t, '?e=bare');
	await charted(page, 'only/a', (d) => d.lines.length === 1);
	const ink = () => page.$eval(`${plot('only/a')} .chart-axes`, (c) =>
		c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v > 0));
	await until(ink, (on) => on);
	await page.hover(`[data-run="${a}"]`);
	await page.click(`[data-run="${a}"] .shows`);
	await until(ink, (on) => !on, 'nothing is drawn');
	await charted(page, 'loss', (d) => d.lines.length === 1 && d.lines[0].id === b);
});

test('x counts steps where epoch/ series are logged at steps, epochs where at epochs', async (t) => {
	const steps = Array.from({ length: 600 }, (_, i) => [i + 1, 1 / (i + 1)]);
	await run('atsteps', 'a', { 'train/loss': steps, 'epoch/top1': [60, 300, 600].map((x) => [x, x / 700]) });
	await run('atepochs', 'a', { 'train/loss': steps, 'epoch/top1': [1, 5, 10].map((x) => [x, x / 12]) });
	for (const [experiment, head] of [['atsteps', /^step 300$/], ['atepochs', /^epoch 5$/]]) {
		const page = await here.open(t, '?e=' + experiment);
		await charted(page, 'epoch/top1', (d) => d.lines.length === 1);
		await page.mouse.move(...await place(page, 'epoch/top1', 0.46));
		const s = await until(() => tip(page), (x) => x !== null);
		assert.match(s.head, head);
	}
});

test('a click on where NaN begins shows that run in full', async (t) => {
	const page = await here.open(t, '?e=fashion');
	await charted(page, LOSS, (d) => d.lines.length === 12);
	await page.click('.c-status button:has-text("NaN from step 400")');
	const d = await charted(page, LOSS, (c) => c.from > 300 && c.to < 500);
	const id = d.marks.find((m) => m.kind === 'nan-cross').id;
	const line = d.lines.find((l) => l.id === id);
	assert.ok(line.points > 0 && d.hi >= line.top && d.lo <= line.bottom, JSON.stringify([d.lo, d.hi, line]));
	assert.deepEqual(d.marks.filter((m) => m.id === id && m.kind.startsWith('arrow')), []);
});

test('names are at the line ends of the first charts, uncut, and of others where all fit', async (t) => {
	const page = await here.open(t, '?e=fashion');
	await page.setViewportSize({ width: 1440, height: 900 });
	const room = async (key) => {
		await page.locator(plot(key)).scrollIntoViewIfNeeded();
		const d = await charted(page, key, (c) => c.lines.length > 1);
		const { width } = await page.locator(plot(key)).boundingBox();
		return [d, width - d.box.left - d.box.width];
	};
	const [first, gutter] = await room(LOSS);
	const widest = await page.evaluate((names) => {
		const g = document.createElement('canvas').getContext('2d');
		g.font = getComputedStyle(document.body).fontFamily;
		g.font = '11px ' + getComputedStyle(document.documentElement).fontFamily;
		return Math.max(...names.map((n) => g.measureText(n).width));
	}, first.names);
	assert.ok(first.names.length >= 10 && gutter - 16 >= widest, `${gutter} px for ${widest}`);
	const [other] = await room('epoch/val_loss');
	assert.ok(other.names.length >= 10 && !other.names.some((n) => n.includes('…')), other.names.join());
	await page.setViewportSize({ width: 390, height: 844 });
	await charted(page, 'epoch/val_loss', (c) => !c.names.length);
	const [, edge] = await room('epoch/val_loss');
	assert.ok(edge <= 14, `${edge} px at the right`);
});

test('runs next to one that diverges keep their digits: tooltip, table and comparison', async (t) => {
	const list = (of) => ({ [LOSS]: Array.from({ length: 100 }, (_, i) => [i, of(i)]) });
	for (const [name, of] of [['good', (i) => 0.25 + 2 * Math.exp(-i / 20)], ['lost', (i) => 2 * Math.exp(i / 8)]])
		await run('blow', name, list(of), { name });
	const page = await here.open(t, '?e=blow');
	await charted(page, LOSS, (d) => d.lines.length === 2);
	const row = '.grid .body .row:has-text("good")';
	assert.match(await page.textContent(row), /0\.264.*0\.264/);
	await page.mouse.move(...await place(page, LOSS, 0.9));
	const { rows } = await until(() => tip(page), (s) => s !== null && s.rows.length === 2);
	assert.match(rows.find((r) => r.name === 'good').value, /^0\.2\d{3}$/);
	await page.click('button:text-is("Compare")');
	await page.locator('tr:has-text("train/loss last")').filter({ hasText: '0.264' }).waitFor(WAIT);
});

test('byte axes have round ticks in one unit', async (t) => {
	const GiB = 2 ** 30;
	const grows = Array.from({ length: 20 }, (_, i) => [i, 1.6 * GiB + i * 2e6]);
	await run('bytes', 'a', { 'system/memory_bytes': grows });
	const page = await here.open(t, '?e=bytes');
	const d = await charted(page, 'system/memory_bytes', (c) => c.lines.length === 1);
	assert.ok(d.ticksY.length > 1, d.ticksY.join());
	for (const text of d.ticksY) assert.match(text, /^1\.\d+ GiB$/);
	assert.equal(new Set(d.ticksY).size, d.ticksY.length);
	assert.equal(new Set(d.ticksY.map((x) => x.length)).size, 1, d.ticksY.join());
});

test('groups: a diverged run does not flatten the others', async (t) => {
	const page = await here.open(t, '?e=fashion');
	await charted(page, 'epoch/top1', (d) => d.lines.length === 12);
	await page.click('button:text-is("Group by all but seed")');
	const d = await charted(page, 'epoch/top1', (c) => c.lines.length === 10); // one group, nine runs alone
	assert.ok(d.lo > 0.5 && d.hi > 0.92, `${d.lo} to ${d.hi}`);
	const texts = await page.$$eval('.grouped .c-status', (l) => l.map((e) => e.textContent));
	assert.ok(texts.some((s) => /NaN/.test(s)) && !texts.some((s) => /nan/.test(s)), texts.join('; '));
});

test('groups: the mean of runs that log at different steps does not alternate, and says of how many', async (t) => {
	const every = (n, end, v) => Array.from({ length: end / n }, (_, i) => [n * (i + 1), v]);
	await run('uneven', 'a', { loss: every(60, 600, 1) }, { net: 'm', seed: '1' });
	await run('uneven', 'b', { loss: every(100, 1000, 3) }, { net: 'm', seed: '2' });
	const page = await here.open(t, '?e=uneven&by=net');
	await charted(page, 'loss', (d) => d.lines.length === 1);
	const { x, y } = await page.evaluate(() => {
		const [l] = document.querySelector('[data-chart="loss"]').chart.data.lines;
		return { x: l.xs, y: l.ys };
	});
	const shared = x.flatMap((at, i) => (at > 105 && at < 595 ? [y[i]] : []));
	assert.ok(shared.length > 9 && shared.every((v) => v === 2), shared.join());
	for (const [across, value, note] of [[0.4, '2', '1 – 3, n 2'], [0.9, '3', '3 – 3, n 1']]) {
		await page.mouse.move(...await place(page, 'loss', across));
		const s = await until(() => tip(page), (v) => v?.rows[0].value === value);
		assert.ok(s.rows[0].note.endsWith(note), s.rows[0].note);
		assert.match(s.head, /^step \d+–\d+$/, 'the steps of the mean');
	}
});

test('a run that has ended is listed as ended, however narrow the chart', async (t) => {
	const to = (n) => ({ loss: Array.from({ length: n }, (_, i) => [i, 1 + i / 1000]) });
	await run('ended', 'long', to(600), { a: '1' });
	const short = await run('ended', 'short', to(268), { a: '2' });
	const page = await here.open(t, '?e=ended');
	for (const width of [1280, 390]) {
		await page.setViewportSize({ width, height: 800 });
		await page.locator(plot('loss')).scrollIntoViewIfNeeded();
		await charted(page, 'loss', (d) => d.lines.length === 2 && d.box.width < width);
		await page.mouse.move(...await place(page, 'loss', 276 / 599, 0.9));
		const { rows } = await until(() => tip(page), (s) => s?.rows.length === 2);
		const own = rows.find((r) => r.id === short);
		assert.deepEqual([own.value, own.note], ['', 'ends at 267']);
	}
});

test('a run looks the same after others are deleted, also in a page that never saw them', async (t) => {
	const ids = [];
	for (const [i, model] of ['cnn', 'mlp', 'mlp', 'vit', 'cnn', 'vit'].entries())
		ids.push(await run('fewer', 'r' + i, { loss: [[1, i], [2, i + 1]] }, { model, lr: String(i) }));
	const looks = async (n) => {
		const page = await here.open(t, '?e=fewer');
		const d = await charted(page, 'loss', (c) => c.lines.length === n);
		return Object.fromEntries(d.lines.map((l) => [l.id, l.colour + ' ' + l.dash]));
	};
	const before = await looks(6);
	for (const i of [0, 1, 3]) await here.ask('DELETE', 'runs/' + ids[i]);
	const after = await looks(3);
	assert.deepEqual(after, Object.fromEntries([2, 4, 5].map((i) => [ids[i], before[ids[i]]])));
});

test('a run looks the same whatever is charted, filtered or opened', async (t) => {
	const page = await here.open(t, '?e=fashion');
	const looks = (d) => Object.fromEntries(d.lines.map((l) => [l.id, l.colour + ' ' + l.dash]));
	const all = looks(await charted(page, LOSS, (d) => d.lines.length === 12));
	const id = await page.$eval('.row:has-text("cnn-ddp4-bf16")', (e) => e.dataset.run);
	await page.hover(`[data-run="${id}"]`);
	await page.click(`[data-run="${id}"] [title^="Only this run"]`);
	assert.equal(looks(await charted(page, LOSS, (d) => d.lines.length === 1))[id], all[id]);
	await page.fill('.filter input', 'params.strategy = \'ddp\'');
	await page.keyboard.press('Enter');
	await until(() => page.locator('.grid .body .row').count(), (n) => n > 0 && n < 12);
	await page.waitForTimeout(200);
	assert.equal(looks(await charted(page, LOSS, (d) => d.lines.length >= 1))[id], all[id]);
	await page.click(`[data-run="${id}"] a`);
	await page.waitForSelector('.runpage h1', WAIT);
	assert.equal(looks(await charted(page, LOSS, (d) => d.lines.length === 1))[id], all[id]);
});

test('side by side marks a best value only where the better direction is known', async (t) => {
	for (const k of [1, 2])
		await run('aside', 'r' + k,
			{ 'train/loss': [[1, k], [2, k / 2]], 'grad_norm/fc': [[1, k], [2, 3 * k]] });
	const page = await here.open(t, '?e=aside&side');
	const rows = await until(() => page.$$eval('main.side tbody tr', (l) => l.map((r) =>
		[r.querySelector('th')?.textContent, r.querySelectorAll('.best').length])),
		(l) => l.some(([name]) => /grad_norm/.test(name)));
	assert.deepEqual(rows.filter(([name]) => /grad_norm/.test(name)), [['grad_norm/fc last', 0]]);
	assert.ok(rows.some(([name, best]) => /train\/loss/.test(name) && best === 1), JSON.stringify(rows));
});

test('the tooltip covers no button of its chart', async (t) => {
	const page = await here.open(t, '?e=fashion');
	await charted(page, LOSS, (d) => d.lines.length === 12);
	await page.locator(plot('epoch/val_loss')).scrollIntoViewIfNeeded();
	await charted(page, 'epoch/val_loss', (d) => d.lines.length > 8);
	for (const key of ['epoch/val_loss', LOSS]) {
		await page.locator(plot(key)).scrollIntoViewIfNeeded();
		for (const [across, up] of [[0.35, 0.98], [0.6, 0.9], [0.95, 0.98], [0.8, 0.5]]) {
			await page.mouse.move(...await place(page, key, across, up));
			await until(() => tip(page), (x) => x?.rows.length > 8);
			const over = await page.$eval(`figure:has(${plot(key)})`, (figure) => {
				const b = figure.querySelector('.readings').getBoundingClientRect();
				return [...figure.querySelectorAll('.acts button')].filter((e) => {
					const { left, right, top, bottom } = e.getBoundingClientRect();
					return left < b.right && right > b.left && top < b.bottom && bottom > b.top;
				}).map((e) => e.textContent);
			});
			assert.deepEqual(over, [], `${key} at ${across}, ${up}`);
		}
	}
});

test('on a phone the names of metrics break after their separators, not within a word', async (t) => {
	const keys = ['validation/top1_accuracy', 'eval.extended_samples-seen', 'epoch/seconds'];
	const points = [[1000, 0.123456], [2000, 0.654321]];
	const id = await run('names', 'a', Object.fromEntries(keys.map((k) => [k, points])));
	const page = await here.open(t, '?r=' + id);
	await page.setViewportSize({ width: 390, height: 844 });
	await page.waitForSelector('.metrics tbody tr:nth-child(3)');
	const lines = await page.$$eval('.metrics tbody td:first-child', (cells) => cells.map((c) => {
		const range = document.createRange();
		const nodes = document.createTreeWalker(c, NodeFilter.SHOW_TEXT);
		const out = [];
		let top = null;
		for (let n = nodes.nextNode(); n; n = nodes.nextNode())
			for (let i = 0; i < n.length; i++) {
				range.setStart(n, i);
				range.setEnd(n, i + 1);
				const at = range.getBoundingClientRect().top;
				if (top === null || at > top + 4) out.push('');
				top = at;
				out[out.length - 1] += n.data[i];
			}
		return out;
	}));
	assert.deepEqual(lines.map((l) => l.join('')).sort(), [...keys].sort());
	assert.ok(lines.some((l) => l.length > 1), 'some are broken');
	for (const l of lines) for (const part of l.slice(0, -1)) assert.match(part, /[/_.-]$/, l.join(' | '));
	await clean(page);
});
