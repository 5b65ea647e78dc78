// SPDX-License-Identifier: Apache-2.0
// Media of runs: one step for all of them, in the address too; kinds have their names, texts are Markdown, and
// histograms next to each other have one range.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { says, until } from '../browser.mjs';
import { builddir } from '../serve.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage((logdir) => execFileSync(path.join(builddir, 'tests/web/told_record'), [logdir]));
const card = (key) => `[data-media="${key}"]`;

async function opened(t, query = '') {
	const { runs } = await here.ask('GET', 'runs?experiment=told');
	const run = runs.find((r) => r.name === 'one');
	const page = await here.open(t, `?e=told&r=${run.id}&t=media${query}`);
	await page.waitForSelector(`${card('seen/words')} .text`, WAIT);
	return page;
}

test('one step for all media, which the address holds', async (t) => {
	const page = await opened(t);
	await says(page, card('seen/words'), /step 30, 4 of 4/);
	await page.focus(`${card('seen/words')} input[type=range]`);
	await page.keyboard.press('ArrowLeft');
	for (const key of ['seen/words', 'seen/picture', 'seen/weights', 'seen/large'])
		await says(page, card(key), /step 20, 3 of 4/);
	await page.waitForURL(/[?&]at=20(&|$)/);
	const same = await opened(t, '&at=20');
	await says(same, card('seen/picture'), /step 20, 3 of 4/);
	for (const [at, shown] of [['25', /step 20, 3 of 4/], ['0', /step 0, 1 of 4/], ['999', /step 30, 4 of 4/],
		['x', /step 30, 4 of 4/], ['-1', /step 30, 4 of 4/]])
		await says(await opened(t, '&at=' + at), card('seen/words'), shown);
});

test('a video, a document and a figure are called so', async (t) => {
	const page = await opened(t);
	for (const [key, kind] of [['doc/film', 'video'], ['doc/html', 'HTML'], ['doc/figure', 'figure'],
		['seen/tone', 'audio'], ['seen/words', 'text'], ['seen/weights', 'histogram']])
		await until(() => page.$eval(`${card(key)} figcaption .dim`, (e) => e.textContent), (s) => s === kind,
			key);
});

test('texts are Markdown, whose lines stay lines', async (t) => {
	const page = await opened(t, '&at=20');
	const text = `${card('seen/words')} .text`;
	await until(() => page.$eval(text + ' strong', (e) => e.textContent).catch(() => ''), (s) => s === 'quick');
	assert.equal(await page.$eval(text, (e) => e.innerText.trim()), 'the quick <b> fox of step 20');
	assert.equal(await page.$eval(text + ' p', (e) => getComputedStyle(e).whiteSpace), 'pre-wrap');
});

test('histograms next to each other have one range', async (t) => {
	const page = await opened(t);
	const ends = () => page.$$eval(`${card('seen/weights')} .ends`, (l) => l.map((e) =>
		[...e.children].map((s) => s.textContent).join()));
	await until(ends, (l) => l.join(' ') === '-1,5', 'step 30 alone');
	await page.click(`${card('seen/weights')} button:text-is("All steps")`);
	await until(ends, (l) => l.join(' ') === '-1,5 -1,5 -1,5 -1,5', 'four steps');
	const right = await page.$$eval(`${card('seen/weights')} svg.bars`, (l) => l.map((e) => {
		const r = e.querySelector('rect:last-child');
		return Math.round(Number(r.getAttribute('x')) + Number(r.getAttribute('width')));
	}));
	assert.deepEqual(right, [2, 3, 4, 5].map((hi) => Math.round(300 * (hi + 1) / 6 - 0.4)));
});
