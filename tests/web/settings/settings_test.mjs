// SPDX-License-Identifier: Apache-2.0
// The settings of an administrator and of a person with grants: what is listed, made and revoked, and that nothing is
// offered which the server would refuse. A session that ends keeps what was typed. W&B's runs are stopped, its
// artifacts have their lineage.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { clean, says, until } from '../browser.mjs';
import { builddir } from '../serve.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const ENTRIES = 150;
const BYTES = 100000;
const here = stage();
const dptrack = (...words) => execFileSync(path.join(builddir, 'dptrack'), [...words, '--logdir', here.logdir],
	{ stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' }).trim();

/** A REST call with a token; resolves to {status, json}. */
async function ask(token, method, address, body) {
	const r = await fetch(here.server.url + 'api/v1/' + address, { method, body: body && JSON.stringify(body),
		headers: { 'content-type': 'application/json', Authorization: 'Bearer ' + token } });
	return { status: r.status, json: await r.json() };
}

async function graphql(query, input) {
	const i = { entityName: 'dptrack', projectName: 'wandb', ...input };
	const r = await fetch(here.server.url + 'graphql', { method: 'POST',
		headers: { 'content-type': 'application/json' }, body: JSON.stringify({ query, variables: { i } }) });
	const { data, errors } = await r.json();
	assert.ok(r.ok && !errors, JSON.stringify(errors));
	return Object.values(data)[0];
}

/** Two runs of W&B's client, of which the first made an artifact that the second uses. */
async function logAsWandb() {
	for (const name of ['maker', 'user'])
		await graphql('mutation U($i: UpsertBucketInput!) { upsertBucket(input: $i) { bucket { id } } }',
			{ name, displayName: name, modelName: 'wandb' });
	const { artifact: { id: artifactID } } = await graphql(
		'mutation C($i: CreateArtifactInput!) { createArtifact(input: $i) { artifact { id } } }',
		{ runName: 'maker', artifactTypeName: 'dataset', artifactCollectionName: 'faces', digest: 'd1',
			aliases: [{ artifactCollectionName: 'faces', alias: 'latest' }] });
	const { artifactManifest } = await graphql('mutation M($i: CreateArtifactManifestInput!) '
		+ '{ createArtifactManifest(input: $i) { artifactManifest { file { uploadUrl } } } }',
	{ artifactID, runName: 'maker', name: 'wandb_manifest.json', digest: 'd1' });
	const sent = await fetch(artifactManifest.file.uploadUrl,
		{ method: 'PUT', body: '{"version": 1, "contents": {}}' });
	assert.ok(sent.ok, `manifest: ${sent.status}`);
	await graphql('mutation K($i: CommitArtifactInput!) { commitArtifact(input: $i) { artifact { id } } }',
		{ artifactID });
	await graphql('mutation V($i: UseArtifactInput!) { useArtifact(input: $i) { artifact { id } } }',
		{ artifactID, runName: 'user' });
}

async function signIn(t, token, address) {
	const page = await here.open(t, address);
	await page.fill('#token', token);
	await page.click('button');
	await page.waitForSelector('.app[data-ready=true]', WAIT);
	return page;
}

const rows = (page, label) => page.$$eval(`table[aria-label="${label}" i] tbody tr`, (l) => l.map((r) => r.innerText
	.replace(/\s+/g, ' ')));
const listed = (page, label, test) => until(() => rows(page, label), test);

test("experiments, runs of W&B's client, and the tokens that close the server", async () => {
	for (const name of ['open-1', 'own', 'secret'])
		here[name] = (await here.ask('POST', 'runs', { experiment: name, name: 'in ' + name })).id;
	await logAsWandb();
	here.boss = dptrack('token', 'add', 'boss', '--scope', 'admin');
	here.bea = dptrack('token', 'add', 'bea', '--scope', 'write', '--experiments',
		'open*=read,own=write,bea*=write+create');
});

test("W&B's artifacts show who made and uses them; a running run is asked to stop", async (t) => {
	const { runs } = (await ask(here.boss, 'GET', 'runs?experiment=wandb')).json;
	const id = (name) => runs.find((r) => r.name === name).id;
	const page = await signIn(t, here.boss, `?e=wandb&r=${id('user')}&t=files`);
	const line = /^faces:v0 latest dataset maker user/;
	await listed(page, 'versions', (l) => l.length === 1 && line.test(l[0]));
	await page.click('table[aria-label=Versions] a:text-is("maker")');
	await says(page, 'h1', /maker/);
	await page.click('.runhead button:text-is("Stop")');
	await says(page, '.runhead [role=status]', /Asked to stop/);
	await page.goto(here.server.url + '?e=wandb&models');
	await listed(page, 'versions', (l) => l.length === 1 && line.test(l[0]));
	await page.goto(`${here.server.url}?r=${here.own}`);
	await says(page, 'h1', /in own/);
	assert.equal(await page.locator('.runhead button:text-is("Stop")').count(), 0);
});

test('each tab of an administrator, by keyboard; axe finds nothing', async (t) => {
	const page = await signIn(t, here.boss, '?settings');
	const tabs = { General: /You are boss.*Administer: all experiments/s, Connect: /WANDB_API_KEY=TOKEN/,
		Persons: /boss.*Administer.*bea.*Read: all that begin with open/s, Tokens: /bea.*never.*Revoke/s,
		Grants: /own\s*Read and write\s*bea/, 'Sign-in': /No provider is configured/,
		'Share links': /without a token/,
		Retention: /audit log/, 'Audit log': /Entries are only added/ };
	await page.focus('.tabs a');
	for (const [word, text] of Object.entries(tabs)) {
		await says(page, '.tabs a[aria-current]', new RegExp(`^${word}$`));
		await until(() => page.innerText('main'), (s) => text.test(s), `${word}: ${text}`);
		await clean(page);
		await page.keyboard.press('ArrowRight');
	}
});

test('a token is made with grants, shown once, and revoked', async (t) => {
	const page = await signIn(t, here.boss, '?settings=tokens');
	await page.click('button:text-is("New token")', WAIT);
	await page.keyboard.type('cid');
	await page.selectOption('form select:has(option[value=some])', 'some');
	await page.click('button:text-is("Make token")');
	await says(page, 'form [role=alert]', /Name an experiment/);
	await page.fill('[aria-label="Experiment 1"]', 'nothing');
	await page.click('button:text-is("Make token")');
	await says(page, 'form [role=alert]', /there is no experiment 'nothing'/);
	await page.fill('[aria-label="Experiment 1"]', 'open*');
	await page.click('button:text-is("Another experiment")');
	await page.fill('[aria-label="Experiment 2"]', 'own');
	await page.selectOption('[aria-label="May do in experiment 2"]', 'write');
	await page.click('button:text-is("Make token")');
	const text = await page.textContent('.made pre', WAIT);
	assert.match(text, /^dpt-[0-9a-f]{40}$/);
	const { experiments } = (await ask(text, 'GET', 'experiments')).json;
	assert.deepEqual(experiments.map((e) => `${e.name} ${e.may}`).sort(), ['open-1 read', 'own write']);
	await page.click('.made button:text-is("Done")');
	assert.ok(!(await page.content()).includes(text), 'the text is gone');
	await listed(page, 'tokens', (l) => l.some((r) =>
		/^cid cid Read: all that begin with open Read and write: own/.test(r)));
	await page.click('tr:has-text("cid") button:text-is("Revoke")');
	await page.click('[role=dialog] button:text-is("Cancel")');
	assert.equal((await ask(text, 'GET', 'experiments')).status, 200);
	await page.click('tr:has-text("cid") button:text-is("Revoke")');
	await page.click('[role=dialog] button:text-is("Revoke")');
	await listed(page, 'tokens', (l) => l.some((r) => /^cid .*revoked ?$/.test(r)));
	assert.equal((await ask(text, 'GET', 'experiments')).status, 401);
});

test('a person with grants sees own tokens, and is offered only what is permitted', async (t) => {
	const page = await signIn(t, here.bea, '?settings');
	await listed(page, 'tokens', (l) => l.length === 1 && /^bea bea Read/.test(l[0]));
	assert.deepEqual(await page.$$eval('.tabs a', (l) => l.map((a) => a.textContent)), ['General', 'Connect']);
	const offers = { '?all': ['More for own'], [`?r=${here['open-1']}`]: [],
		[`?r=${here.own}`]: ['More for in own'],
		'?e=open-1&alerts': [], '?e=own&alerts': ['Bound'] };
	for (const [address, want] of Object.entries(offers)) {
		await page.goto(here.server.url + address);
		await page.waitForSelector('main:is(:has(h1), .tablepane)', WAIT);
		const seen = () => page.$$eval('main :is([aria-label^="More for"], [aria-label="Bound"])', (l) =>
			l.map((e) => e.getAttribute('aria-label')));
		await page.waitForSelector('.app[data-ready=true]', WAIT);
		await until(seen, (l) => want.every((w) => l.includes(w)), `${address}: ${want}`);
		const wrong = await page.$$eval('.notes button, .tags button', (l) => l.length);
		assert.equal(wrong > 0, address.includes(here.own), `${address}: edits`);
	}
	assert.equal((await ask(here.bea, 'GET', 'tokens')).status, 403);
	assert.equal((await ask(here.bea, 'GET', 'session?experiment=bea-net')).json.may, 'write');
});

test('a session that ends keeps what was typed, and goes on after signing in elsewhere', async (t) => {
	const [first, second] = ['eve', 'eve-2'].map((name) => dptrack('token', 'add', name, '--scope', 'write'));
	const page = await signIn(t, first, `?r=${here.own}`);
	await page.click('.notes button', WAIT);
	await page.keyboard.type('before. ');
	await says(page, '.notes [role=status]', /^Saved$/);
	dptrack('token', 'revoke', 'eve');
	await page.keyboard.type('after');
	await page.waitForSelector('.banner:has-text("signed out")', WAIT);
	const [other] = await Promise.all([page.context().waitForEvent('page'),
		page.click('.banner a:text-is("Sign in")')]);
	await other.fill('#token', second);
	await other.click('button');
	await other.waitForSelector('.app', WAIT);
	await page.bringToFront();
	await page.waitForSelector('.banner', { ...WAIT, state: 'detached' });
	assert.equal(await page.inputValue('.notes textarea'), 'before. after');
	await page.click('.notes button:text-is("Done")');
	await until(async () => (await ask(here.boss, 'GET', 'runs/' + here.own)).json.notes,
		(s) => s === 'before. after');
});

test('the audit log by author and object, in pages', async (t) => {
	for (let i = 0; i < ENTRIES; i++)
		await ask(here.bea, 'PUT', `runs/${here.own}/tags/t${i % 3}`, { value: `${i}` });
	const page = await signIn(t, here.boss, '?settings=audit');
	await page.fill('[aria-label=Who]', 'bea');
	await page.selectOption('[aria-label=What]', 'run');
	await listed(page, 'entries', (l) => l.length === 100 && l.every((r) => /^bea tag run in own/.test(r)));
	await page.click('button:text-is("Older entries")');
	await page.click('button:text-is("50 more lines")', WAIT);
	await listed(page, 'entries', (l) => l.length === ENTRIES);
	await page.selectOption('[aria-label=What]', 'token');
	await says(page, 'main', /No entries/);
});

test('what is deleted for ever says its bytes first: from the trash, and by a rule', async (t) => {
	const gone = async (name) => {
		const { json: { id } } = await ask(here.boss, 'POST', 'runs', { experiment: 'own', name });
		const sent = await fetch(`${here.server.url}api/v1/runs/${id}/artifacts/big.bin`, { method: 'PUT',
			headers: { Authorization: 'Bearer ' + here.boss }, body: Buffer.alloc(BYTES, name) });
		assert.ok(sent.ok, `${sent.status}`);
		await ask(here.boss, 'PATCH', 'runs/' + id, { status: 'finished' });
		await ask(here.boss, 'DELETE', 'runs/' + id);
		return id;
	};
	const [first, second] = [await gone('first'), await gone('second')];
	const page = await signIn(t, here.boss, '?trash');
	await page.click('tr:has-text("first") button:text-is("Delete for ever")', WAIT);
	await says(page, '[role=dialog] [role=status]', / 97\.7 KiB of files go\./);
	await clean(page);
	await page.click('[role=dialog] button:text-is("Delete for ever")');
	await listed(page, 'deleted things', (l) => l.length === 1 && /^second run of own/.test(l[0]));
	assert.deepEqual((await Promise.all([first, second].map((id) => ask(here.boss, 'GET', 'runs/' + id))))
		.map((r) => r.status), [410, 200]);
	await page.goto(here.server.url + '?settings=retention');
	await page.click('[aria-label="Change all"]', WAIT);
	await page.fill('label:has-text("Empty the trash after") input', '0');
	await page.click('button:text-is("Dry run")');
	await says(page, 'form [role=status]', /^97\.7 KiB would be deleted now: 0 files of runs, and 1 run /);
	const rule = async () => (await ask(here.boss, 'GET', 'retention')).json.all.trash_days;
	assert.equal(await rule(), null, 'a dry run saves nothing');
	await clean(page);
	await page.click('button:text-is("Save the rule")');
	await listed(page, 'rules', (l) => /what is in the trash for 0 days/.test(l[0]));
	assert.equal(await rule(), 0);
	await page.selectOption('[aria-label="Rules for an experiment"]', 'own');
	await page.fill('label:has-text("but keep") input', '');
	await page.fill('label:has-text("Delete files") input', '0');
	await page.click('button:text-is("Dry run")');
	await says(page, 'form [role=alert]', /would delete every artifact/);
});
