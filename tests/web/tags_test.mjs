// SPDX-License-Identifier: Apache-2.0
// Tags are added, changed and removed on a run's page and for several runs at once. They appear before the server
// answers and are rolled back with a message when it refuses; a reader is offered no changes. Parent and child runs
// link to each other and are nested in the table. Runs are renamed, deleted and restored.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { says, until } from './browser.mjs';
import { builddir } from './serve.mjs';
import { stage } from './stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage();
const made = (experiment, name, tags = {}) =>
	here.ask('POST', 'runs', { experiment, name, tags, params: { lr: '0.1' } });
const tagsOf = async (id) => (await here.ask('GET', 'runs/' + id)).tags;
const tagged = (id, test) => until(() => tagsOf(id), test);
const shown = (page) => page.$$eval('.tags .pairs > div',
	(l) => l.map((d) => [d.querySelector('dt')?.textContent, d.querySelector('dd span')?.textContent]));

test('a tag is added, changed and removed', async (t) => {
	const { id } = await made('one', 'a', { stage: 'draft', 'mlflow.user': 'somebody' });
	const page = await here.open(t, '?r=' + id);
	await says(page, '.tags', /stagedraft/);
	assert.ok(!/mlflow/.test(await page.textContent('.tags')));
	await page.click('.tags button[aria-label="Add a tag"]');
	await page.fill('.tagform input[name=key]', 'team/x y');
	await page.keyboard.press('Tab');
	await page.keyboard.type('vision');
	await page.keyboard.press('Enter');
	await tagged(id, (g) => g['team/x y'] === 'vision' && g.stage === 'draft');
	await until(() => shown(page), (l) => JSON.stringify(l) === '[["stage","draft"],["team/x y","vision"]]');
	await page.click('button[aria-label="Change stage"]');
	await page.fill('.tagform input[name=value]', 'final');
	await page.click('.tagform button:has-text("Save")');
	await tagged(id, (g) => g.stage === 'final');
	await page.click('button[aria-label="Remove team/x y"]');
	await tagged(id, (g) => g['team/x y'] === undefined && g['mlflow.user'] === 'somebody');
	await until(() => shown(page), (l) => JSON.stringify(l) === '[["stage","final"]]');
	await page.click('.tags button[aria-label="Add a tag"]');
	for (const [key, wrong] of [['mlflow.x', /belong to MLflow/], ['  ', /needs a name/]]) {
		await page.fill('.tagform input[name=key]', key);
		await page.click('.tagform button:has-text("Save")');
		await says(page, '.tagform .problem', wrong);
	}
	await page.keyboard.press('Escape');
	await page.waitForSelector('.tagform', { ...WAIT, state: 'detached' });
});

test('a refused change is shown at once, then rolled back with a message', async (t) => {
	const { id } = await made('two', 'a', { stage: 'draft' });
	const page = await here.open(t, '?r=' + id);
	let answer;
	const held = new Promise((done) => (answer = done));
	await page.route(/\/tags\/stage$/, async (r) => {
		await held;
		await r.fulfill({ status: 507, contentType: 'application/json',
			body: '{"error":{"code":"full","message":"the disk is full"}}' });
	});
	await page.click('button[aria-label="Change stage"]', WAIT);
	await page.fill('.tagform input[name=value]', 'final');
	await page.keyboard.press('Enter');
	await until(() => shown(page), (l) => l[0]?.[1] === 'final');
	answer();
	await says(page, '.tags .problem', /“stage” was not saved: the disk is full/);
	await until(() => shown(page), (l) => l[0]?.[1] === 'draft');
	await page.unroute(/\/tags\/stage$/);
	await page.click('.tags .problem button');
	await tagged(id, (g) => g.stage === 'final');
	await page.waitForSelector('.tags .problem', { ...WAIT, state: 'detached' });
});

test('several runs are tagged at once, shown as a column of the table', async (t) => {
	const runs =
		await Promise.all(['a', 'b', 'c', 'd'].map((n) => made('many', n, n === 'd' ? { sweep: 'old' } : {})));
	const page = await here.open(t, '?e=many&c=t:sweep');
	await page.waitForFunction(() => document.querySelectorAll('.grid .body .row').length === 4, null, WAIT);
	for (const r of runs.slice(1)) await page.click(`[data-run="${r.id}"] .pick`);
	await page.click('.bulk button:text-is("Tag")', WAIT);
	await page.fill('.bulktag input[aria-label="Tag"]', 'sweep');
	await page.fill('.bulktag input[aria-label="Value"]', 'lr');
	await page.click('.bulktag button:text-is("Set on 3 runs")');
	await says(page, '.bulktag [role=status]', /Set on 3 runs/);
	await tagged(runs[3].id, (g) => g.sweep === 'lr');
	assert.equal((await tagsOf(runs[0].id)).sweep, undefined);
	await until(() => page.$$eval('.grid .c-t', (l) => l.map((c) => c.textContent).sort().join()),
		(s) => s === ',lr,lr,lr');
	await page.click('.bulktag button:text-is("Remove")');
	await says(page, '.bulktag [role=status]', /Removed from 3 runs/);
	await tagged(runs[3].id, (g) => g.sweep === undefined);
});

test('parent and child runs', async (t) => {
	const root = await made('nested', 'search');
	const child = (name, parent) => made('nested', name, { 'mlflow.parentRunId': parent.id });
	const trial = await child('trial', root);
	await child('other', root);
	await child('fold', trial);
	await made('nested', 'loner');
	const page = await here.open(t, '?e=nested');
	await page.waitForSelector('.grid[role=treegrid]', WAIT);
	const rows = () => page.$$eval('.grid .body .row', (l) => l.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)
		.map((r) => r.ariaLevel + r.querySelector('a').textContent).join(' '));
	const order = (s) => s.replace('1loner', '').trim() === '1search 2other 2trial 3fold'
		|| s.replace('1loner', '').trim() === '1search 2trial 3fold 2other';
	await until(rows, order);
	await page.focus(`[data-run="${trial.id}"] [role=rowheader]`);
	await page.keyboard.press('-');
	await until(rows, (s) => !s.includes('fold') && s.includes('2trial'));
	await page.keyboard.press('+');
	await until(rows, order);
	await page.click(`[data-run="${trial.id}"] a`);
	await says(page, '.family', /Belongs to search.*fold/);
	await page.click('.family a:has-text("search")');
	await says(page, 'h1', /search/);
	await says(page, '.family', /trial/);
	assert.ok(!/fold/.test(await page.textContent('.family')), 'children, not grandchildren');
	await page.click('.family a:has-text("Compare these 2")');
	await page.waitForFunction(() => document.querySelectorAll('.grid .body .row').length === 2, null, WAIT);
});

test('a run is renamed, deleted and restored', async (t) => {
	const { id } = await made('end', 'first');
	await made('end', 'second');
	const page = await here.open(t, '?r=' + id);
	await page.click('.runhead button[aria-label^="More for"]', WAIT);
	await page.click('.runhead .item:text-is("Rename")');
	await page.fill('.rename input', '  ');
	await page.keyboard.press('Enter');
	await says(page, '.rename .problem', /needs a name/);
	await page.fill('.rename input', 'better');
	await page.keyboard.press('Enter');
	await says(page, 'h1', /^better/);
	assert.equal((await here.ask('GET', 'runs/' + id)).name, 'better');
	await page.click('.runhead button[aria-label^="More for"]', WAIT);
	await page.click('.runhead .item:text-is("Delete")');
	const names = () => page.$$eval('.grid .body .row a', (l) => l.map((a) => a.textContent).sort().join());
	await until(names, (n) => n === 'second');
	await says(page, '.banner', /better is deleted/);
	assert.equal((await here.ask('GET', 'runs/' + id)).deleted, true);
	await page.click('.banner button:has-text("Undo")');
	await until(names, (n) => n === 'better,second');
	await page.waitForSelector('.banner', { ...WAIT, state: 'detached' });
	assert.equal((await here.ask('GET', 'runs/' + id)).deleted, false);
	await page.route(/\/runs\/[0-9a-f]+$/, (r) => (r.request().method() === 'DELETE'
		? r.fulfill({ status: 403, contentType: 'application/json',
		body: '{"error":{"code":"forbidden","message":"not yours"}}' }) : r.fallback()));
	await page.click(`[data-run="${id}"] a`);
	await page.click('.runhead button[aria-label^="More for"]', WAIT);
	await page.click('.runhead .item:text-is("Delete")');
	await says(page, '.runhead .problem', /It was not deleted: not yours/);
});

test('a reader sees tags without controls to change them', async (t) => {
	const { id } = await made('read', 'a', { stage: 'draft' });
	const token = execFileSync(path.join(builddir, 'dptrack'),
		['token', 'add', 'reader', '--scope', 'read', '--logdir', here.logdir],
		{ stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' }).trim();
	const page = await here.open(t, '?r=' + id);
	await page.fill('#token', token);
	await page.click('button');
	await says(page, '.tags', /stage/);
	await page.click('.nav a[title="Settings"]');
	await page.waitForSelector('button:text-is("Sign out")', WAIT);
	await page.goBack();
	await says(page, '.tags', /stage/);
	const changes = '.tags button, .notes button, .runhead button:text-is("Register model")';
	assert.equal(await page.locator(changes).count(), 0);
	await page.click('text=All runs');
	await page.waitForSelector('.grid .body .row', WAIT);
	await page.click('[aria-label="Select all runs"]');
	await page.waitForSelector('.bulk button:text-is("Export")', WAIT);
	assert.equal(await page.locator('.bulk button:text-is("Tag")').count(), 0);
});
