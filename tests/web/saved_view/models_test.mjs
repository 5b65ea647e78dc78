// SPDX-License-Identifier: Apache-2.0
// Registered models on the page: the list, and one model with its versions, their runs, their metric and what each
// version changed; aliases are set and removed. The registry is filled through MLflow's routes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { require, says, until } from '../browser.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage();

async function mlflow(address, body, method = body ? 'POST' : 'GET') {
	const r = await fetch(here.server.url + 'api/2.0/mlflow/' + address,
		{ method, headers: { 'content-type': 'application/json' }, body: body && JSON.stringify(body) });
	assert.ok(r.ok, `${address}: ${r.status} ${await r.clone().text()}`);
	return r.json();
}

async function made(name, params, accuracy, tags = {}) {
	const { id } = await here.ask('POST', 'runs', { experiment: 'digits', name, params, tags });
	if (accuracy.length)
		await here.ask('POST', `runs/${id}/metrics`, { points: accuracy.flatMap((value, step) =>
			[{ key: 'val/accuracy', step, value }, { key: 'val/loss', step, value: 1 - value }]) });
	return id;
}

const version = (name, run, description = '') => mlflow('model-versions/create',
	{ name, source: `runs:/${run}/model`, run_id: run, description });

/** The cells of the table of versions, as text by version. */
const cells = (page) => page.$$eval('tr.version', (l) => Object.fromEntries(l.map((r) =>
	[r.dataset.version, [...r.cells].map((c) => c.textContent.trim())])));

test('models and versions: run, metric, what each changed; aliases are set, moved and removed', async (t) => {
	const page = await here.open(t, '?models');
	await says(page, 'main', /No registered models yet.*“Register model” on its page/s);
	const commit = (id) => ({ 'mlflow.source.git.commit': id });
	const runs = [await made('first', { lr: '0.1', opt: 'sgd' }, [0.5, 0.875, 0.75], commit('0123456789abcdef')),
		await made('second', { lr: '0.05', opt: 'sgd' }, [0.9375], commit('fedcba9876543210')),
		await made('unmeasured', { lr: '0.05', opt: 'sgd' }, []),
		await made('fourth', { lr: '0.05', wd: '1' }, [0.90625])];
	await mlflow('registered-models/create', { name: 'digits <i>', description: 'reads **digits**' });
	await mlflow('registered-models/create', { name: 'other' });
	for (const id of runs) await version('digits <i>', id, id === runs[1] ? 'the good one' : '');
	await mlflow('registered-models/alias', { name: 'digits <i>', alias: 'champion', version: '2' });

	await page.reload();
	await says(page, 'main table', /digits <i>.*4.*champion → 2.*other/s);
	await page.fill('[aria-label="Find models"]', 'IGIT');
	await until(() => page.locator('main tbody tr').count(), (n) => n === 1);
	await page.click('main td a');
	await says(page, 'h1', /digits <i>/);
	await says(page, 'main .markdown strong', /^digits$/);
	await says(page, 'main code', /^models:\/digits <i>@champion$/);
	const rows = await until(() => cells(page), (r) => Object.keys(r).length === 4);
	const [, , run, value, step, changes, description] = rows[2];
	assert.equal(run, 'seconddigits');
	assert.equal(value, '0.938');
	assert.equal(step, '+0.063 better', 'compared with the best, version 1');
	assert.match(changes, /^commit 0123456789 → fedcba9876; lr 0\.1 → 0\.05 Side by side$/);
	assert.equal(description, 'the good one');
	assert.deepEqual(rows[1].slice(2, 6), ['firstdigits', '0.875', '', '']);
	assert.deepEqual(rows[3].slice(3, 5), ['', ''], 'without a value there is no difference');
	assert.match(rows[3][5], /^commit left out \(fedcba9876\)/);
	assert.equal(rows[4][4], '−0.031 worsesince 2');
	assert.match(rows[4][5], /^opt left out \(sgd\); wd 1, new/);

	await page.click('button[aria-label^="Measured by"]');
	await page.click('.picker button:text-is("val/loss")');
	await until(() => cells(page), (r) => r[2]?.[4] === '−0.063 better');
	await until(() => page.url(), (u) => decodeURIComponent(u).includes('val/loss'));
	await page.reload();
	await until(() => cells(page), (r) => r[4]?.[4] === '+0.031 worsesince 2');

	await page.click('[aria-label="An alias for version 4"]');
	await page.fill('.rename input', 'no spaces?');
	await page.keyboard.press('Enter');
	await says(page, '.rename .problem', /alias/);
	await page.fill('.rename input', 'champion');
	await page.keyboard.press('Enter');
	await until(() => cells(page), (r) => /^champion/.test(r[4]?.[1]) && !/champion/.test(r[2][1]));
	const { model_version } = await mlflow('registered-models/alias?name=digits+%3Ci%3E&alias=champion');
	assert.equal(model_version.version, '4');
	await page.click('[aria-label="Take the alias champion from version 4"]');
	await until(() => cells(page), (r) => !/champion/.test(r[4]?.[1]));

	await page.click('tr[data-version="2"] a:text-is("second")');
	await says(page, '.overview', /Registered as\s*digits <i> version 2/);
	await page.click('.overview a:text-is("digits <i>")');
	await page.click('[aria-label="Versions 1 and 2 side by side"]', WAIT);
	await says(page, 'main', /lr\s*0\.05\s*0\.1/);
	await page.goto(here.server.url + '?models=nothing');
	await says(page, 'main', /cannot be shown.*nothing not found/s);
});

test('a deleted run, a model without versions', async (t) => {
	const id = await made('gone', {}, [1]);
	await mlflow('registered-models/create', { name: 'lost' });
	await version('lost', id);
	await here.ask('DELETE', 'runs/' + id);
	const page = await here.open(t, '?models=lost');
	await says(page, 'tr.version', new RegExp(`${id.slice(0, 8)} \\(not found\\)`));
	await page.goto(here.server.url + '?models=other');
	await says(page, 'main', /No versions yet/);
});

for (const [scheme, width] of [['light', 1280], ['dark', 390]])
	test(`axe finds nothing serious (${scheme}, ${width} px)`, async (t) => {
		const page = await here.open(t, '');
		await page.emulateMedia({ colorScheme: scheme });
		await page.setViewportSize({ width, height: 844 });
		for (const [address, there] of [['?models', 'main td'], ['?models=digits+%3Ci%3E', 'tr.version']]) {
			await page.goto(here.server.url + address);
			await page.waitForSelector(there, WAIT);
			const wide = await page.evaluate(() => document.documentElement.scrollWidth);
			assert.ok(wide <= width, `${address}: ${wide} px`);
			await page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
			const { violations } = await page.evaluate(() => globalThis.axe.run(document));
			assert.deepEqual(violations.filter((v) => /serious|critical/.test(v.impact)).map((v) =>
				`${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`), []);
		}
	});

test('a model of another experiment leaves the experiment of the page', async (t) => {
	await here.ask('POST', 'runs', { experiment: 'letters', name: 'a' });
	const page = await here.open(t, '?e=letters&models');
	await page.click('main td a:text-is("digits <i>")', WAIT);
	await says(page, 'h1', /digits <i>/);
	await page.waitForSelector('tr.version', WAIT);
	await says(page, '.nav .exps a.here', /^letters/);
	await page.click('.places a[title="Runs"]');
	await says(page, '.grid .body .row', /^a/);
	assert.equal(await page.inputValue('.head .where'), 'letters');
});
