// SPDX-License-Identifier: Apache-2.0
// The table of runs: how a run did and how it ended come first, further params are in the chooser, nothing is cut
// without an edge, a column has one notation, "Show all" means all, and Back undoes a change of the view.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { charted, clean, drawn, says, until } from '../browser.mjs';
import { stage } from '../stage.mjs';

const here = stage();
const KEY = 'val/top1';
const GOALS = [0.99912, 0.99934, 0.99915, 0.9994];

async function run(n) {
	const params = { lr: String(0.1 / n), weight_decay: ['8.95e-6', '0.00001692', '0.0007241', '0'][n % 4],
		long: 'x'.repeat(400) + n % 2,
		...Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`p${i}`, String(n + i)])) };
	const { id } = await here.ask('POST', 'runs', { experiment: 'wide', name: 'run-' + n, params });
	await here.ask('POST', `runs/${id}/metrics`, { points: Array.from({ length: 40 }, (_, i) =>
		({ key: KEY, step: i, value: (GOALS[n] ?? 0.7) - 1 / (i + 2) + 1 / 41, wall_time: 1.8e9 + i })) });
	await here.ask('PATCH', 'runs/' + id, { status: n % 5 ? 'finished' : 'failed' });
}
let filled = null;
/** Before the first test, once the stage is up. */
const fill = () => (filled ??= (async () => {
	for (let n = 0; n < 18; n++) await run(n);
})());

const column = (page, name) => page.evaluate((of) => {
	const at = [...document.querySelectorAll('.grid .head .cell')].find((c) => c.title.includes(of)).ariaColIndex;
	return [...document.querySelectorAll(`.grid .body .cell[aria-colindex="${at}"]`)].map((c) => c.textContent);
}, name);
const lines = (page, n) => charted(page, KEY, (d) => d.lines.length === n);

const cases = [
	['9: columns below the names have an edge', async (page) => {
		const shadow = () => page.$eval('.grid .body .cell.first', (c) => getComputedStyle(c).boxShadow);
		assert.equal(await shadow(), 'none');
		await page.$eval('.grid', (g) => g.scrollBy(60, 0));
		await until(shadow, (s) => s !== 'none');
	}],
	['10: goal, difference and status are next to the name; more params are in the chooser', async (page) => {
		const titles = await page.$$eval('.grid .head .cell .lines', (l) => l.map((c) => c.textContent));
		assert.match(titles.slice(0, 4).join(' '), /^Run top1best Δpoints Status$/);
		assert.equal(titles.filter((c) => /^(lr|weightdecay|long|p\d)$/.test(c)).length, 8);
		await page.click('.facts button:text-is("4 more params")');
		await page.waitForSelector('.picker[aria-label=Columns]');
	}],
	['11: all are shown, later ones too', async (page) => {
		await lines(page, 10);
		await page.click('.facts button:text-is("Show all")');
		await lines(page, 18);
		assert.match(page.url(), /[?&]o=(\*|%2A)(&|$)/);
		await run(18);
		await lines(page, 19);
	}],
	['24: a column has one notation, and the best values differ as they are written', async (page) => {
		const decay = await column(page, 'weight_decay');
		assert.ok(decay.every((v) => v === '0' || /^\d(\.\d+)?e-\d$/.test(v)), String(decay));
		const best = (await column(page, KEY)).slice(0, 3);
		assert.equal(new Set(best).size, 3, String(best));
		const delta = (await column(page, 'Difference')).filter((v) => v !== 'best');
		assert.equal(new Set(delta.map((v) => v.split('.')[1].length)).size, 1, String(delta));
	}],
	['27: a long value widens nothing', async (page) => {
		await page.selectOption('select[aria-label="Colour by"]', 'long');
		await says(page, '.looks', /xxx…/);
		await clean(page);
	}],
	['26: Back undoes scale, axis and filter, one by one', async (page) => {
		await lines(page, 10);
		const first = page.url();
		await page.focus(`[data-chart="${KEY}"]`);
		const acts = [() => page.click('button:text-is("Log y")'), () => page.click('button:text-is("Time")'),
			() => page.fill('input[aria-label="Filter runs"]', 'run-1')];
		for (const act of acts) {
			const was = page.url();
			await act();
			await until(() => page.url(), (u) => u !== was);
		}
		await until(() => page.locator('.grid .body .row').count(), (n) => n < 13);
		await page.goBack();
		await until(() => page.inputValue('input[aria-label="Filter runs"]'), (v) => v === '');
		await page.goBack();
		await page.waitForSelector('button[aria-pressed=true]:text-is("Step")');
		await page.goBack();
		await until(() => page.url(), (u) => u === first);
		await lines(page, 10);
	}],
];

for (const [name, look] of cases)
	test(name, async (t) => {
		await fill();
		const page = await here.open(t, '?e=wide');
		await drawn(page);
		await look(page);
	});
