// SPDX-License-Identifier: Apache-2.0
// Runs of several experiments in one table (?e=a&e=b): chosen in the header, told apart by a column, grouped, live.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { charted, drawn, says, until } from '../browser.mjs';
import { stage } from '../stage.mjs';

const here = stage();
const KEY = 'train/loss';
const ROWS = '.grid .body .row';
let made = null;

async function run(experiment, name, value, status = 'finished') {
	const { id } = await here.ask('POST', 'runs', { experiment, name, params: { lr: String(value) } });
	await here.ask('POST', `runs/${id}/metrics`, { points: Array.from({ length: 20 },
		(_, i) => ({ key: KEY, step: i, value: value / (i + 1), wall_time: 1.8e9 + i })) });
	if (status) await here.ask('PATCH', 'runs/' + id, { status });
	return id;
}

/** Experiments a/one of 3 runs, b&two of 2 and c of 1. */
async function open(t, address) {
	made ??= (async () => {
		for (const n of [1, 2, 3]) await run('a/one', 'a' + n, n);
		for (const n of [4, 5]) await run('b&two', 'b' + n, n);
		await run('c', 'c6', 6);
	})();
	await made;
	const page = await here.open(t, address);
	await drawn(page);
	return page;
}

/** The first cells of the rows, sorted. */
const listed = (page) => page.$$eval(ROWS + ' [role=rowheader] a', (l) => l.map((a) => a.textContent).sort().join());
const lists = (page, names) => until(() => listed(page), (n) => n === names, names);

test('the table and the charts have the runs of both, in any order of rows', async (t) => {
	const page = await open(t, '?e=a/one&e=b%26two');
	await lists(page, 'a1,a2,a3,b4,b5');
	await charted(page, KEY, (d) => d.lines.length === 5);
	assert.equal(await page.title(), 'a/one + b&two · dptrack');
	assert.equal(await page.locator('.grid [role=columnheader]:has-text("Experiment")').count(), 1);
	assert.equal(await page.locator(ROWS + ':has-text("b&two")').count(), 2);
	await page.fill('.head .filter input', "experiment = 'b&two'");
	await lists(page, 'b4,b5');
	await page.reload();
	await lists(page, 'b4,b5');
});

test('experiments are added and left out in the header; Back undoes it', async (t) => {
	const page = await open(t, '?e=a/one');
	assert.equal(await page.locator('.grid [role=columnheader]:has-text("Experiment")').count(), 0);
	await lists(page, 'a1,a2,a3');
	await page.selectOption('select[aria-label="Add an experiment"]', 'c');
	await lists(page, 'a1,a2,a3,c6');
	await page.selectOption('select[aria-label="Add an experiment"]', 'b&two');
	await lists(page, 'a1,a2,a3,b4,b5,c6');
	await page.click('.head button.also:has-text("c")');
	await lists(page, 'a1,a2,a3,b4,b5');
	assert.equal(new URL(page.url()).search, '?e=a/one&e=b%26two');
	await page.goBack();
	await lists(page, 'a1,a2,a3,b4,b5,c6');
	await page.goBack();
	await page.goBack();
	await lists(page, 'a1,a2,a3');
	await page.goForward();
	await lists(page, 'a1,a2,a3,c6');
});

test('a group for each experiment: its mean in the table and its line in the chart', async (t) => {
	const page = await open(t, '?e=a/one&e=b%26two&by=e:experiment');
	await says(page, '.grid [data-group*="a/one"]', /3 finished/);
	await says(page, '.grid [data-group*="b&two"]', /2 finished/);
	await charted(page, KEY, (d) => d.lines.map((l) => l.id).sort().join()
		=== 'group:experiment a/one,group:experiment b&two');
});

test("a run's page and the way back keep both; what is written meanwhile appears if it is theirs", async (t) => {
	const page = await open(t, '?e=a/one&e=b%26two');
	await lists(page, 'a1,a2,a3,b4,b5');
	await page.click(ROWS + ' a:has-text("b5")');
	await says(page, 'h1', /b5/);
	await page.waitForTimeout(300); // the page of a run takes its experiment, if it is not shown
	await page.goBack();
	await lists(page, 'a1,a2,a3,b4,b5');
	await run('c', 'c7', 7);
	await run('b&two', 'b8', 8);
	await lists(page, 'a1,a2,a3,b4,b5,b8');
	await charted(page, KEY, (d) => d.lines.length === 6);
});

test('an experiment that is not there is named, and can be left out', async (t) => {
	await (await open(t, '?e=c')).close();
	const page = await here.open(t, '?e=c&e=none');
	await says(page, 'body', /there is no experiment 'none'/);
	await page.click('.head button.also:has-text("none")');
	await until(() => listed(page), (n) => /^c6/.test(n));
});
