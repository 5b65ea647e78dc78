// SPDX-License-Identifier: Apache-2.0
// A run of MLflow's clients shows their data on its page, and notes are shared in both directions. So is the data set
// of a training over S3. Experiments are renamed, deleted and restored; deleted runs are marked and kept in the trash.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { charted, says, until } from './browser.mjs';
import { builddir, srcdir } from './serve.mjs';
import { stage } from './stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage((logdir) => execFileSync('python3', [path.join(srcdir, 'tests/data/inputs.py'), logdir],
	{ env: { ...process.env, srcdir, builddir } }));

/** Calls the server as MLflow's clients do. */
async function mlflow(address, body) {
	const r = await fetch(here.server.url + 'api/2.0/mlflow/' + address,
		{ method: body ? 'POST' : 'GET', headers: { 'content-type': 'application/json' },
		body: body && JSON.stringify(body) });
	assert.ok(r.ok, `${address}: ${r.status}`);
	return r.json();
}

/** The text of the box that shows a run's source. */
const sourceOf = (page) => until(() => page.$$eval('.box', (l) => l.map((b) => b.textContent)
	.find((x) => x.startsWith('Source')) ?? ''), (x) => x !== '');

test('description, source, commit and data sets of an MLflow run; both sides edit one note', async (t) => {
	const { experiment_id } = await mlflow('experiments/create', { name: 'from mlflow' });
	const { run: { info: { run_id: id } } } = await mlflow('runs/create', { experiment_id, run_name: 'm', tags: [
		['mlflow.note.content', 'what it **was** for'], ['mlflow.user', 'ada'],
		['mlflow.source.name', '/home/ada/train.py'],
		['mlflow.source.git.commit', '0123456789abcdef0123456789abcdef01234567'],
	].map(([key, value]) => ({ key, value })) });
	await mlflow('runs/log-inputs', { run_id: id, datasets: [{ dataset: { name: 'digits', digest: 'd41d8cd9',
		source_type: 'local', source: '{"uri": "/data/digits.csv"}' },
		tags: [{ key: 'mlflow.data.context', value: 'training' }] }] });
	const page = await here.open(t, '?r=' + id);
	await says(page, '.notes', /what it was for/);
	const source = await sourceOf(page);
	for (const word of ['ada', '/home/ada/train.py', '0123456789', 'training', 'digits', 'd41d8cd9'])
		assert.ok(source.includes(word), `${word}: ${source}`);
	await here.ask('PATCH', 'runs/' + id, { notes: 'changed here' });
	const noteOf = async () => (await mlflow('runs/get?run_id=' + id)).run.data.tags
		.find((x) => x.key === 'mlflow.note.content')?.value;
	assert.equal(await noteOf(), 'changed here');
	await mlflow('runs/set-tag', { run_id: id, key: 'mlflow.note.content', value: 'changed there' });
	await says(page, '.notes', /changed there/);
	await here.ask('PATCH', 'runs/' + id, { notes: '' });
	assert.equal(await noteOf(), undefined);
});

test('a training over S3 shows the location and kind of its data, and no credentials', async (t) => {
	const [{ id }] = (await here.ask('GET', 'runs?experiment=inputs')).runs;
	const page = await here.open(t, '?r=' + id);
	const source = await sourceOf(page);
	assert.match(source, /Data, trainings3:\/\/shards [0-9a-f]{16} 12 samples, \d+ shards, /);
	assert.match(source, /Data, validations3:\/\/shards [0-9a-f]{16} 5 samples, \d+ shards, /);
	assert.doesNotMatch(await page.content(), /AKIATEST|wJalr/);
});

test('a deleted run is marked after a reload and restored on its page; its lines have a colour', async (t) => {
	const { id } = await here.ask('POST', 'runs', { experiment: 'bin', name: 'gone', params: { lr: '1' } });
	await here.ask('POST', 'runs', { experiment: 'bin', name: 'kept', params: { lr: '2' } });
	await here.ask('POST', `runs/${id}/metrics`, { points: [1, 2, 3].map((step) =>
		({ key: 'loss', step, value: step, wall_time: 1.7e9 + step })) });
	await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	await here.ask('DELETE', 'runs/' + id);
	const page = await here.open(t, '?r=' + id);
	await says(page, 'h1 .says', /^deleted/);
	await charted(page, 'loss', (d) => /^#(?!0*$)/.test(d.lines[0]?.colour ?? ''));
	assert.equal(await page.locator('.runhead button[aria-label^="More"]').count(), 0);
	await page.click('.runhead button:text-is("Restore")', WAIT);
	await says(page, 'h1 .says', /^finished/);
	assert.equal((await here.ask('GET', 'runs/' + id)).deleted, false);
});

test('an experiment is renamed, deleted with its runs and restored from the trash', async (t) => {
	await here.ask('POST', 'runs', { experiment: 'before', name: 'inside' });
	const page = await here.open(t, '?all');
	await page.click('button[aria-label="More for before"]', WAIT);
	await page.click('[role=dialog] button:text-is("Rename")');
	await page.fill('.rename input', 'from mlflow');
	await page.keyboard.press('Enter');
	await says(page, '.rename .problem', /already exists/);
	await page.fill('.rename input', 'after');
	await page.keyboard.press('Enter');
	await page.click('button[aria-label="More for after"]', WAIT);
	await page.click('[role=dialog] button:text-is("Delete")');
	await page.waitForSelector('main a:text-is("after")', { ...WAIT, state: 'detached' });
	const names = async () => (await here.ask('GET', 'experiments')).experiments.map((e) => e.name);
	assert.ok(!(await names()).some((n) => n === 'after' || n === 'before'));
	await page.goto(here.server.url + '?trash');
	await page.click('button[aria-label="Restore after"]', WAIT);
	await page.click('.nav .places a[title="Experiments"]');
	await page.click('main .box a:text-is("after")', WAIT);
	await says(page, '.grid .body .row', /inside/);
});

test('files of a run are previewed without leaving the page', async (t) => {
	const { id } = await here.ask('POST', 'runs', { experiment: 'files', name: 'f' });
	const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFElEQVR4nGP8z8Dwn4GBgYGJ'
		+ 'AQoAHxcCAk+Uzr4AAAAASUVORK5CYII=', 'base64');
	const files = { 'plot.png': png, 'a/table.csv': 'x,"y, z"\n1,"say ""hi"""\n', 'conf.json': '{"lr":[0.1]}',
		'long.log': 'line\n'.repeat(100000), 'w.bin': Buffer.alloc(9), 'empty.txt': '',
		'evil.html': `<body><script>globalThis.evil = 1; const b = document.createElement('b');
			try { b.title = parent.document.title } catch { b.title = 'apart' }
			fetch('/api/v1/runs').then(() => (b.id = 'reached'), () => (b.id = 'alone'));
			b.textContent = 'drawn'; setTimeout(() => document.body.append(b), 50)
			</script>` };
	for (const [name, body] of Object.entries(files)) {
		const r = await fetch(`${here.server.url}api/v1/runs/${id}/artifacts/${name}`, { method: 'PUT', body });
		assert.ok(r.ok, `${name}: ${r.status} ${await r.text()}`);
	}
	const page = await here.open(t, `?r=${id}&t=files`);
	const open = (name) => page.click(`.artifacts .files a:text-is("${name}")`, WAIT);
	await open('plot.png');
	await page.waitForFunction(() => document.querySelector('.preview img')?.naturalWidth === 2, null, WAIT);
	await open('conf.json');
	await says(page, '.preview pre', /"lr": \[\s+0\.1/);
	await open('long.log');
	await says(page, '.preview', /The beginning of 488\.3 KiB/);
	await open('evil.html');
	const frame = page.frameLocator('.preview iframe');
	await frame.locator('b#alone').waitFor(WAIT);
	assert.equal(await frame.locator('b#alone').getAttribute('title'), 'apart');
	await page.click('.preview label');
	await says(page, '.preview pre', /<script>globalThis\.evil/);
	assert.equal(await page.evaluate(() => globalThis.evil), undefined);
	await open('w.bin');
	await says(page, '.preview', /No preview/);
	await open('empty.txt');
	await says(page, '.preview', /empty\.txt0 B|empty\.txt 0 B/);
	await page.click('.artifacts button:text-is("a/")');
	await open('table.csv');
	await until(() => page.$$eval('.preview :is(th, td)', (l) => l.map((c) => c.textContent).join('|')),
		(x) => x === 'x|y, z|1|say "hi"');
	assert.ok(/[?&]r=/.test(page.url()), 'the page is still open');
});
