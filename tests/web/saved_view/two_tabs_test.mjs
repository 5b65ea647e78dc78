// SPDX-License-Identifier: Apache-2.0
// Two people edit one note or one report: the second is told, sees both texts and chooses; nothing that was typed is
// lost by leaving the page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { says, until } from '../browser.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const TEXT = '[aria-label="Text of the report"]';
const here = stage();

const noteOf = async (id) => (await here.ask('GET', 'runs/' + id)).notes;
const texts = async (path, name) => {
	const { editions } = await here.ask('GET', path);
	return Promise.all(editions.map(async (e) => (await here.ask('GET', `${path}?edition=${e.edition}`))[name]));
};

async function editNotes(t, id) {
	const page = await here.open(t, '?e=two&r=' + id);
	await page.click('.notes button', WAIT);
	await page.waitForSelector('.notes textarea', WAIT);
	return page;
}

test('two tabs edit one note: the second is told and keeps both, mine or theirs', async (t) => {
	const { id } = await here.ask('POST', 'runs', { experiment: 'two', name: 'r' });
	await here.ask('PATCH', 'runs/' + id, { notes: 'first\n\nlast' });
	const [a, b] = [await editNotes(t, id), await editNotes(t, id)];
	await a.fill('.notes textarea', 'first of A\n\nlast');
	await until(() => noteOf(id), (text) => text === 'first of A\n\nlast');
	await b.fill('.notes textarea', 'first\n\nlast of B');
	await says(b, '.conflict pre', /first of A/);
	assert.equal(await noteOf(id), 'first of A\n\nlast', 'nothing was replaced');
	await b.click('.conflict button:text-is("Keep both changes")');
	await until(() => noteOf(id), (text) => text === 'first of A\n\nlast of B');

	await a.fill('.notes textarea', 'A again');
	await says(a, '.conflict pre', /last of B/);
	assert.equal(await a.locator('.conflict button:text-is("Keep both changes")').count(), 0, 'the same lines');
	await a.click('.conflict button:text-is("Save mine instead")');
	await until(() => noteOf(id), (text) => text === 'A again');
	const kept = await texts(`runs/${id}/notes`, 'notes');
	assert.ok(kept.includes('first of A\n\nlast of B'), `what was replaced is an edition: ${JSON.stringify(kept)}`);

	await b.fill('.notes textarea', 'B again');
	await says(b, '.conflict pre', /A again/);
	await b.click('.conflict button:text-is("Use theirs")');
	assert.equal(await b.inputValue('.notes textarea'), 'A again');
	await b.click('.notes button:text-is("Done")');
	await says(b, '.notes .markdown', /A again/);
});

test('a draft of a report outlives a reload, and a second author is told', async (t) => {
	await here.ask('POST', 'runs', { experiment: 'two', name: 'r' });
	const { id } = await here.ask('POST', 'reports', { experiment: 'two', name: 'week', text: 'one\n\ntwo' });
	const address = `?e=two&report=${id}`;
	const page = await here.open(t, address);
	await page.click('button:text-is("Edit")', WAIT);
	await page.fill(TEXT, 'one\n\ntwo of A');
	await page.reload();
	await page.click('button:text-is("Continue draft")', WAIT);
	assert.equal(await page.inputValue(TEXT), 'one\n\ntwo of A');
	await page.click('.nav a[title="Models"]');
	await page.goBack();
	await page.click('button:text-is("Continue draft")', WAIT);

	await here.ask('PATCH', 'reports/' + id, { text: 'one of B\n\ntwo' });
	await page.click('.reporteditor button:text-is("Save")');
	await says(page, '.conflict pre', /one of B/);
	await page.click('.conflict button:text-is("Keep both changes")');
	await page.waitForSelector('.reporteditor', { ...WAIT, state: 'detached' });
	assert.equal((await here.ask('GET', 'reports/' + id)).text, 'one of B\n\ntwo of A');
	await page.waitForSelector('button:text-is("Edit")', WAIT);

	await page.click('button:text-is("Edit")');
	await page.fill(TEXT, 'dropped');
	await here.ask('PATCH', 'reports/' + id, { text: 'theirs' });
	await page.click('.reporteditor button:text-is("Save")');
	await page.click('.conflict button:text-is("Use theirs")');
	await says(page, '.reporttext', /theirs/);
	assert.deepEqual((await texts('reports/' + id, 'text')).slice(-2), ['one of B\n\ntwo of A', 'theirs']);
});
