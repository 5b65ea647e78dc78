// What the page of a run says of its speed: verdict, evidence and next action as the server has them; what a change
// bought, in a sentence and as a picture; the way to its trace. A run that tells nothing of its time has no such box.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stage } from './stage.mjs';

const WAIT = { timeout: 30000 };
const STEPS = 60;
const BASE_S = 1.795e9;
const here = stage();

/** A run of STEPS steps whose phases take so many seconds each. */
async function run(name, phases, params = {}) {
	const { id } = await here.ask('POST', 'runs',
		{ experiment: 'speed', name, params: { batch_size: '8', ...params } });
	const whole = Object.values(phases).reduce((a, b) => a + b, 0);
	const points = [];
	for (let step = 1; step <= STEPS; step++) {
		const wall_time = BASE_S + step * whole;
		const odd = 1 + 0.01 * (step * 7 % 5 - 2);
		for (const [key, value] of Object.entries({ ...phases, step: whole }))
			points.push({ key: 'phase/' + key, step, value: value * odd, wall_time, rank: 0 });
		points.push({ key: 'train/loss', step, value: 1 / step, wall_time });
	}
	await here.ask('POST', `runs/${id}/metrics`, { points });
	await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	return id;
}

const COMPUTE = { forward: 0.03, backward: 0.06, optimizer: 0.01 };

test('a run that waits is told so, with evidence and action', async (t) => {
	const id = await run('waits', { ...COMPUTE, data_wait: 0.1 }, { trace_steps: '10:13' });
	const d = await here.ask('GET', `runs/${id}/diagnosis`);
	const page = await here.open(t, '?e=speed&r=' + id);
	await page.waitForSelector('.speed h2:has-text("Speed: loader")', WAIT);
	const said = await page.textContent('.speed');
	for (const words of [d.leaves[0].evidence, d.leaves[0].usual, d.leaves[0].action, d.bound])
		assert.ok(said.includes(words), words);
	assert.match(said, /50 \(\d+–\d+\) % of the time; without it up to 2\.0\d× as fast/);
	assert.equal(Number(await page.getAttribute('.speed meter', 'value')), d.leaves[0].share);
	assert.equal(await page.getAttribute('.speed a[download]', 'href'), `api/v1/runs/${id}/trace`);
});

test('a healthy run says what bounds it, and is compared with another', async (t) => {
	const slow = await run('slow', { ...COMPUTE, data_wait: 0.03 });
	const fast = await run('fast', COMPUTE);
	const page = await here.open(t, '?e=speed&r=' + fast);
	await page.waitForSelector('.speed:has-text("Healthy: nothing")', WAIT);
	assert.match(await page.textContent('.speed'), /Bound by compute: .*Judged by \d+ steps/);
	await page.selectOption('.speed select', slow);
	await page.waitForSelector('.speed .told', WAIT);
	const w = await here.ask('GET', `compare/why?run=${slow}&run=${fast}`);
	assert.equal(await page.textContent('.speed .told'), w.pairs[0].sentence);
	const img = page.locator('.speed img');
	await img.evaluate((i) => i.decode());
	assert.ok(await img.evaluate((i) => i.naturalWidth) > 100);
	assert.equal(await img.getAttribute('alt'), w.pairs[0].sentence);
});

test('a run without steps has no such box', async (t) => {
	const { id } = await here.ask('POST', 'runs', { experiment: 'speed', name: 'empty' });
	const page = await here.open(t, '?e=speed&r=' + id);
	await page.waitForSelector('.runpage h1', WAIT);
	await page.waitForLoadState('networkidle');
	assert.equal(await page.locator('.speed').count(), 0);
});
