// SPDX-License-Identifier: Apache-2.0
// The speed section of a run's page: verdict, evidence and next action as the server returns them; the step at which
// overfitting starts; what a change gained, as a sentence and as a picture; the link to its trace. A run without timing
// series has no such section.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { clean } from './browser.mjs';
import { stage } from './stage.mjs';

const WAIT = { timeout: 30000 };
const STEPS = 60;
const BASE_S = 1.795e9;
const TRACED = '--model resnet20 --synthetic --classes 10 -b 4 --threads 1 --nproc-per-node 2 --max-steps 6 '
	+ '--trace-steps 4:5 --experiment speed --run-name traced --report-to none --save-total-limit 0';
const here = stage((logdir) => execFileSync(path.join(process.env.builddir ?? 'build', 'dptrain'),
	[...TRACED.split(' '), '--runs-dir', logdir], { stdio: 'ignore' }));

/** Records a run of STEPS steps; phases gives the seconds of each phase per step, as series of a prefix. */
async function run(name, phases, params = {}, prefix = 'phase/') {
	const { id } = await here.ask('POST', 'runs',
		{ experiment: 'speed', name, params: { batch_size: '8', ...params } });
	const whole = Object.values(phases).reduce((a, b) => a + b, 0);
	const points = [];
	for (let step = 1; step <= STEPS; step++) {
		const wall_time = BASE_S + step * whole;
		const odd = 1 + 0.01 * (step * 7 % 5 - 2);
		for (const [key, value] of Object.entries({ ...phases, step: whole }))
			points.push({ key: prefix + key, step, value: value * odd, wall_time, rank: 0 });
		points.push({ key: 'train/loss', step, value: 1 / step, wall_time });
	}
	await here.ask('POST', `runs/${id}/metrics`, { points });
	await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	return id;
}

const COMPUTE = { forward: 0.03, backward: 0.06, optimizer: 0.01 };

test('a run that waits for its loader gets a verdict with evidence and an action', async (t) => {
	const id = await run('waits', { ...COMPUTE, data_wait: 0.1 }, { trace_steps: '10:13' });
	const d = await here.ask('GET', `runs/${id}/diagnosis`);
	const page = await here.open(t, '?e=speed&r=' + id);
	await page.waitForSelector('.speed h2:has-text("Speed: Waiting for data")', WAIT);
	const said = await page.textContent('.speed');
	const [first] = d.leaves;
	for (const words of [first.sentence, first.evidence, first.usual, first.action, d.bound])
		assert.ok(said.includes(words), words);
	assert.match(d.sentence, /^Waiting for data: 50 % of the time \(\d+-\d+\); without it up to 2\.0\dx as fast$/);
	assert.equal(d.sentence, d.leaves[0].sentence);
	assert.equal(Number(await page.getAttribute('.speed meter', 'value')), d.leaves[0].share);
	assert.equal(await page.getAttribute('.speed a[download]', 'href'), `api/v1/runs/${id}/trace`);
});

test('the start of overfitting is shown, with and without a verdict on speed', async (t) => {
	const { id } = await here.ask('POST', 'runs', { experiment: 'speed', name: 'by-heart' });
	const points = [];
	for (let k = 1; k <= 20; k++) {
		points.push({ key: 'train/loss', step: 50 * k, value: 2 / k, wall_time: BASE_S + k });
		points.push({ key: 'val/loss', step: 50 * k, value: 1 + Math.abs(k - 8) / 10, wall_time: BASE_S + k });
	}
	await here.ask('POST', `runs/${id}/metrics`, { points });
	const d = await here.ask('GET', `runs/${id}/diagnosis`);
	const page = await here.open(t, '?e=speed&r=' + id);
	await page.waitForSelector('.learning', WAIT);
	assert.match(d.overfitting.sentence, /^overfitting since step 400: /);
	assert.equal(await page.textContent('.learning p'), d.overfitting.sentence);
	assert.equal(await page.locator('.speed').count(), 0);
});

test('a healthy run shows what bounds it, and is compared with another', async (t) => {
	const slow = await run('slow', { ...COMPUTE, data_wait: 0.03 });
	const fast = await run('fast', COMPUTE);
	const page = await here.open(t, '?e=speed&r=' + fast);
	await page.waitForSelector('.speed:has-text("healthy: no bottleneck whose removal would gain 5 %")', WAIT);
	assert.match(await page.textContent('.speed'), /Bound by compute: .*Based on \d+ steps/);
	await page.selectOption('.speed select', slow);
	await page.waitForSelector('.speed .told', WAIT);
	const w = await here.ask('GET', `compare/why?run=${slow}&run=${fast}`);
	assert.equal(await page.textContent('.speed .told'), w.pairs[0].sentence);
	const img = page.locator('.speed img');
	await img.evaluate((i) => i.decode());
	assert.ok(await img.evaluate((i) => i.naturalWidth) > 100);
	assert.equal(await img.getAttribute('alt'), w.pairs[0].sentence);
});

test('a run without steps has no speed section; its page follows the run without a chart', async (t) => {
	const { id } = await here.ask('POST', 'runs', { experiment: 'speed', name: 'empty' });
	const page = await here.open(t, '?e=speed&r=' + id);
	await page.waitForSelector('.runpage h1', WAIT);
	await page.waitForSelector('.app[data-ready="true"]', WAIT);
	await here.ask('PATCH', 'runs/' + id, { notes: 'told later' });
	await page.waitForSelector('.markdown >> text=told later', WAIT);
	assert.equal(await page.locator('.speed').count(), 0);
});

test('the speed gained by each change is shown for several runs', async (t) => {
	const slow = await run('one worker', { ...COMPUTE, data_wait: 0.1 }, { workers: '1' });
	const half = await run('four workers', { ...COMPUTE, data_wait: 0.03 }, { workers: '4' });
	const best = await run('bf16, many', { forward: 0.02, backward: 0.03, optimizer: 0.01 },
		{ workers: '8', precision: 'bf16' });
	const ids = [slow, half, best];
	const w = await here.ask('GET', 'compare/why?' + ids.map((id) => 'run=' + id).join('&'));
	const page = await here.open(t, `?e=speed&side&o=${ids.map((id) => id.slice(0, 8)).join('.')}`);
	await page.waitForSelector('.bought tbody tr', WAIT);
	const rows = await page.$$eval('.bought tbody tr', (all) =>
		all.map((r) => [...r.cells].map((c) => c.textContent)));
	assert.deepEqual(rows.map((r) => r[0]), ['one worker', 'four workers', 'bf16, many']);
	assert.match(rows[1][1], /workers 1 → 4/);
	assert.match(rows[2][1], /2 params changed at once/);
	assert.ok(rows[1][3].startsWith(w.pairs[0].factor.toFixed(2) + '× faster'), rows[1][3]);
	assert.equal(rows[2][4], w.pairs[1].product.toFixed(2) + '×');
	assert.match(rows[1][6], /^data wait −/);
	assert.ok(Math.abs(w.pairs[0].factor * w.pairs[1].factor - w.pairs[1].product) < 1e-9);
	const widths = await page.$$eval('.bought .bar .phases', (all) => all.map((b) =>
		[...b.children].reduce((sum, c) => sum + parseFloat(c.style.width), 0)));
	assert.ok(widths[0] > 99.9 && widths[1] < 70 && widths[2] < widths[1], String(widths));
	const said = await page.textContent('.bought');
	for (const p of w.pairs) assert.ok(said.includes(p.sentence), p.sentence);
	const address = await page.getAttribute('.bought a:has-text("CSV")', 'href');
	const csv = await (await fetch(here.server.url + address)).text();
	assert.equal(csv.trim().split('\n').length, 3);
	assert.ok(!said.includes('other: '), 'all time has a name');
});

/** Opens the runs side by side and returns the cells of the table of speeds. */
async function speeds(page, address) {
	await page.goto(here.server.url + address);
	await page.waitForSelector('.bought tbody tr', WAIT);
	return page.$$eval('.bought tbody tr', (all) => all.map((r) => [...r.cells].map((c) => c.textContent)));
}

test('the goal of the page is in every row of the speeds, also one that is no known accuracy or loss', async (t) => {
	const ids = [await run('first', COMPUTE, { lr: '1' }), await run('second', COMPUTE, { lr: '2' })];
	for (const [i, id] of ids.entries())
		await here.ask('POST', `runs/${id}/metrics`, { points: [1, 2].map((step) =>
			({ key: 'd/gain', step, value: i + step / 4, wall_time: BASE_S + step })) });
	const both = '&o=' + ids.map((id) => id.slice(0, 8)).join('.');
	const page = await here.open(t);
	const goals = async (address) => (await speeds(page, '?e=speed&side' + both + address)).map((r) => r[7]);
	assert.deepEqual(await goals('&g=%2Bd/gain'), ['0.5', '1.5']);
	assert.deepEqual(await goals('&g=-train/loss'), ['0.01667', '0.01667']);
});

test('repeats differ by their seed, and equal times are unchanged', async (t) => {
	const ids = [];
	for (const seed of '12') ids.push(await run('seed ' + seed, COMPUTE, { seed, lr: '9' }));
	const page = await here.open(t);
	const rows = await speeds(page, '?e=speed&side&o=' + ids.map((id) => id.slice(0, 8)).join('.'));
	assert.equal(rows[1][1], 'seed 1 → 2');
	assert.match(rows[1][3], /^unchanged/);
	assert.match(await page.textContent('.bought > p.dim'),
		/^Left out as warm-up: the first step, .* run\. Download as CSV/);
});

test('the speeds of a script with its own names of phases say what other contains', async (t) => {
	const ids = [];
	for (const own of '12') ids.push(await run('script ' + own, COMPUTE, { own }, 'time/'));
	const page = await here.open(t);
	await speeds(page, '?e=speed&side&o=' + ids.map((id) => id.slice(0, 8)).join('.'));
	assert.equal(await page.textContent('.bought .legend'), 'other');
	assert.match(await page.textContent('.bought .legend + p'),
		new RegExp('^other: .* phase/NAME, where NAME is one of data_wait, h2d, .*, copy_exposed\\. '
			+ '.* once per epoch, .* time/forward'));
});

test('a comparison counts runs once one is chosen', async (t) => {
	const id = await run('first', COMPUTE);
	await run('second', COMPUTE, { lr: '3' });
	const page = await here.open(t, `?e=speed&r=${id}&t=compare`);
	const button = page.locator('.comparewith button.primary');
	assert.equal(await button.textContent(WAIT), 'Compare');
	await page.click('.comparewith input[type=checkbox]');
	assert.equal(await button.textContent(), 'Compare 2 runs');
});

test('a phone scrolls the table of speeds alone, next to whole names; the warning wraps', async (t) => {
	const ids = [await run('plain', COMPUTE), await run('changed', COMPUTE,
		{ lr: '2', precision: 'bf16', workers: '4', width: '8' })];
	const page = await here.open(t);
	for (const width of [1440, 390]) {
		await page.setViewportSize({ width, height: 844 });
		await speeds(page, '?e=speed&side&o=' + ids.map((id) => id.slice(0, 8)).join('.'));
		const cut = await page.$eval('.bought div.warn', (w) => [w.scrollWidth - w.clientWidth,
			w.parentElement.scrollWidth - w.parentElement.clientWidth]);
		assert.deepEqual(cut, [0, 0], `cut at ${width} px`);
	}
	const [box, head, scrolled] = await page.$eval('.bought .scroll', (e) => {
		e.scrollLeft = 150;
		const left = (o) => Math.round(o.getBoundingClientRect().left);
		return [left(e), left(e.querySelector('tbody th')), e.scrollLeft];
	});
	assert.equal(scrolled, 150);
	assert.equal(head, box, 'no column shows at the left of the names');
	assert.equal(await page.$eval('.bought', (e) => e.scrollWidth - e.clientWidth), 0);
	assert.match(await page.$eval('.bought .scroll', (e) => getComputedStyle(e).backgroundImage), /gradient/);
	await clean(page);
});

test('the timeline of traced steps is read by keys', async (t) => {
	const { runs } = await here.ask('GET', 'runs?experiment=speed');
	const traced = runs.find((r) => r.name === 'traced');
	const { traceEvents } = await here.ask('GET', `runs/${traced.id}/trace`);
	const spans = traceEvents.filter((e) => e.ph === 'X');
	const end = Math.max(...spans.map((e) => Math.round((e.ts + e.dur) * 1000) / 1000));
	const page = await here.open(t, `?e=speed&r=${traced.id}&t=timeline`);
	await page.click('.traced button', WAIT);
	const view = page.locator('.timeline');
	await view.waitFor(WAIT);
	const look = async () => [Number(await view.getAttribute('data-from')),
		Number(await view.getAttribute('data-to'))];
	assert.deepEqual(await look(), [0, end]);
	const drawn = await view.evaluate((el) => el.chart.data);
	assert.equal(drawn.bands.reduce((n, b) => n + b.bars.length, 0), spans.length, 'every slice');
	assert.deepEqual(drawn.bands.filter((b) => b.name.endsWith(' step')).map((b) => b.name),
		['rank 0 step', 'rank 1 step']);
	assert.equal(drawn.critical.length, 2);
	const pixels = await view.evaluate((el) => {
		const c = el.querySelector('canvas');
		const all = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
		const points = Array.from({ length: all.length / 4 }, (_, i) => all.slice(4 * i, 4 * i + 4).join());
		return new Set(points).size;
	});
	assert.ok(pixels > 5, `${pixels} colours drawn`);
	await view.focus();
	await page.keyboard.press('+');
	const [from, to] = await look();
	assert.ok(Math.abs(to - from - 0.7 * end) < 1e-3 && from > 0, `${from} ${to}`);
	await page.keyboard.press('ArrowRight');
	assert.ok((await look())[0] > from);
	await page.keyboard.press('Home');
	assert.deepEqual(await look(), [0, end]);
	const status = page.locator('.traced [role=status]');
	assert.match(await status.textContent(), /^step 4: .*, step 4, rank 0, step$/);
	await page.keyboard.press('.');
	assert.match(await status.textContent(), /^(data_wait|other): .*, rank 0, step$/);
	await page.keyboard.press('ArrowDown');
	assert.doesNotMatch(await status.textContent(), /rank 0, step$/);
	assert.match(await page.textContent('.critical'), /step 4: .* the others wait for rank [01]/);
});
