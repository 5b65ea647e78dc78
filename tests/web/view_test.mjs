// What the view is made of and how it holds: axes, zoom, the first evaluation of a live run, what is found, what is
// chosen and saved, what a reload keeps.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { charted, says, until } from './browser.mjs';
import { stage } from './stage.mjs';

const WAIT = { timeout: 30000 };
const DAY_S = 86400;
const here = stage();

/** A finished run with points {key: [[step, value, seconds], …]}; live: it goes on. */
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

test('a zoom over steps leaves charts that count epochs whole; these zoom by themselves', async (t) => {
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
	await page.click('[role=group][aria-label="x axis"] button:has-text("clock")');
	const c = await charted(page, 'train/loss', (x) => x.from > 1e9);
	assert.ok(c.from >= start && c.to <= start + 2 * DAY_S + 1, `${c.from} ${c.to}`);
	assert.ok(c.ticks.includes('Mar 2') || c.ticks.some((x) => /^\w{3} \d+$/.test(x)), c.ticks.join());
});
