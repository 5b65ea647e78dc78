// SPDX-License-Identifier: Apache-2.0
// The page with the twelve runs in a real browser: what a reader must see at once, bytes transferred, keyboard, phone,
// both themes, live updates. Numbers are compared with what the charts report as drawn.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { get } from 'node:http';
import { brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { chart, charted, drawn, launch, open, require, says, until } from './browser.mjs';
import { dist, real, serve } from './serve.mjs';
import * as standin from './devserver.mjs';

const FIRST_BYTES = 75000;
const DATA_REQUESTS = 3;
const QUIET_MS = 3500;
const TABS = 5;

let browser;
let server;
before(async () => {
	server = await serve();
	browser = await launch();
});
after(async () => {
	await browser?.close();
	await server?.close();
});

/** Requests for data that the first screen waits for or draws. */
const isData = (r) => r.url.includes('/api/') && !/\/api\/v1\/(events|changes|session)/.test(r.url);

/** Opens the page of the twelve runs and waits until it is drawn; console errors and exceptions fail the test. */
async function page(t, { query = '', address = server.url, wait = true, ...options } = {}) {
	const o = await open(browser, address + query, options);
	t.after(async () => {
		await o.context.close();
		assert.deepEqual(o.seen.complaints, []);
	});
	if (wait) await drawn(o.page);
	return o;
}

const rowNames = (p) => p.$$eval('.grid .body .row', (rows) => rows.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)
	.map((r) => r.querySelector('a').textContent));
const idOf = (p, name) => p.evaluate((n) => [...document.querySelectorAll('.grid .body .row')]
	.find((r) => r.querySelector('a').textContent === n).dataset.run, name);

test('the first screen is small, including styles', () => {
	const html = readFileSync(path.join(dist, 'index.html'), 'utf8');
	const names = ['index.html', ...[...html.matchAll(/(?:href|src)="([\w-]+\.(?:js|css))"/g)].map((m) => m[1])];
	assert.ok(names.some((f) => f.endsWith('.js')) && names.some((f) => f.endsWith('.css')), names.join());
	const bytes = names.reduce((n, f) =>
		n + gzipSync(readFileSync(path.join(dist, f)), { level: 9 }).length, 0);
	console.log(`# first screen: ${bytes} bytes compressed in ${names.length} files`);
	assert.ok(bytes <= FIRST_BYTES, `${bytes} bytes`);
});

/** Resolves to the coding and the bytes of a reply as they were sent. */
const sent = (address, accepted) => new Promise((done, failed) => {
	get(address, { headers: { 'accept-encoding': accepted } }, async (r) => {
		const parts = [];
		for await (const part of r) parts.push(part);
		done([r.headers['content-encoding'], Buffer.concat(parts)]);
	}).on('error', failed);
});

test('the page is sent by brotli, gzip or plain, as the browser asks', { skip: !real && 'needs dptrack serve' },
	async () => {
	const html = readFileSync(path.join(dist, 'index.html'), 'utf8');
	const script = server.url + html.match(/src="([\w-]+\.js)"/)[1];
	const [, plain] = await sent(script, 'identity');
	const [gzip, asGzip] = await sent(script, 'gzip, deflate, br;q=0');
	const [brotli, asBrotli] = await sent(script, 'gzip, deflate, br, zstd');
	assert.deepEqual([gzip, brotli], ['gzip', 'br']);
	assert.ok(gunzipSync(asGzip).equals(plain) && brotliDecompressSync(asBrotli).equals(plain));
	assert.ok(asBrotli.length < 0.92 * asGzip.length, `${asBrotli.length} of ${asGzip.length} bytes`);
});

test('the first screen shows which run is best and what differs, without a click', async (t) => {
	const { page: p, seen } = await page(t);
	const data = seen.requests.filter(isData).length;
	const names = await rowNames(p);
	assert.equal(names.length, 12);
	assert.equal(names[0], 'resnet-base');
	assert.deepEqual(new Set(names.slice(10)), new Set(['resnet-ddp2', 'cnn-ddp4-lr0.8']),
		'failed and diverged runs are listed last');
	assert.equal(await p.textContent('.grid b.best'), '0.9321');
	const heads = await p.$$eval('.grid .head .cell',
		(l) => l.map((c) => ({ text: c.textContent, right: c.getBoundingClientRect().right })));
	for (const k of ['model', 'strategy', 'worldsize', 'precision', 'batchsize', 'lr', 'seed', 'top1best'])
		assert.ok(heads.some((h) => h.text.replace(/[\s▾▴]/g, '') === k && h.right <= 1280),
			`column ${k} is visible`);
	assert.deepEqual(heads.slice(1, 5).map((h) => h.text.replace(/[\s▾▴]/g, '')),
		['top1best', 'Δpoints', 'Status', 'model'], 'how a run did comes right after the name');
	const last =
		await p.$$eval('.grid .body .row', (l) => Math.max(...l.map((r) => r.getBoundingClientRect().bottom)));
	const charts = await p.$$eval('[data-chart]',
		(l) => l.slice(0, 2).map((c) => ({ key: c.dataset.chart, ...c.getBoundingClientRect().toJSON() })));
	assert.deepEqual(charts.map((c) => c.key), ['train/loss', 'epoch/top1']);
	for (const c of charts)
		assert.ok(c.top > last && c.bottom <= 800 && c.height > 200 && c.width > 400, JSON.stringify(c));
	assert.ok(data <= DATA_REQUESTS,
		`${data} data requests: ${seen.requests.filter(isData).map((r) => r.url).join(' ')}`);
});

test('no foreign host is contacted, and an idle page sends nothing', async (t) => {
	const { page: p, seen } = await page(t);
	await p.waitForTimeout(1000);
	const before = seen.requests.length;
	await p.waitForTimeout(QUIET_MS);
	assert.equal(seen.requests.length, before, seen.requests.slice(before).map((r) => r.url).join(' '));
	const open = seen.requests.filter((r) => /\/api\/v1\/(events|changes)/.test(r.url));
	assert.ok(open.length <= 1, `${open.length} open requests`);
	const host = new URL(server.url).host;
	for (const r of seen.requests) assert.ok(r.url.startsWith('data:') || new URL(r.url).host === host, r.url);
});

test('the spike of one step is drawn at full range and described in words', async (t) => {
	const { page: p } = await page(t);
	const id = await idOf(p, 'cnn-base-s3');
	const d = await chart(p, 'train/loss');
	const l = d.lines.find((x) => x.id === id);
	assert.ok(Math.abs(l.top - 4.85) < 1e-6 && l.topX === 337, JSON.stringify(l));
	assert.ok(d.hi >= 4.85 && l.topPixel >= 0);
	assert.ok(d.marks.some((m) => m.id === id && /4\.85/.test(m.text)));
	assert.match(await p.textContent(`[data-run="${id}"] .c-status`), /spike 4\.85 at step 337/);
	await p.click(`[data-run="${id}"] .c-status button`);
	await charted(p, 'train/loss', (z) => z.from > 250 && z.to < 420 && z.from < 337 && z.to > 337);
	await p.waitForURL(/[?&]z=/);
});

test('the NaN and the failure are marked and neither hide nor flatten other runs', async (t) => {
	const { page: p } = await page(t);
	const nan = await idOf(p, 'cnn-ddp4-lr0.8');
	const failed = await idOf(p, 'resnet-ddp2');
	const loss = await chart(p, 'train/loss');
	assert.equal(loss.lines.length, 12);
	assert.equal(loss.marks.find((m) => m.id === nan && m.kind === 'nan-cross')?.x, 400);
	assert.equal(loss.marks.find((m) => m.id === nan && m.kind === 'hollow-end')?.x, 399);
	assert.ok(loss.marks.some((m) => m.id === nan && m.kind === 'flag-nan' && /NaN/.test(m.text)));
	assert.ok(loss.marks.some((m) => m.id === failed && m.kind === 'failed-end'));
	assert.match(await p.textContent(`[data-run="${nan}"] .c-status`), /NaN from step 400/);
	assert.match(await p.textContent(`[data-run="${failed}"] .c-status`), /failed after step 267/);
	const top1 = await chart(p, 'epoch/top1');
	assert.equal(top1.lines.length, 12);
	assert.ok(top1.lo > 0.5, `the diverged run does not scale the axis: ${top1.lo}`);
	assert.ok(top1.marks.some((m) => m.id === nan && m.kind === 'arrow-bottom' && m.text === '0.1'));
	assert.ok(top1.marks.some((m) => m.text === '1 run outside'));
	await p.click('button:has-text("Full range")');
	await charted(p, 'epoch/top1', (d) => d.lo < 0.2);
	await p.waitForURL(/[?&]full/);
});

for (const colorScheme of ['light', 'dark'])
	test(`no two runs look alike (${colorScheme})`, async (t) => {
		const { page: p } = await page(t, { colorScheme });
		const { lines } = await chart(p, 'train/loss');
		const rgb = (h) => [1, 3, 5].map((i) => parseInt(h.slice(i, i + 2), 16));
		const far = (a, b) => Math.hypot(...rgb(a).map((v, i) => v - rgb(b)[i]));
		for (const a of lines)
			for (const b of lines)
				if (a.id < b.id)
					assert.ok(a.dash.join() !== b.dash.join() || far(a.colour, b.colour) > 30,
						`${a.colour} ${b.colour}`);
	});

test('a row and its lines are highlighted together, and the pointer reads all values', async (t) => {
	const { page: p } = await page(t);
	const id = await idOf(p, 'mlp-base');
	await p.hover(`[data-run="${id}"] .c-p`);
	await p.waitForFunction((i) => [...document.querySelectorAll('[data-chart]')].slice(0, 2)
		.every((c) => c.dataset.lit === i), id);
	const d = await chart(p, 'train/loss');
	const spike = await idOf(p, 'cnn-base-s3');
	const at = await p.locator('[data-chart="train/loss"]').boundingBox();
	const box = { left: at.x + d.box.left, top: at.y + d.box.top, width: d.box.width };
	const top = d.lines.find((l) => l.id === spike).topPixel;
	await p.mouse.move(box.left + (box.width * (337 - d.from)) / (d.to - d.from), box.top + top + 30);
	await p.waitForSelector(`[data-run="${spike}"].lit`);
	const read = () => p.$$eval('.readings:not([hidden]) li', (l) => l.map((e) =>
		[e.querySelector('.name').textContent, e.querySelector('b').textContent]));
	const rows = await until(read, (l) => l.length === 12);
	assert.deepEqual(rows[0], ['cnn-base-s3', '4.8500']);
	assert.equal((await rowNames(p))[0], 'resnet-base', 'the table keeps its order');
	await p.mouse.move(5, 5);
	await until(read, (l) => l.length === 0);
});

test('the highlight of a row ends once the focus has left the table', async (t) => {
	const { page: p } = await page(t);
	const lit = (is) => p.waitForFunction((l) => [...document.querySelectorAll('[data-chart]')].slice(0, 2)
		.every((c) => (c.dataset.lit !== '') === l), is);
	await p.focus('.grid [tabindex="0"]');
	await p.keyboard.press('ArrowDown');
	await lit(true);
	while (await p.evaluate(() => document.activeElement.closest('.grid') !== null)) await p.keyboard.press('Tab');
	await lit(false);
	await p.keyboard.press('Shift+Tab');
	await lit(true);
	for (const key of ['Space', 'ArrowDown', 'Space']) await p.keyboard.press(key);
	await p.click('button:text-is("Compare")');
	await p.click('text="Table and charts"');
	await p.mouse.move(5, 5);
	await lit(false);
	await p.click('button:text-is("Clear")');
	await lit(false);
});

/** Whether the focused element has a visible outline or focus ring. */
const focusInfo = (p) => p.evaluate(() => {
	const e = document.activeElement;
	const s = getComputedStyle(e);
	return { tag: e.tagName, cls: e.className, name: e.getAttribute('aria-label') ?? e.textContent.slice(0, 30),
		grid: !!e.closest('.grid'),
		body: e === document.body,
		visible: (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 1) || s.boxShadow !== 'none' };
});

test('keyboard: Tab reaches the table, focus is always visible, shortcuts work', async (t) => {
	const { page: p } = await page(t);
	let presses = 0;
	do {
		await p.keyboard.press('Tab');
		presses++;
	} while (presses < 20 && !(await focusInfo(p)).grid);
	console.log(`# Tab presses to the table: ${presses}`);
	assert.ok(presses <= TABS, `${presses} presses`);
	for (const key of ['ArrowDown', 'ArrowDown', 'ArrowRight', 'ArrowUp', 'ArrowLeft', 'End', 'Home', 'PageDown',
		'PageUp']) {
		await p.keyboard.press(key);
		await until(() => focusInfo(p), (f) => f.grid && f.visible, `${key}: focus is visible in the table`);
	}
	const shown = async () => (await chart(p, 'train/loss')).lines.length;
	await p.keyboard.press('v');
	await charted(p, 'train/loss', (d) => d.lines.length === 11);
	assert.equal(await p.locator('.row[data-shown="false"]').count(), 1);
	await p.keyboard.press('v');
	await charted(p, 'train/loss', (d) => d.lines.length === 12);
	assert.equal(await shown(), 12);
	for (let i = 0; i < 40; i++) {
		await p.keyboard.press('Tab');
		const f = await focusInfo(p);
		assert.ok(f.body || f.visible, `focus is not visible on ${JSON.stringify(f)}`);
	}
	await p.evaluate(() => document.activeElement.blur());
	await p.keyboard.press('/');
	assert.equal((await focusInfo(p)).name, 'Filter runs');
	await p.keyboard.type('resnet');
	await p.waitForFunction(() => document.querySelectorAll('.grid .body .row').length === 3);
	await p.keyboard.press('Escape');
	await p.waitForFunction(() => document.querySelectorAll('.grid .body .row').length === 12);
	assert.ok((await focusInfo(p)).grid, 'Escape returns to the table');
	await p.keyboard.press('Home');
	await p.keyboard.press('Enter');
	await p.waitForSelector('.runpage h1');
	await p.waitForURL(/[?&]r=/);
	await p.goBack();
	await p.waitForSelector('.grid');
});

for (const [name, query] of [['comparison', ''], ['run', 'run'], ['experiments', '?all']])
	test(`390 px: nothing scrolls sideways (${name})`, async (t) => {
		const { page: p } = await page(t,
			{ width: 390, height: 844, query: query === 'run' ? '' : query, wait: query !== '?all' });
		if (query === 'run') await p.click('.cards .name >> nth=4');
		await p.waitForTimeout(500);
		const w = await p.evaluate(() =>
			[document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]);
		assert.ok(w[0] <= 390 && w[1] <= 390, String(w));
		const wide = await p.$$eval('body *', (l) =>
			l.filter((e) => e.getBoundingClientRect().right > 391 && !e.closest('.pairs, table, pre, svg'))
			.map((e) => e.className || e.tagName));
		assert.deepEqual(wide, []);
		if (query !== '') return;
		const card = await p.textContent('.cards .card');
		for (const word of ['resnet-base', '0.932', 'model', 'strategy', 'lr'])
			assert.ok(card.includes(word), word);
		assert.ok(await p.$eval('.cards .spark path', (e) => e.getAttribute('d').length > 20));
	});

test('in a narrow window the header shrinks and nothing is cut off', async (t) => {
	const { page: p } = await standinPage(t, standin.load()
		.map((r) => ({ ...r, run: { ...r.run, experiment: 'an-experiment-with-quite-a-long-name' } })));
	await drawn(p);
	for (const width of [730, 800, 1000]) {
		await p.setViewportSize({ width, height: 800 });
		const sides = await until(() => p.$$eval('.app > .head > *, .goal > *',
			(l) => [innerWidth, l.filter((e) => !e.matches('.goal, .grow') && e.offsetWidth)
			.map((e) => e.getBoundingClientRect()).flatMap((r) => [r.left, r.right])]),
			([w]) => w === width);
		const places = [...sides[1], width];
		assert.ok(places.every((x, i) => i === 0 || x >= places[i - 1]), `${width}: ${places}`);
	}
});

test('the legend of colours and dashes is readable at every width', async (t) => {
	const { page: p } = await page(t);
	for (const width of [730, 800, 1000, 1200, 1400]) {
		await p.setViewportSize({ width, height: 800 });
		const wrong = await until(() => p.evaluate(() => {
			const others = [...document.querySelectorAll('.toolbar > :not(.looks, .grow)')]
				.map((e) => e.getBoundingClientRect());
			const meets = (r, o) => r.right > o.left + 1 && o.right > r.left + 1 && r.bottom > o.top + 1
				&& o.bottom > r.top + 1;
			const words = [...document.querySelectorAll('.looks > *')];
			return [innerWidth, words.length, words.filter((e) => { const r = e.getBoundingClientRect();
				return r.left < 0 || r.right > innerWidth || others.some((o) => meets(r, o));
					}).map((e) => e.textContent)];
		}), ([w]) => w === width);
		assert.ok(wrong[1] > 4, `${width}: ${wrong}`);
		assert.deepEqual(wrong[2], [], `${width}`);
	}
});

test('a name too long for its bar ends in an ellipsis', async (t) => {
	const { page: p } = await page(t, { width: 390, height: 844 });
	const names = await until(() =>
		p.$$eval('.steptime .name', (l) => l.map((e) => ({ whole: e.scrollWidth <= e.clientWidth,
		dots: [...e.querySelectorAll('.cut > span')].some((c) => c.scrollWidth > c.clientWidth) }))),
		(l) => l.length === 12);
	assert.ok(names.every((n) => n.whole) && names.some((n) => n.dots) && names.some((n) => !n.dots),
		JSON.stringify(names));
});

for (const colorScheme of ['light', 'dark'])
	test(`axe finds nothing serious (${colorScheme})`, async (t) => {
		const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
		for (const [query, width] of [['', 1280], ['?all', 1280], ['', 390]]) {
			const { page: p } = await page(t, { query, width, colorScheme, wait: query !== '?all' });
			await p.waitForTimeout(300);
			for (const step of query === '' && width > 400 ? ['table', 'picker', 'run'] : ['as it opens']) {
				if (step === 'picker') await p.click('.head button:has-text("Columns")');
				if (step === 'run') {
					await p.keyboard.press('Escape');
					await p.click('.grid .body .row a');
					await p.waitForSelector('.runpage h1');
					await p.waitForTimeout(300);
				}
				await p.evaluate(axe);
				const { violations } = await p.evaluate(() => globalThis.axe.run(document,
					{ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] }));
				const where = ({ nodes }) => nodes.slice(0, 3)
					.map((n) => n.target + ' ' + n.failureSummary).join(' | ');
				const serious = violations.filter((v) => ['serious', 'critical'].includes(v.impact))
					.map((v) => `${v.id}: ${where(v)}`);
				assert.deepEqual(serious, [], `${query || 'comparison'} ${width} ${step}`);
			}
		}
	});

test('a link shows another reader the same view', async (t) => {
	const { page: p } = await page(t);
	await p.selectOption('.goal select', 'epoch/val_loss');
	await p.click('button:has-text("Log y")');
	await p.click('button:has-text("Time")');
	await p.hover('.grid .body .row');
	await p.click('.grid .body .row .shows');
	await charted(p, 'train/loss', (d) => d.lines.length === 11 && d.to < 300 && d.to > 100);
	await p.waitForURL(/[?&]o=/);
	const seen = async (q) => [await rowNames(q),
		(await chart(q, 'train/loss')).lines.map((l) => [l.id, l.colour, l.dash]),
		await q.locator('.grid .head').textContent()];
	const { page: other } = await page(t, { query: new URL(p.url()).search });
	assert.deepEqual(await seen(other), await seen(p));
	assert.ok(new URL(p.url()).search.length < 200, p.url());
	const x = await chart(other, 'train/loss');
	assert.ok(x.to < 300 && x.to > 100, `seconds since the start of each run: ${x.to}`);
});

test('sorting, columns and the filter', async (t) => {
	const { page: p } = await page(t);
	await p.click('.grid .head .cell:has-text("lr")');
	await p.waitForFunction(() =>
		document.querySelector('.grid .head .cell[aria-sort="ascending"]')?.textContent.includes('lr'));
	const at = await p.getAttribute('.grid .head .cell:has-text("lr")', 'aria-colindex');
	const lr = await p.$$eval('.grid .body .row', (rows, i) => rows.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)
		.map((r) => Number(r.children[i - 1].textContent)), at);
	assert.deepEqual(lr, [...lr].sort((a, b) => a - b));
	await p.click('.head button:has-text("Columns")');
	await p.fill('.picker input[type=search]', 'train/loss min');
	await p.click('.picker .line >> nth=0');
	await p.waitForFunction(() => [...document.querySelectorAll('.grid .head .cell')]
		.some((c) => /loss\s*min/.test(c.textContent)));
	await p.keyboard.press('Escape');
	await p.fill('input[aria-label="Filter runs"]', 'ddp bf16');
	await p.waitForFunction(() => document.querySelectorAll('.grid .body .row').length === 3);
	await p.waitForURL(/q=ddp\+bf16/);
});

test('a filter expression is sent to the server, and its error is shown', { skip: !real && 'needs dptrack serve' },
	async (t) => {
	const { page: p, seen } = await page(t);
	await p.fill('input[aria-label="Filter runs"]', 'metrics."epoch/top1".max > 0.91 AND params.world_size = 1');
	await p.waitForFunction(() => document.querySelectorAll('.grid .body .row').length === 3);
	await p.fill('input[aria-label="Filter runs"]', 'params.lr > > 1');
	await p.waitForSelector('.head > .problem');
	seen.complaints.length = 0;
});

async function standinPage(t, all) {
	const s = await standin.start({ dist, all });
	const o = await page(t, { address: s.url, wait: false });
	t.after(() => s.close());
	return o;
}

test('more than 10,000 runs: the newest are loaded, with a notice; few rows exist; the table responds', async (t) => {
	const { page: p } = await standinPage(t, standin.many(11500));
	await p.waitForFunction(() => document.querySelector('.grid')?.getAttribute('aria-rowcount') === '10001', null,
		{ timeout: 20000 });
	await drawn(p);
	await p.waitForSelector('.facts:has-text("a filter such as")', { timeout: 20000 });
	assert.ok(await p.locator('.grid .body .row').count() < 60);
	assert.ok((await chart(p, 'train/loss')).lines.length <= 16, 'not all runs are drawn by default');
	const took = await p.evaluate(async () => {
		const g = document.querySelector('.grid');
		const t0 = performance.now();
		g.scrollTop = 5000 * 27;
		await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		return performance.now() - t0;
	});
	await p.waitForSelector('.grid .body .row[aria-rowindex="5003"]');
	console.log(`# a jump to row 5000 of 10000: ${took.toFixed(0)} ms`);
	for (let i = 0; i < TABS && !(await focusInfo(p)).grid; i++) await p.keyboard.press('Tab');
	await p.keyboard.press('ArrowDown');
	await until(() => focusInfo(p), (f) => f.grid);
});

/** A run with the given series of a few points each. */
function made(name, series, o = {}) {
	const list = Object.fromEntries(Object.entries(series)
		.map(([k, ys]) => [k, ys.map((v, i) => ({ s: i + 1, w: 1e9 + i, v }))]));
	const metrics = Object.fromEntries(Object.entries(list)
		.map(([k, l]) => [k, { count: l.length, first: l[0].v, last: l.at(-1).v,
		min: Math.min(...l.map((q) => q.v)), max: Math.max(...l.map((q) => q.v)), first_step: 1,
		last_step: l.length, min_step: 1, max_step: 1 }]));
	return { series: list, run: { id: Buffer.from(name.padEnd(16, '0').slice(0, 16)).toString('hex'), name,
		experiment: 'odd', status: 'finished', start_time: 1e12, end_time: 1e12 + 60000,
		params: {}, tags: {}, metrics, notes: '', alerts: [], ...o } };
}

test('runs without accuracy, a single run, a run without data, 2000 metrics', async (t) => {
	const gpt = [made('gpt-a', { 'train/loss': [9, 5, 4], 'val/loss': [5, 4.2] }),
		made('gpt-b', { 'train/loss': [9, 6, 3.9] })];
	const { page: p } = await standinPage(t, gpt);
	await drawn(p);
	assert.equal(await p.inputValue('.goal select'), 'val/loss');
	const one = await standinPage(t, [made('only', { loss: [3, 2, 1] })]);
	await drawn(one.page);
	assert.equal((await chart(one.page, 'loss')).lines.length, 1);
	const bare = await standinPage(t, [made('bare', {}, { status: 'running' })]);
	await bare.page.waitForSelector('.grid .body .row');
	assert.match(await bare.page.textContent('.grid .c-status'), /running/);
	const wide =
		Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`group${i % 20}/metric${i}`, [1, 2, i]]));
	const many = await standinPage(t, [made('wide', wide), made('wider', wide)]);
	await many.page.waitForSelector('.grid .body .row');
	await many.page.waitForTimeout(300);
	assert.ok(await many.page.locator('[data-chart]').count() < 60, 'charts are created on demand');
	await many.page.click('.head button:has-text("Columns")');
	await many.page.waitForSelector('.picker .line');
	assert.ok(await many.page.locator('.picker .line').count() < 40);
});

async function post(url, path_, body) {
	const r = await fetch(url + 'api/v1/' + path_,
		{ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
	const json = await r.json();
	assert.ok(r.ok, JSON.stringify(json));
	return json;
}

test('a running run appears and grows, and only new points are transferred',
	{ skip: !real && 'needs dptrack serve' }, async (t) => {
	const s = await serve();
	const { page: p, seen } = await page(t, { address: s.url });
	t.after(() => s.close());
	const run =
		await post(s.url, 'runs', { experiment: 'fashion', name: 'live', params: { model: 'cnn', lr: '0.3' } });
	const log = (from, to) =>
		post(s.url, `runs/${run.id}/metrics`, { points: Array.from({ length: to - from }, (_, i) => ({
		key: 'train/loss', step: from + i, value: 2 - (from + i) / 1000, wall_time: 1.8e9 + from + i })) });
	const points = (test) =>
		charted(p, 'train/loss', (d) => test(d.lines.find((l) => l.id === run.id)?.points ?? 0));
	await log(0, 200);
	await points((n) => n > 50);
	await p.waitForSelector(`[data-run="${run.id}"] .c-status:has-text("running, step 199")`);
	const before = (await chart(p, 'train/loss')).lines.find((l) => l.id === run.id).points;
	seen.requests.length = 0;
	let bytes = 0;
	p.on('response', async (r) => {
		if (r.url().includes('series/query')) bytes += (await r.body().catch(() => '')).length;
	});
	await log(200, 210);
	await points((n) => n === before + 10);
	const asked = seen.requests.filter((r) => r.url.includes('series/query'));
	assert.equal(asked.length, 1, 'one request for the new points');
	assert.ok(bytes < 8000, `${bytes} bytes for ten points`);
	const last = await chart(p, 'train/loss');
	assert.ok(last.to >= 599);
});
