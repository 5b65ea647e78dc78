// SPDX-License-Identifier: Apache-2.0
// Charts of several runs: a highlighted dense line hides neither the others nor the marks, single values are bars, two
// metrics of a panel differ by dash with each run named once, and parallel axes tell good from bad.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { charted, drawn, says, until } from '../browser.mjs';
import { stage } from '../stage.mjs';

const here = stage();
const KEY = 'train/loss';
const RUNS = 26;

async function run(n) {
	const { id } = await here.ask('POST', 'runs', { experiment: 'lines', name: 'run-' + n,
		params: { batch_size: String(32 << n % 4), lr: String(n + 1) } });
	const dense = n > 1 ? [] : Array.from({ length: 8000 }, (_, i) =>
		({ key: KEY, step: i, wall_time: 1.8e9 + i,
			value: (i * 7919 % 100) / 100 + 2 * n + (i === 4000 && n ? 50 : 0) }));
	const two = n > 1 ? [] : [0, 1, 2, 3].flatMap((i) =>
		['a/train', 'a/val'].map((key) => ({ key, step: i, value: i + n, wall_time: 1.8e9 + i })));
	await here.ask('POST', `runs/${id}/metrics`,
		{ points: [{ key: 'test/acc', step: 200, value: 0.5 + n / 100, wall_time: 1.8e9 }, ...two] });
	for (let i = 0; i < dense.length; i += 1000)
		await here.ask('POST', `runs/${id}/metrics`, { points: dense.slice(i, i + 1000) });
	await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	return id;
}
let filled = null;
/** Before the first test, once the stage is up. */
const fill = () => (filled ??= (async () => {
	const ids = [];
	for (let n = 0; n < RUNS; n++) ids.push(await run(n));
	return ids;
})());

/** Pixels of a colour in the layer of lines and the layer above. */
const inked = (page, colour) => page.evaluate(([key, hex]) => {
	const want = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
	return ['.chart-lines', '.chart-over'].map((layer) => {
		const c = document.querySelector(`[data-chart="${key}"] ${layer}`);
		const { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height);
		let n = 0;
		for (let i = 0; i < data.length; i += 4)
			n += Number(data[i + 3] > 200 && want.every((v, k) => Math.abs(data[i + k] - v) < 12));
		return n;
	});
}, [KEY, colour]);

const cases = [
	['13: a highlighted dense line leaves the other run and the marks to be seen',
		'?e=lines&o=*&s=p:lr&y=~4~train/loss', async (page, ids) => {
		const d = await charted(page, KEY, (c) => c.lines.length === 2);
		assert.ok(d.marks.some((m) => m.id === ids[1] && m.kind === 'arrow-top'), JSON.stringify(d.marks));
		await says(page, `figure:has([data-chart="${KEY}"]) figcaption`, /means, raw values pale/);
		await page.hover(`[data-run="${ids[0]}"] .c-status`);
		await until(() => page.$eval(`[data-chart="${KEY}"]`, (e) => e.dataset.lit), (l) => l === ids[0]);
		const other = d.lines.find((l) => l.id === ids[1]).colour;
		assert.ok((await inked(page, other))[0] > 300, 'the mean of the other run');
		assert.ok((await inked(page, other))[1] > 10, 'its arrow, above the highlighted line');
	}],
	['22: one value a run is a bar', '?e=lines&o=*', async (page) => {
		const bars = () => page.$$eval('figure:has([data-chart="test/acc"]) .runbars li',
			(l) => l.map((b) => [b.textContent, b.querySelector('i').getBoundingClientRect().width]));
		const list = await until(bars, (l) => l.length === RUNS);
		assert.equal(list[0][0], 'run-250.75');
		assert.ok(Math.abs(list.at(-1)[1] / list[0][1] - 0.5 / 0.75) < 0.01, String(list));
	}],
	['31: two metrics of a panel differ by dash, and each run is named once', '?e=lines&o=*&pn=a/train,a/val',
		async (page) => {
		const d = await charted(page, 'panel a/train,a/val', (c) => c.lines.length === 4);
		assert.equal(new Set(d.lines.map((l) => l.dash.join())).size, 2);
		assert.deepEqual([...d.names].sort(), ['run-0', 'run-1']);
		assert.equal(await page.locator('.panel figcaption .key').count(), 2);
	}],
	['21: doubled values have a log axis among parallel ones', '?e=lines&o=*&par', async (page) => {
		await says(page, '.parallel', /26 lines/);
		const axes = () => page.evaluate(() => document.querySelector('[data-parallel]')?.chart?.drawn()?.axes
			.map((a) => a.title));
		await until(axes, (l) => l?.includes('batch size (log)'));
		const ticks = (name) => page.$eval('[data-parallel]', (e, t) => e.chart.drawn().axes.find((a) =>
			a.title === t)?.ticks, name);
		const logs = await ticks('batch size (log)');
		await page.click('.parallel button:text-is("Scales")');
		await page.selectOption('.parallel label:has-text("batch size") select', 'quantile');
		await until(axes, (l) => l?.includes('batch size (quantile)'));
		assert.deepEqual(await ticks('batch size (quantile)'), logs, 'the same values, elsewhere');
		await page.selectOption('.parallel label:has-text("batch size") select', 'linear');
		await until(axes, (l) => l?.includes('batch size'));
		await until(() => page.url(), (u) => u.includes('axs=linear.p:batch_size'));
		await page.reload();
		await until(axes, (l) => l?.includes('batch size'), 'the address has it');
	}],
	['21: a scatter opens with the param that moves the goal', '?e=lines&o=*&sc=&sc=&sc=&g=%2Btest/acc',
		async (page) => {
		await says(page, '.scatter .said', /^26 points\. Higher lr goes with higher acc/);
		assert.match(await page.textContent('.scatter .options'), /lr/);
	}],
];

for (const [name, address, look] of cases)
	test(name, async (t) => {
		const ids = await fill();
		const page = await here.open(t, address);
		await drawn(page);
		await look(page, ids);
	});
