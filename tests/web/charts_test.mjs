// SPDX-License-Identifier: Apache-2.0
// What is drawn on the canvas: values too large for it, points between gaps, zero on a log axis, ticks in several
// units; zooming by mouse and keyboard, reading values by touch. Pixels are checked where the chart's own report would
// prove nothing.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { charted, says, until } from './browser.mjs';
import { stage } from './stage.mjs';

const KEY = 'train/loss';
const here = stage();

async function run(experiment, name, values, key = KEY) {
	const { id } = await here.ask('POST', 'runs', { experiment, name, params: { lr: '0.1', name } });
	await here.ask('POST', `runs/${id}/metrics`,
		{ points: values.map((v, i) => ({ key, step: i + 1, wall_time: 1.8e9 + i,
		value: Number.isFinite(v) ? v : String(v) })) });
	await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	return id;
}

/** Coloured pixels of the line canvas in the columns around x, in total and by rows from the top of the box. */
const inked = (page, x) => page.evaluate(([key, at]) => {
	const el = document.querySelector(`[data-chart="${key}"]`);
	const { box, from, to } = el.chart.drawn();
	const px = Math.round(box.left + ((at - from) / (to - from)) * box.width);
	const { data, width } =
		el.querySelector('.chart-lines').getContext('2d').getImageData(px - 3, box.top, 7, box.height);
	let rows = 0;
	for (let y = 0; y < data.length / 4 / width; y++) rows += Number(Array.from({ length: width },
		(_, c) => data[4 * (y * width + c) + 3]).some((a) => a > 60));
	return rows / box.height;
}, [KEY, x]);
const place = async (page, d, share, up = 0.5) => {
	const el = await page.locator(`[data-chart="${KEY}"]`).boundingBox();
	return [el.x + d.box.left + share * d.box.width, el.y + d.box.top + up * d.box.height];
};

test('a spike of any size is drawn to the edge and reported', async (t) => {
	const smooth = (i) => 2 * Math.exp(-i / 50) + 0.1;
	for (const [i, spike] of [1e3, 1e30, 1.7e308, -1e300].entries()) {
		const experiment = 'spike' + i;
		await run(experiment, 'spiky', Array.from({ length: 300 }, (_, k) => (k === 200 ? spike : smooth(k))));
		const page = await here.open(t, '?e=' + experiment);
		const d = await charted(page, KEY, (c) => c.lines.length === 1);
		assert.ok(d.lines[0][spike > 0 ? 'top' : 'bottom'] === spike);
		assert.ok(d.marks.some((m) => m.kind === (spike > 0 ? 'arrow-top' : 'arrow-bottom') && m.y === spike),
			JSON.stringify(d.marks));
		const share = await until(() => inked(page, 201), (s) => s > 0);
		const whole = spike > 0 ? 0.85 : 0.02;
		assert.ok(share >= whole, `${spike}: ${share} of the height`);
		assert.ok(await inked(page, 100) > 0 && await inked(page, 299) > 0, 'the rest of the line is drawn');
	}
});

test('a spike of a few points does not flatten a short series; a divergence at its end is in range', async (t) => {
	const loss = Array.from({ length: 150 }, (_, k) => 2 * Math.exp(-k / 30) + 0.1);
	await run('brief', 'spiky', loss.map((v, k) => (k >= 90 && k < 94 ? 500 - k : v)));
	const page = await here.open(t, '?e=brief');
	const d = await charted(page, KEY, (c) => c.lines.length === 1);
	assert.ok(d.hi < 5 && d.hi > 2, `the axis ends at ${d.hi}`);
	assert.ok(d.marks.some((m) => m.kind === 'arrow-top' && m.y === 410), JSON.stringify(d.marks));
	await page.click('button:text-is("Full range")');
	await charted(page, KEY, (c) => c.hi >= 410 && !c.marks.some((m) => m.kind === 'arrow-top'));
	await run('leaves', 'lost', loss.map((v, k) => (k >= 147 ? 10 * (k - 140) : v)));
	const other = await here.open(t, '?e=leaves');
	await charted(other, KEY, (c) => c.lines.length === 1 && c.hi >= 90);
});

/** Texts on the canvas. */
const written = (page) => page.evaluate((key) => {
	const g = document.createElement('canvas').getContext('2d');
	const out = [];
	g.fillText = (text) => out.push(text);
	document.querySelector(`[data-chart="${key}"]`).chart.paint(g);
	return out;
}, KEY);

test('names at the ends of lines are whole where they fit; else what all share is cut first', async (t) => {
	const flat = (v) => Array.from({ length: 30 }, () => v);
	const long = 'experiment-of-the-second-week-with-';
	const fits = ['MWMW-BASE', 'MWMW-WMWM'];
	for (const [i, name] of fits.entries()) await run('named', name, flat(i));
	for (const [i, name] of ['alpha', 'beta'].entries()) await run('shared', long + name, flat(i));
	await run('alone', long + 'ended', flat(1));
	await here.ask('PATCH', 'runs/' + await run('alone', long + 'early', [1, 2]), { status: 'failed' });
	for (const [experiment, expected] of [['named', fits], ['alone', ['…second-week-with-ended']],
		['shared', ['…second-week-with-alpha', '…second-week-with-beta']]]) {
		const page = await here.open(t, '?e=' + experiment);
		await page.setViewportSize({ width: 760, height: 800 });
		await charted(page, KEY, (c) => c.names.length === expected.length && c.box.width < 700);
		await until(() => written(page), (texts) => expected.every((x) => texts.includes(x)));
	}
});

test('the legend has the colours of all runs, also where they share a hue', async (t) => {
	for (const model of ['cnn', 'mlp'])
		for (const seed of ['1', '2', '3']) {
			const { id } = await here.ask('POST', 'runs', { experiment: 'hues', name: model + seed,
				params: { model, seed } });
			await here.ask('POST', `runs/${id}/metrics`, { points: [1, 2].map((step) =>
				({ key: KEY, step, wall_time: 1.8e9 + step, value: Number(seed) })) });
		}
	const page = await here.open(t, '?e=hues');
	await charted(page, KEY, (c) => c.lines.length === 6);
	const strokes = (where) => page.$$eval(where + ' .key line', (l) =>
		[...new Set(l.map((e) => e.getAttribute('stroke')).filter((c) => c.startsWith('#')))].sort());
	const lines = await until(() => strokes('[data-run]'), (l) => l.length === 6);
	await until(() => strokes('.looks'), (l) => l.length === 6); // the legend follows the first frame
	assert.deepEqual(await strokes('.looks'), lines);
	const hint = await page.$eval('.looks span[title^="model cnn"]', (e) => e.title);
	assert.equal(hint, 'model cnn: 3 runs');
	assert.ok(!/in all lines/.test(await page.textContent('.looks')));
	await page.fill('.filter input', 'model = "cnn"');
	await charted(page, KEY, (c) => c.lines.length === 3);
	await says(page, '.looks', /in all lines: another param tells them apart/);
});

test('points between gaps are drawn as dots; values not above zero are counted on a log axis', async (t) => {
	await run('gaps', 'holes', Array.from({ length: 201 }, (_, i) => (i % 2 ? NaN : 2 + Math.sin(i / 20))));
	await run('gaps', 'zero', Array.from({ length: 201 }, (_, i) => (i < 5 ? i - 4 : 1 + i / 400)));
	const page = await here.open(t, '?e=gaps');
	await charted(page, KEY, (c) => c.lines.length === 2);
	for (const x of [21, 61, 121, 181]) await until(() => inked(page, x), (share) => share > 0, `a dot at ${x}`);
	await page.click('button:has-text("Log y")');
	const d = await charted(page, KEY, (c) => c.lo > 0);
	assert.ok(d.marks.some((m) => m.kind === 'not-on-log' && m.text === '5 points are not above 0'),
		JSON.stringify(d.marks));
});

test('mouse and keys zoom in and out', async (t) => {
	await run('zoom', 'a', Array.from({ length: 1000 }, (_, i) => 1 / (i + 1)));
	const page = await here.open(t, '?e=zoom');
	const d = await charted(page, KEY, (c) => c.lines.length === 1 && c.to === 1000);
	await page.mouse.move(...await place(page, d, 0.2));
	await page.mouse.down();
	await page.mouse.move(...await place(page, d, 0.35));
	await page.mouse.move(...await place(page, d, 0.6));
	await page.mouse.up();
	const near = (v, w) => Math.abs(v - w) <= 6;
	await charted(page, KEY, (c) => near(c.from, 201) && near(c.to, 600));
	await page.mouse.dblclick(...await place(page, d, 0.5));
	await charted(page, KEY, (c) => c.from === 1 && c.to === 1000);
	await page.mouse.move(...await place(page, d, 0.7));
	await page.mouse.down();
	await page.mouse.move(...await place(page, d, 1.5));
	await page.mouse.up();
	await charted(page, KEY, (c) => near(c.from, 700) && c.to === 1000);
	await page.mouse.move(5, 5);
	await charted(page, KEY, (c) => c.at === null);
	await page.focus(`[data-chart="${KEY}"]`);
	await page.keyboard.press('Escape');
	await charted(page, KEY, (c) => c.from === 1 && c.to === 1000);
	await page.keyboard.press('End');
	await charted(page, KEY, (c) => c.at === 1000);
	await page.keyboard.press('Shift+ArrowLeft');
	await charted(page, KEY, (c) => near(c.at, 950));
	await page.keyboard.press('+');
	await charted(page, KEY, (c) => c.from > 600 && c.to > 1000);
});

test('a log x axis widens early steps; cursor and zoom match the pointer', async (t) => {
	await run('factors', 'a', Array.from({ length: 10000 }, (_, i) => 1 / (i + 1)));
	const page = await here.open(t, '?e=factors');
	await charted(page, KEY, (c) => c.lines.length === 1 && c.to === 10000);
	await page.click('button:has-text("Log x")');
	assert.match(page.url(), /logx/);
	const d = await charted(page, KEY, (c) => c.ticks.includes('10') && c.ticks.includes('1000'));
	assert.equal(d.from, 1);
	await charted(page, KEY, (c) => c.lines[0]?.points > 100);
	await page.mouse.move(...await place(page, d, 0.25));
	await charted(page, KEY, (c) => Math.abs(c.at - 10) <= 1);
	await page.mouse.down();
	await page.mouse.move(...await place(page, d, 0.4));
	await page.mouse.move(...await place(page, d, 0.5));
	await page.mouse.up();
	await charted(page, KEY, (c) => Math.abs(c.from - 10) <= 1 && Math.abs(c.to - 100) <= 4);
	await page.reload();
	await charted(page, KEY, (c) => Math.abs(c.from - 10) <= 1 && c.ticks.includes('20'));
	await page.locator('.toolbar').getByText('Reset zoom').click();
	await page.mouse.move(5, 5);
	await charted(page, KEY, (c) => c.to === 10000 && c.at === null && c.lines[0]?.points > 100);
	await page.focus(`[data-chart="${KEY}"]`);
	await page.keyboard.press('End');
	await charted(page, KEY, (c) => c.at === 10000);
	await page.keyboard.press('Shift+ArrowLeft');
	const pixel = 10 ** (4 / d.box.width); // four decades
	await charted(page, KEY, (c) => c.to === 10000 && c.at < 6310 * pixel && c.at > 6310 / pixel);
	await page.click('button:has-text("Clock")');
	await until(() => page.url(), (u) => !u.includes('logx'));
});

test('a touch reads values and selects nothing', async (t) => {
	await run('touch', 'a', Array.from({ length: 100 }, (_, i) => i));
	await run('touch', 'b', Array.from({ length: 100 }, (_, i) => 100 - i));
	const page = await here.open(t, '?e=touch');
	const d = await charted(page, KEY, (c) => c.lines.length === 2);
	const [x, y] = await place(page, d, 0.5, 0.1);
	const point = (type, clientX) => page.dispatchEvent(`[data-chart="${KEY}"]`, type,
		{ pointerType: 'touch', pointerId: 7, button: 0, clientX, clientY: y, bubbles: true });
	await point('pointerdown', x - 60);
	await point('pointermove', x);
	await says(page, '.readings .where', /^step 5[01]$/);
	await point('pointerup', x);
	assert.ok(!/[?&]z=/.test(page.url()));
});

test('a chart is enlarged, requests the detail it can show, and is saved as a picture', async (t) => {
	await run('large', 'a', Array.from({ length: 9000 }, (_, i) => Math.sin(i / 100)));
	await run('large', 'b', Array.from({ length: 9000 }, (_, i) => Math.cos(i / 100)), 'val/loss');
	const page = await here.open(t, '?e=large');
	const small = await charted(page, KEY, (c) => c.lines[0]?.points > 100);
	await page.hover(`[data-chart="${KEY}"]`);
	await page.click(`button[aria-label="Enlarge ${KEY}"]`);
	await charted(page, KEY,
		(c) => c.box.width > 1.5 * small.box.width && c.lines[0].points > 1.4 * small.lines[0].points);
	await page.click(`button[aria-label="More of ${KEY}"]`);
	const [saved] = await Promise.all([page.waitForEvent('download', { timeout: 30000 }),
		page.click('[role=dialog] button:text-is("Save as PNG")')]);
	assert.equal(saved.suggestedFilename(), 'train-loss.png');
	assert.equal((await readFile(await saved.path())).subarray(1, 4).toString(), 'PNG');
	await page.keyboard.press('Escape');
	await charted(page, KEY, (c) => c.box.width === small.box.width);
});

test('a non-finite value is reported and keeps the run in the comparison', async (t) => {
	const once =
		await run('once', 'once', Array.from({ length: 100 }, (_, i) => (i === 49 ? Infinity : 2 - i / 100)));
	const nan =
		await run('once', 'to-the-end', Array.from({ length: 100 }, (_, i) => (i > 49 ? NaN : 2 - i / 100)));
	const both = await run('once', 'both',
		Array.from({ length: 100 }, (_, i) => (i > 59 ? NaN : i > 49 ? Infinity : 2 - i / 100)));
	const page = await here.open(t, '?e=once');
	await says(page, `[data-run="${once}"] .c-status`, /not finite at step 50/);
	await says(page, `[data-run="${both}"] .c-status`, /not finite from step 51/);
	await says(page, `[data-run="${nan}"] .c-status`, /NaN from step 51/);
	await says(page, '.facts', /2 diverged/);
	const d = await charted(page, KEY, (c) => c.lines.length === 3);
	assert.deepEqual(d.marks.filter((m) => m.kind === 'flag-nan').map((m) => m.text).sort(),
		['NaN from step 51', 'not finite at step 50', 'not finite from step 51'], 'the words of the table');
	assert.equal(await page.locator('.row.fallen').count(), 2);
	await page.mouse.move(...await place(page, d, 0.55));
	await says(page, `.readings:not([hidden]) [data-line="${both}"] b`, /^not finite$/);
});

test('what is outside the zoomed range is not drawn at its edge', async (t) => {
	const list = (of) => Array.from({ length: 100 }, (_, i) => of(i));
	await run('outside', 'never', list(() => NaN));
	await run('outside', 'ends', [1, 2, 3]);
	await run('outside', 'gap', list((i) => (i > 48 && i < 60 ? NaN : i)));
	const page = await here.open(t, '?e=outside');
	await page.click('.c-status button:has-text("at step 50")');
	const d = await charted(page, KEY, (c) => c.from > 40 && c.to < 60);
	assert.deepEqual(d.marks.filter((m) => /nan/.test(m.kind)).map((m) => m.x), [50, 50], JSON.stringify(d.marks));
	assert.deepEqual(d.names, [], 'one is named by its flag, the others have no point here');
});

test('parallel coordinates: select by the goal, and show only these runs in the charts', async (t) => {
	const make = async (lr, model, loss) => {
		const { id } = await here.ask('POST', 'runs',
			{ experiment: 'axes', name: model + lr, params: { lr: String(lr), model } });
		await here.ask('POST', `runs/${id}/metrics`,
			{ points: [{ key: KEY, step: 1, value: loss, wall_time: 1.8e9 }] });
		await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
		return id;
	};
	const best = await make(0.1, 'cnn', 0.1);
	const good = await make(0.01, 'cnn', 0.2);
	const worst = await make(0.001, 'mlp', 2);
	const page = await here.open(t, '?e=axes');
	await page.click('button:has-text("Params and goal")');
	const look = () => page.evaluate(() => document.querySelector('[data-parallel]')?.chart?.drawn() ?? null);
	const d = await until(look, (c) => c?.lines.length === 3);
	assert.deepEqual(d.axes.map((a) => a.title), ['model', 'lr (log)', 'train/loss (log)']);
	assert.deepEqual(d.axes[0].ticks, ['cnn', 'mlp']);
	const y = (id) => d.lines.find((l) => l.id === id).ys.at(-1);
	assert.ok(y(best) < y(good) && y(good) < y(worst), 'the best is at the top');
	await page.locator('[data-parallel]').scrollIntoViewIfNeeded();
	const el = await page.locator('[data-parallel]').boundingBox();
	const axis = d.axes[2];
	await page.mouse.move(el.x + axis.x, el.y + axis.top);
	await page.mouse.down();
	await page.mouse.move(el.x + axis.x, el.y + y(good) + 8);
	await page.mouse.up();
	await says(page, '.parallel .options', /2 runs within the brushes/);
	await until(look, (c) => c.lines.filter((l) => l.back).map((l) => l.id).join() === worst);
	await page.click('button:has-text("Show only these in the charts")');
	await charted(page, KEY, (c) => c.lines.length === 2);
	await page.click('.parallel button:has-text("Clear")');
	await page.mouse.move(0, 0); // otherwise a row under the pointer may take the highlight between two keys
	await page.focus('[data-parallel]');
	await page.keyboard.press('ArrowDown');
	await page.waitForSelector(`[data-run="${best}"].lit`, { timeout: 30000 });
	await page.keyboard.press('Enter');
	await says(page, 'h1', /cnn0.1/);
});

test('parallel coordinates: labels do not overlap lines, the last axis counts runs beyond it, a brush opens no run',
	async (t) => {
	const make = async (seed, loss) => {
		const { id } = await here.ask('POST', 'runs', { experiment: 'bundle', name: 'seed-' + seed,
			params: { lr: '0.05', model: 'cnn', seed: String(seed) } });
		await here.ask('POST', `runs/${id}/metrics`,
			{ points: [{ key: KEY, step: 1, value: loss, wall_time: 1.8e9 }] });
		await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
		return id;
	};
	for (let i = 1; i <= 10; i++) await make(i, 1 / i);
	const other = await here.ask('POST', 'runs',
		{ experiment: 'bundle', name: 'else', params: { lr: '0.4', model: 'mlp', seed: '1' } });
	const page = await here.open(t, '?e=bundle');
	await page.click('button:has-text("Params and goal")');
	const plot = page.locator('[data-parallel]');
	const look = () => page.evaluate(() => document.querySelector('[data-parallel]')?.chart?.drawn() ?? null);
	const d = await until(look, (c) => c?.lines.length === 11);
	await plot.evaluate((e) => e.scrollIntoView({ block: 'center' }));
	const el = await plot.boundingBox();
	const lr = d.axes.findIndex((a) => a.title.startsWith('lr'));
	const lines = d.lines.filter((l) => l.id !== other.id);
	const [first, last] = [lines[0], lines.at(-1)];

	const coloured = ([x, y]) => plot.evaluate((e, [left, top]) => {
		const g = e.querySelector('.chart-lines').getContext('2d');
		const { data } = g.getImageData(left, top - 3, Math.floor(g.measureText('0.05').width) - 4, 6);
		return Array.from({ length: data.length / 4 }, (_, i) => [...data.subarray(4 * i, 4 * i + 3)])
			.filter((c) => Math.max(...c) - Math.min(...c) > 60).length;
	}, [x, y]);
	const [x, y] = [d.axes[lr].x, Math.round(lines.reduce((a, l) => a + l.ys[lr], 0) / lines.length)];
	await until(() => coloured([x - 30, y]), (n) => n > 0, 'lines next to the axis');
	assert.equal(await coloured([x + 8, y]), 0, 'pixels of lines between the digits of 0.05');

	for (const l of [first, last]) {
		await page.mouse.move(el.x + d.axes.at(-1).x + 30, el.y + l.ys.at(-1));
		await until(() => plot.evaluate((e) => e.dataset.lit), (id) => id === l.id);
	}
	const axis = d.axes.at(-1);
	await page.mouse.move(el.x + axis.x - 2, el.y + last.ys.at(-1));
	await until(() => plot.evaluate((e) => e.dataset.lit), (id) => id !== '');
	await page.mouse.down();
	await page.mouse.move(el.x + axis.x - 40, el.y + last.ys.at(-1) + 60);
	await page.mouse.up();
	await says(page, '.parallel .options', /within the brushes/);
	assert.ok(!/[?&]r=/.test(page.url()), page.url());
});

test('a range selected beyond the end of the lines opens no run', async (t) => {
	for (const name of ['a', 'b']) await run('beyond', name, Array.from({ length: 100 }, (_, i) => i));
	const page = await here.open(t, '?e=beyond');
	const d = await charted(page, KEY, (c) => c.lines.length === 2 && c.names.length === 2);
	await page.mouse.move(...await place(page, d, 0.5));
	await until(() => page.getAttribute(`[data-chart="${KEY}"]`, 'data-lit'), (id) => id !== '');
	await page.mouse.down();
	await page.mouse.move(...await place(page, d, 0.8, 0.2));
	await page.mouse.move(...await place(page, d, 1.1, 0.2));
	await page.mouse.up();
	await charted(page, KEY, (c) => c.from > 40 && c.to === 100);
	assert.ok(!/[?&]r=/.test(page.url()), page.url());
});

/** Colours of a screenshot in squares around places, as [r, g, b] lists. */
async function colours(page, places) {
	const shot = (await page.screenshot()).toString('base64');
	return page.evaluate(async ([png, list]) => {
		const picture = await createImageBitmap(new Blob([Uint8Array.from(atob(png), (c) => c.charCodeAt(0))]));
		const g = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
		g.drawImage(picture, 0, 0);
		return list.map(([x, y]) => {
			const { data } = g.getImageData(x - 4, y - 3, 6, 6);
			return Array.from({ length: 36 }, (_, i) => [...data.slice(4 * i, 4 * i + 3)]);
		});
	}, [shot, places]);
}

const light = (rgb) => rgb.map((v) => (v <= 10 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4))
	.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);

for (const colorScheme of ['light', 'dark'])
	test(`among 20 lines one is highlighted and the others have a contrast of 3: ${colorScheme}`, async (t) => {
		const many = 'many ' + colorScheme;
		const ids = [];
		for (let k = 0; k < 20; k++) ids.push(await run(many, 'r' + k, Array.from({ length: 12 }, () => k)));
		const page = await here.open(t);
		await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
		const all = ids.map((id) => id.slice(0, 8)).join('.');
		await page.goto(`${here.server.url}?e=${encodeURIComponent(many)}&o=${all}`);
		const d = await charted(page, KEY, (c) => c.lines.length === 20);
		const plot = page.locator(`[data-chart="${KEY}"]`);
		const el = await plot.boundingBox();
		const end = el.x + d.box.left + d.box.width;
		const back = (await colours(page, [[end - 12, el.y + d.box.top + 3]]))[0][0];
		const ends = () => colours(page, d.lines.map((l) =>
			[Math.round(end), Math.round(el.y + d.box.top + l.topPixel)]));
		const hue = (list) => Math.max(...list.map((c) => Math.max(...c) - Math.min(...c)));
		const before = await ends();
		await page.hover('.grid .body .row[aria-rowindex="3"]');
		const lit = await until(() => plot.evaluate((e) => e.dataset.lit), (id) => id !== '');
		await page.waitForTimeout(200);
		for (const [i, list] of (await ends()).entries()) {
			const strongest = list.reduce((a, b) => (contrast(b, back) > contrast(a, back) ? b : a));
			assert.ok(contrast(strongest, back) >= 3, `line ${i}: ${strongest} on ${back}`);
			const left = hue(list) / hue(before[i]);
			assert.ok(d.lines[i].id === lit ? left > 0.9 : left < 0.7, `line ${i}: ${left} of its hue`);
		}
	});
