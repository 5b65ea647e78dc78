// SPDX-License-Identifier: Apache-2.0
// Reports on the page: editing, live and frozen panels, earlier versions, and the export as one HTML file that needs no
// server. No text or file of a client runs as a script, in reports and on every other page.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { charted, clean, require, says, until } from '../browser.mjs';
import { builddir } from '../serve.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage();

async function run(name, values) {
	const { id } = await here.ask('POST', 'runs', { experiment: 'week', name });
	await log(id, values);
	return id;
}

const log = (id, values, from = 1) => here.ask('POST', `runs/${id}/metrics`, {
	points: values.map((value, i) => ({ key: 'train/loss', step: from + i, value })) });

const curve = (k) => Array.from({ length: 700 }, (_, i) => k / (i + 1) + 0.1 * k);

/** The numbers in the table of a panel, by run. */
const numbers = (page, panel) => page.$$eval(`${panel} .numbers tbody tr`, (l) => Object.fromEntries(l.map((r) =>
	[r.dataset.run, [...r.querySelectorAll('.num')].map((c) => c.textContent)])));

/** The same numbers from REST. */
async function restNumbers() {
	const { runs } = await here.ask('GET', 'runs?experiment=week');
	return Object.fromEntries(runs.map((r) => {
		const m = r.metrics['train/loss'];
		return [r.id, [m.count, m.last, m.min, m.max].map(String)];
	}));
}

const byRun = (series) => Object.fromEntries(series.map((x) => [x.run, x]));
const asked = async (runs) => byRun((await here.ask('POST', 'series/query',
	{ runs, keys: ['train/loss'], buckets: 200, x: 'step', rank: -1 })).series);

test('written, frozen, exported: a frozen panel keeps its numbers, a live one follows', async (t) => {
	const ids = [await run('a <b>', [...curve(1), 9]), await run('b', [1 / 3, 'NaN', 0.1 + 0.2])];
	const page = await here.open(t, '?e=week');
	await charted(page, 'train/loss', (d) => d.lines.length === 2);
	await page.click('.nav a[title="Reports"]');
	await page.fill('[aria-label="Name of the report"]', 'first week');
	await page.click('button:text-is("New report")');
	await page.click('button:text-is("Edit")');
	await page.fill('[aria-label="Text of the report"]', '# What we saw\n\nIt **fell** <img src=x '
		+ 'onerror=alert(1)>\n'
		+ '\n```panel\nmetrics: train/loss\ntitle: kept\n```\n');
	await page.fill('[aria-label="Metrics of the panel"]', 'train/loss');
	await page.selectOption('[aria-label="Runs of the panel"]', 'shown');
	await page.click('button:text-is("Add panel")');
	await charted(page, 'train/loss (3)', (d) => d.lines.length === 2); // in the preview
	await page.click('.reporteditor button:text-is("Save")');
	await page.waitForSelector('.reporteditor', { ...WAIT, state: 'detached' });
	await charted(page, 'kept (2)', (d) => d.lines.length === 2);
	await charted(page, 'train/loss (3)', (d) => d.lines.length === 2);
	assert.equal(await page.locator('.reporttext img').count(), 0, 'HTML in a text stays text');
	await page.click('[aria-label="Freeze kept (2)"]');
	await page.waitForSelector('[data-frozen=true]', WAIT);
	const then = await restNumbers();
	const kept = await asked(ids);
	assert.deepEqual(await numbers(page, '[data-frozen=true]'), then);

	await log(ids[0], [77.25], 900);
	await says(page, '[data-frozen=false] .numbers tbody', /77\.25/);
	const now = await restNumbers();
	assert.deepEqual(await numbers(page, '[data-frozen=false]'), now);
	assert.notDeepEqual(now, then);
	await page.reload();
	await charted(page, 'kept (2)', (d) => d.lines.length === 2 && d.to === 701);
	assert.deepEqual(await numbers(page, '[data-frozen=true]'), then, 'new points do not change it');
	await charted(page, 'train/loss (3)', (d) => d.to === 900);

	const [download] = await Promise.all([page.waitForEvent('download'),
		page.click('button:text-is("Save as HTML")')]);
	const file = await download.path();
	assert.equal(download.suggestedFilename(), 'first-week.html');
	const html = await readFile(file, 'utf8');
	const context = await here.browser.newContext({ offline: true });
	t.after(() => context.close());
	const alone = await context.newPage();
	const asks = [];
	alone.on('request', (r) => asks.push(r.url()));
	await alone.setContent(html);
	assert.deepEqual(asks.filter((u) => !u.startsWith('about:')), [], 'the file makes no requests');
	assert.deepEqual(await numbers(alone, '[data-frozen=true]'), then);
	assert.deepEqual(await numbers(alone, '[data-frozen=false]'), now);
	const inside = await alone.$$eval('script[data-series]', (l) => l.map((e) => JSON.parse(e.textContent)));
	assert.deepEqual(byRun(inside[0]), kept, 'every bucket as REST returned it at freezing');
	assert.deepEqual(byRun(inside[1]), await asked(ids));
	assert.equal(await alone.locator('svg').count(), 2);
	assert.ok(await alone.$$eval('svg text', (l) => l.some((e) => e.textContent.includes('a <b>'))));
	const clips = await alone.$$eval('clipPath', (l) => l.map((e) => e.id));
	assert.equal(new Set(clips).size, clips.length, 'clip ids are unique across drawings');
	assert.equal(await alone.locator('button, img, canvas').count(), 0);
});

test('a chart goes to a report by three clicks, with the runs of the filter and their colours', async (t) => {
	for (const [name, lr] of [['p', 1], ['q', 2], ['r', 3]]) {
		const { id } = await here.ask('POST', 'runs', { experiment: 'sent', name, params: { lr: String(lr) } });
		await log(id, curve(lr));
	}
	const page = await here.open(t, '?e=sent');
	const all = await charted(page, 'train/loss', (d) => d.lines.length === 3);
	const colours = Object.fromEntries(all.lines.map((l) => [l.id, l.colour + l.dash]));
	await page.fill('.filter input', 'params.lr > 1');
	await page.keyboard.press('Enter');
	await charted(page, 'train/loss', (d) => d.lines.length === 2);
	await page.hover('[data-chart="train/loss"]');
	await page.click('figure:has([data-chart="train/loss"]) button:text-is("Add to report")');
	await page.fill('[aria-label="Name of a new report"]', 'sent there');
	await page.keyboard.press('Enter');
	await page.click('.picker [role=status] a');
	const d = await charted(page, 'train/loss (1)', (c) => c.lines.length === 2);
	for (const l of d.lines) assert.equal(l.colour + l.dash, colours[l.id.split('\n')[0]]);
	const { reports } = await here.ask('GET', 'reports?experiment=sent');
	const { text } = await here.ask('GET', 'reports/' + reports[0].id);
	assert.match(text, /^filter: params\.lr > 1$/m);
	assert.doesNotMatch(text, /^runs:/m);
	await page.goBack();
	await charted(page, 'train/loss', (c) => c.lines.length === 2);
	await page.hover('[data-chart="train/loss"]');
	await page.click('figure:has([data-chart="train/loss"]) button:text-is("Add to report")');
	await page.click('.picker .files button:text-is("sent there")');
	await page.click('.picker [role=status] a');
	await charted(page, 'train/loss (2)', (c) => c.lines.length === 2);
});

test('a smoothed chart over the full range keeps both in a report', async (t) => {
	const { id } = await here.ask('POST', 'runs', { experiment: 'spiky', name: 's' });
	const values = Array.from({ length: 600 }, (_, i) => (i === 300 ? 90 : 1 + (i % 7) / 10));
	await here.ask('POST', `runs/${id}/metrics`, { points: values.map((value, i) =>
		({ key: 'train/loss', step: i + 1, value, wall_time: 1.7e9 + i })) });
	await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	const page = await here.open(t, '?e=spiky&full&sm=0.6');
	await charted(page, 'train/loss', (d) => d.lines.length === 1 && d.hi > 90);
	await page.hover('[data-chart="train/loss"]');
	await page.click('figure:has([data-chart="train/loss"]) button:text-is("Add to report")');
	await page.fill('[aria-label="Name of a new report"]', 'smoothed');
	await page.keyboard.press('Enter');
	await page.click('.picker [role=status] a');
	await charted(page, 'train/loss (1)', (d) => d.lines.length === 1 && d.hi > 90);
	await says(page, '.reportpanel figcaption', /smoothed 0\.6, raw values pale/);
	const { reports } = await here.ask('GET', 'reports?experiment=spiky');
	const { text } = await here.ask('GET', 'reports/' + reports[0].id);
	assert.match(text, /^full: yes\nsmooth: 0\.6$/m);
});

test('a grouped and zoomed chart keeps its look in a report, live and frozen', async (t) => {
	for (const [i, seed] of [1, 2, 3, 4].entries()) {
		const { id } = await here.ask('POST', 'runs', { experiment: 'looks', name: 'g' + i,
			params: { model: i < 2 ? 'mlp' : 'cnn', seed: String(seed) } });
		await log(id, curve(i + 1));
	}
	const page = await here.open(t, '?e=looks&by=model&band=se&median&z=257~354&logx&log'
		+ '&y=0.1~9~train/loss');
	const look = ({ from, to, lo, hi, lines }) => ({ from, to, lo, hi, lines: lines.map((l) =>
		[l.id.split('\n')[0], l.colour, l.points, l.top, l.bottom]) });
	const chart = await charted(page, 'train/loss', (d) => d.lines.length === 2);
	await page.hover('[data-chart="train/loss"]');
	await page.click('figure:has([data-chart="train/loss"]) button:text-is("Add to report")');
	await page.fill('[aria-label="Name of a new report"]', 'looks');
	await page.click('.picker button:text-is("New report")');
	await page.click('.picker [role=status] a');
	const d = await charted(page, 'train/loss (1)', (c) => c.lines.length === 2);
	assert.deepEqual(look(d), look(chart));
	assert.ok(d.names.every((name) => /^model (mlp|cnn) \(2\)$/.test(name)), d.names.join());
	await says(page, '.reportpanel figcaption', /median by model/);
	await page.click('[aria-label="Freeze train/loss (1)"]');
	await page.waitForSelector('[data-frozen=true]', WAIT);
	await page.reload();
	assert.deepEqual(look(await charted(page, 'train/loss (1)', (c) => c.lines.length === 2)), look(chart));
});

test('the confirmation of a new report stays after Enter, with the focus on its link', async (t) => {
	const { id } = await here.ask('POST', 'runs', { experiment: 'enter', name: 'a' });
	await log(id, curve(1));
	const page = await here.open(t, '?e=enter');
	await charted(page, 'train/loss', (d) => d.lines.length === 1);
	const focused = (word) =>
		until(() => page.evaluate(() => document.activeElement.textContent), (s) => s === word);
	await page.focus('figure:has([data-chart="train/loss"]) button:text-is("Add to report")');
	await page.keyboard.press('Enter');
	await page.waitForSelector('.picker [aria-label="Name of a new report"]', WAIT);
	await page.keyboard.type('by keys');
	await page.keyboard.press('Enter');
	await says(page, '.picker [role=status]', /^Added to by keys\.$/);
	await focused('Copy link');
	assert.equal(await page.$eval('.acts:has(.picker)', (e) => getComputedStyle(e).opacity), '1');
	await page.keyboard.press('Escape');
	await focused('Add to report');
});

test('a report draws the runs of the chart; those beyond 100 are counted and named', async (t) => {
	const ids = [];
	for (let i = 0; i < 103; i++) {
		const { id } = await here.ask('POST', 'runs',
			{ experiment: 'crowd', name: 'c' + i, start_time: 1.7e12 + i });
		await log(id, [1 + i, 2]);
		ids.push(id);
	}
	const page = await here.open(t, '?e=crowd');
	const idsOf = (d) => d.lines.map((l) => l.id.split('\n')[0]).sort();
	const chart = await charted(page, 'train/loss', (d) => d.lines.length > 1);
	await page.hover('[data-chart="train/loss"]');
	await page.click('figure:has([data-chart="train/loss"]) button:text-is("Add to report")');
	await page.fill('[aria-label="Name of a new report"]', 'crowd');
	await page.click('.picker button:text-is("New report")');
	await page.click('.picker [role=status] a');
	const same = await charted(page, 'train/loss (1)', (d) => d.lines.length > 1);
	assert.deepEqual(idsOf(same), idsOf(chart));
	assert.equal(await page.locator('.reportpanel .left').count(), 0);
	const { id } = await here.ask('POST', 'reports', { experiment: 'crowd', name: 'all',
		text: '```panel\nmetrics: train/loss\n```' });
	await page.goto(here.server.url + '?e=crowd&report=' + id);
	const all = await charted(page, 'train/loss (1)', (d) => d.lines.length === 100);
	await says(page, '.reportpanel .left summary', /^Not drawn: 3 runs$/);
	await page.click('.reportpanel .left summary');
	const left = await page.$$eval('.reportpanel .left a', (l) => l.map((a) => a.textContent).sort());
	assert.deepEqual(left, ids.flatMap((x, i) => (idsOf(all).includes(x) ? [] : ['c' + i])).sort());
});

test('failure, spike and NaN have their notes in a report, live and frozen', async (t) => {
	const wavy = (n, at = () => 0) => Array.from({ length: n }, (_, i) => 2 - i / 500 + at(i));
	const made = { best: wavy(300), spiky: wavy(300, (i) => (i === 150 ? 90 : 0)), lost: wavy(200),
		gone: wavy(300).map((v, i) => (i > 250 ? 'NaN' : v)) };
	for (const [name, values] of Object.entries(made)) {
		const { id } = await here.ask('POST', 'runs', { experiment: 'notes', name });
		await log(id, values);
		await here.ask('PATCH', 'runs/' + id, { status: name === 'lost' ? 'failed' : 'finished' });
	}
	const page = await here.open(t, '?e=notes');
	const flags = (d) => d.marks.filter((m) => m.kind.startsWith('flag-')).map((m) => [m.kind, m.x, m.text]).sort();
	const chart = await charted(page, 'train/loss', (d) => flags(d).length === 3);
	const { id } = await here.ask('POST', 'reports', { experiment: 'notes', name: 'notes',
		text: '```panel\nmetrics: train/loss\n```' });
	await page.goto(here.server.url + '?e=notes&report=' + id);
	const d = await charted(page, 'train/loss (1)', (c) => flags(c).length === 3);
	assert.deepEqual(flags(d), flags(chart));
	assert.deepEqual([d.lo, d.hi].map((y) => y.toFixed(3)), [chart.lo, chart.hi].map((y) => y.toFixed(3)));
	await page.click('[aria-label="Freeze train/loss (1)"]');
	await page.waitForSelector('[data-frozen=true]', WAIT);
	await page.reload();
	assert.deepEqual(flags(await charted(page, 'train/loss (1)', (c) => flags(c).length === 3)), flags(chart));
});

test('runs of another experiment have the looks of their own table', async (t) => {
	for (const [name, lr] of [['u', 1], ['v', 2], ['w', 3]]) {
		const { id } = await here.ask('POST', 'runs',
			{ experiment: 'there', name, params: { lr: String(lr) } });
		await log(id, curve(lr));
	}
	const page = await here.open(t, '?e=there');
	const looks = (d) => d.lines.map((l) => l.id.split('\n')[0] + l.colour + l.dash).sort();
	const own = looks(await charted(page, 'train/loss', (d) => d.lines.length === 3));
	const { id } = await here.ask('POST', 'reports', { experiment: 'week', name: 'guests',
		text: '```panel\nmetrics: train/loss\nexperiment: there\nfilter: params.lr > 1\n```' });
	await page.goto(here.server.url + '?e=week&report=' + id);
	await charted(page, 'train/loss (1)', (d) => d.lines.length === 2
		&& looks(d).every((look) => own.includes(look)));
});

/** A script that would mark the page. The frame of an HTML file runs it, and has no origin to reach the page. */
const SCRIPT = 'try{top.ran=1}catch{}';
const MARKUP = `--></script><script>${SCRIPT}</script><img src=x onerror=${SCRIPT}><svg onload=${SCRIPT}></svg>`;
const TEXT = MARKUP + `\n\n[a link](javascript:${SCRIPT}) <a href="javascript:${SCRIPT}">b</a>\n\n`
	+ `![x](x"onerror="${SCRIPT})\n`;

/** A run whose names, texts, params, tags, lines, tables and files are all markup; returns its id. */
async function scripted() {
	const id = 'ab'.repeat(16);
	const file = path.join(here.logdir, 'scripts.jsonl');
	const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="${SCRIPT}"/>`;
	writeFileSync(path.join(here.logdir, 'own.svg'), svg);
	writeFileSync(path.join(here.logdir, 'own.html'), MARKUP);
	const lines = [{ dptrack_runs: 1 }, { run: { id, experiment: MARKUP, name: MARKUP, start: 1.7e9 } },
		{ param: [MARKUP, MARKUP] }, { tag: [MARKUP, MARKUP] }, { environment: ['host', MARKUP] },
		{ code: ['commit', MARKUP] }, { note: TEXT },
		{ points: [['loss', 1, 1.7e9, 1], ['loss', 2, 1.7e9, 0.5]] },
		{ text: ['words', 2, 1.7e9, { text: TEXT }] }, { console: [2, 1.7e9, MARKUP] },
		{ table: ['rows', 2, 1.7e9, { columns: [MARKUP, 'b'], data: [[MARKUP, 1]] }] },
		...['own.svg', 'own.html'].map((name) => ({ file: [name, path.join(here.logdir, name)] })),
		{ end: ['failed', 1.7e9 + 9] }];
	writeFileSync(file, lines.map((line) => JSON.stringify(line) + '\n').join(''));
	execFileSync(path.join(builddir, 'dptrack'), ['import', file, '--url', here.server.url]);
	for (const [name, body] of [['plot.svg', svg], ['page.html', MARKUP], ['page.md', TEXT], ['odd.txt', MARKUP]])
		await fetch(`${here.server.url}api/v1/runs/${id}/artifacts/${name}`, { method: 'PUT', body });
	return id;
}

test('no text or file of a client runs as a script (aim#3333)', async (t) => {
	const id = await scripted();
	const report = await here.ask('POST', 'reports', { experiment: MARKUP, name: MARKUP, text: TEXT
		+ '\n```panel\nmetrics: loss\ntitle: ' + MARKUP + '\n```\n' });
	const e = '?e=' + encodeURIComponent(MARKUP);
	await here.ask('POST', 'views', { experiment: MARKUP, name: MARKUP, query: e });
	const page = await here.open(t);
	page.on('dialog', (d) => assert.fail(d.message()));
	await page.goto('about:blank');
	await page.setContent(MARKUP);
	const ran = () => page.evaluate(() => globalThis.ran);
	await until(ran, (r) => r === 1, 'it runs in a page without a defence');
	const files = ['plot.svg', 'page.html', 'page.md', 'odd.txt'];
	for (const query of ['?all', e, e + '&side', e + '&alerts', e + '&report', '?report=' + report.id,
		'?models', '?trash', ...['', 'charts', 'media', 'console', 'files', 'compare'].map((tab) =>
			`?r=${id}&t=${tab}`)]) {
		await page.goto(here.server.url + query);
		await page.waitForSelector('main:not(.wait) *', WAIT);
		if (query.endsWith('files'))
			for (const name of files) {
				await page.click(`.artifacts .files a:text-is("${name}")`, WAIT);
				await says(page, '.preview', new RegExp(name.replace('.', '\\.')));
			}
		await page.waitForTimeout(200);
		assert.equal(await page.locator('[href^="javascript:" i], [onerror], [onload]').count(), 0, query);
		assert.equal(await ran(), undefined, query);
	}
	for (const name of files) { // opened by their own address
		const address = `${here.server.url}api/v1/runs/${id}/artifacts/${name}`;
		const shown = await page.goto(address).catch(() => null);
		assert.equal(shown !== null, /txt|md/.test(name), `${name}: a text or a download`);
		assert.equal(await ran(), undefined, name);
	}
	await page.goto(here.server.url + '?report=' + report.id);
	const [download] = await Promise.all([page.waitForEvent('download'),
		page.click('button:text-is("Save as HTML")')]);
	const html = await readFile(await download.path(), 'utf8');
	await page.goto('about:blank'); // without the server's policy
	await page.setContent(html);
	await page.waitForTimeout(200);
	assert.equal(await ran(), undefined, 'a saved report');
});

test('earlier versions are shown unchanged, and one is restored', async (t) => {
	const made = await here.ask('POST', 'reports', { experiment: 'week', name: 'plan', text: 'one' });
	await here.ask('PATCH', 'reports/' + made.id, { text: 'two\n\n```panel\nmetric: x\nmetrics: no/such\n```' });
	const page = await here.open(t, `?report=${made.id}`);
	await says(page, '.reporttext', /two.*Not understood: metric: x.*no points of these metrics/s);
	await page.selectOption('main select', '1');
	await says(page, '.reporttext', /not the newest.*one/s);
	await page.waitForURL(/edition=1/);
	assert.equal(await page.locator('button:text-is("Edit")').count(), 0);
	await page.click('button:text-is("Restore this version")');
	await says(page, '.reporttext', /version 3.*one/s);
	await page.goBack();
	await page.goto(here.server.url + '?report');
	await page.click('[aria-label="Delete plan"]');
	await says(page, '[role=status]', /plan is deleted/);
	await page.click('[role=status] button:text-is("Undo")');
	await page.click('main td a:text-is("plan")');
	await says(page, '.reporttext', /one/);
	await page.goto(here.server.url + '?report=999999');
	await says(page, 'main', /no report 999999/);
});

for (const [scheme, width] of [['light', 1280], ['dark', 390]])
	test(`axe finds nothing serious in a report (${scheme}, ${width} px)`, async (t) => {
		const { reports } = await here.ask('GET', 'reports?experiment=week');
		const r = reports.find((x) => x.name === 'first week');
		const page = await here.open(t, '');
		await page.emulateMedia({ colorScheme: scheme });
		await page.setViewportSize({ width, height: 844 });
		await page.goto(here.server.url + '?report=' + r.id);
		await charted(page, 'kept (2)', (d) => d.lines.length === 2);
		await charted(page, 'train/loss (3)', (d) => d.lines.length === 2);
		const wide = await page.evaluate(() => document.documentElement.scrollWidth);
		assert.ok(wide <= width, 'the report fits the screen');
		await page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
		const { violations } = await page.evaluate(() => globalThis.axe.run(document));
		assert.deepEqual(violations.filter((v) => /serious|critical/.test(v.impact)).map((v) =>
			`${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`), []);
	});

test('the editor has the focus, and the settings of a panel are fields', async (t) => {
	await run('fields', [3, 2, 1]);
	const page = await here.open(t, '?e=week');
	const { id } = await here.ask('POST', 'reports', { experiment: 'week', name: 'fields', text: '' });
	await page.goto(`${here.server.url}?e=week&report=${id}`);
	await page.click('button:text-is("Edit")');
	await until(() => page.evaluate(() => document.activeElement.ariaLabel), (l) => l === 'Text of the report');
	await page.click('.panelsettings summary');
	const field = (label) => page.locator(`.panelsettings label:has-text("${label}") input`);
	await field('Title').fill('Loss of the week');
	await page.selectOption('.panelsettings select', 'elapsed');
	await field('X from').fill('1');
	await field('X to').fill('20');
	await field('Y to').fill('5');
	await field('Log y').check();
	await field('Smooth').fill('0.5');
	await field('Group by').fill('model, lr');
	await page.fill('[aria-label="Metrics of the panel"]', 'train/loss');
	await clean(page);
	await page.click('button:text-is("Add panel")');
	assert.equal((await page.inputValue('[aria-label="Text of the report"]')).trim(), ['```panel',
		'title: Loss of the week', 'metrics: train/loss', 'group: model, lr', 'x: elapsed', 'range: 1 20',
		'scale: log', 'limits: auto 5', 'smooth: 0.5', '```'].join('\n'));
	await page.click('.reporteditor button:text-is("Cancel")');
	await here.ask('DELETE', 'reports/' + id);
});
