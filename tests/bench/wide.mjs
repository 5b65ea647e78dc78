// SPDX-License-Identifier: Apache-2.0
// The page on a wide store: 1,500 runs of 1,500 metrics and 150 params, an experiment of one run, 2,000 experiments.
// Times inside the page, cold cache, medians of five, with their targets.
//
//	tests/bench/page --wide [--json] [--runs N] [--metrics N] [--params N] [--experiments N] [--folder DIR]
//
// --folder keeps the store there, and uses an existing one as it is: filling it takes minutes.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { launch } from '../web/browser.mjs';
import { ask, serveFolder } from '../web/serve.mjs';
import { each, rest } from './parts/fill.mjs';

const SLOW = { offline: false, latency: 40, downloadThroughput: 10e6 / 8, uploadThroughput: 10e6 / 8 };
const ROUNDS = 5;
const AT_ONCE = 6;
const WAIT = { timeout: 120000 };

const option = (name, otherwise) => {
	const at = process.argv.indexOf('--' + name);
	return at < 0 ? otherwise : Number(process.argv[at + 1]);
};
const size = { runs: option('runs', 1500), metrics: option('metrics', 1500), params: option('params', 150),
	experiments: option('experiments', 2000) };
const median = (l) => [...l].sort((a, b) => a - b)[l.length >> 1];

async function made(url, experiment, i, metrics, params) {
	const run = await ask(url, 'runs', { experiment, name: `${experiment}-${i}`, start_time: 1.7e12 + i,
		params: Object.fromEntries(Array.from({ length: params }, (_, p) => [`param${p}`, String((i * 7 + p) % (p + 2))])) });
	const points = Array.from({ length: metrics }, (_, m) => ({ key: `layer${m % 40}/head${m}`, step: 1,
		value: (i * 31 + m) % 997, wall_time: 1.7e9 }));
	await ask(url, `runs/${run.id}/metrics`, { points: [...points,
		{ key: 'train/loss', step: 1, value: 1 / (i + 1), wall_time: 1.7e9 }] });
	await ask(url, `runs/${run.id}`, { status: 'finished' }, 'PATCH');
}

async function fill(url) {
	await each(size.runs, AT_ONCE, (i) => made(url, 'wide', i, size.metrics, size.params));
	await made(url, 'small', 0, 1, 1);
	await each(size.experiments, AT_ONCE, (i) =>
		ask(url, 'runs', { experiment: `team${i % 20}/study ${i}`, name: 'one', params: {} }));
	await rest();
}

/** Seconds from the request for a page until an element that the selector finds is painted. */
async function opened(browser, address, selector, slow) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
	const page = await context.newPage();
	if (slow) {
		const cdp = await context.newCDPSession(page);
		await cdp.send('Network.enable');
		await cdp.send('Network.emulateNetworkConditions', SLOW);
	}
	await page.addInitScript((q) => {
		const look = () => {
			if (!document.querySelector(q)) return requestAnimationFrame(look);
			return requestAnimationFrame(() => (globalThis.shownAt = performance.now()));
		};
		requestAnimationFrame(look);
	}, selector);
	await page.goto(address, { waitUntil: 'commit' });
	await page.waitForFunction(() => globalThis.shownAt > 0, null, WAIT);
	const seconds = (await page.evaluate(() => globalThis.shownAt)) / 1000;
	return { seconds, page, context };
}

async function rounds(browser, address, selector, slow) {
	const all = [];
	for (let i = 0; i < ROUNDS; i++) {
		const o = await opened(browser, address, selector, slow);
		all.push(o.seconds);
		await o.context.close();
	}
	return median(all);
}

/** Seconds from a click, or words typed into a field, until test() holds in the page and the result is painted. */
function answered(page, { click, field, words }, shown) {
	return page.evaluate(async ([c, f, w, q]) => {
		const el = document.querySelector(c ?? f);
		const began = performance.now();
		if (c) el.click();
		else {
			el.value = w;
			el.dispatchEvent(new Event('input', { bubbles: true }));
		}
		const frame = () => new Promise((done) => requestAnimationFrame(done));
		const there = () => [...document.querySelectorAll(q.selector)].some((e) => e.textContent.includes(q.text));
		while (!there()) await frame();
		await frame();
		return (performance.now() - began) / 1000;
	}, [click, field, words, shown]);
}

/** Actions on the wide experiment once it is shown: columns, charts, goal. */
async function looked(browser, address) {
	const { page, context } = await opened(browser, address, '.app[data-ready="true"] .grid .body .row', false);
	const last = size.metrics - 1;
	const word = `head${last}`;
	const out = {};
	const button = async (name) => {
		await page.evaluate((n) => [...document.querySelectorAll('.head button')].find((b) => b.textContent.trim() === n)
			?.setAttribute('data-bench', n), name);
		return `[data-bench="${name}"]`;
	};
	out['column picker opens'] = await answered(page, { click: await button('Columns') }, { selector: '.picker .line', text: '' });
	out['a column is found'] = await answered(page, { field: '.picker input[type=search]', words: word },
		{ selector: '.picker .line', text: word });
	await page.keyboard.press('Escape');
	out['a chart is found'] = await answered(page, { field: 'input[aria-label="Find a chart"]', words: word },
		{ selector: '[data-chart]', text: '' });
	await page.evaluate(() => document.querySelector('.goal .pop button')?.setAttribute('data-bench', 'goal'));
	out['goals open'] = await answered(page, { click: '[data-bench="goal"]' }, { selector: '.goal .picker', text: '' });
	out['a goal is found'] = await answered(page, { field: '.goal .picker input', words: word },
		{ selector: '.goal .picker', text: word });
	await context.close();
	return out;
}

const kept = process.argv.includes('--folder') ? process.argv[process.argv.indexOf('--folder') + 1] : null;
const folder = kept ?? mkdtempSync(path.join(tmpdir(), 'dptrack-wide-'));
const filled = existsSync(path.join(folder, 'dptrack.db'));
const server = await serveFolder(folder);
const browser = await launch();
const rows = [];
try {
	const began = performance.now();
	if (!filled) await fill(server.url);
	console.error(`filled in ${((performance.now() - began) / 1000).toFixed(0)} s: ${JSON.stringify(size)}`);
	const row = async (name, aim, seconds) => rows.push({ name, aim, seconds: await seconds });
	await opened(browser, server.url + '?e=small', '.grid .body .row', false).then((o) => o.context.close());
	await row('first row, local', 0.5, rounds(browser, server.url + '?e=wide', '.grid .body .row', false));
	await row('first row, 10 Mbit/s + 40 ms', 1.5, rounds(browser, server.url + '?e=wide', '.grid .body .row', true));
	await row('an experiment of one run beside it', 0.3, rounds(browser, server.url + '?e=small', '.grid .body .row', false));
	await row(`${size.experiments} experiments`, 0.3, rounds(browser, server.url + '?all', 'main.experiments tbody tr', false));
	const looks = [];
	for (let i = 0; i < ROUNDS; i++) looks.push(await looked(browser, server.url + '?e=wide'));
	for (const name of Object.keys(looks[0])) await row(name, 0.1, median(looks.map((l) => l[name])));
} finally {
	await browser.close();
	await server.close();
	if (!kept) rmSync(folder, { recursive: true, force: true });
}
if (process.argv.includes('--json')) console.log(JSON.stringify({ size, rows }));
else {
	console.log(`${size.runs} runs x ${size.metrics} metrics x ${size.params} params; seconds, cold cache`);
	console.log('what'.padEnd(40) + 'seconds    aim');
	for (const r of rows) console.log(r.name.padEnd(40) + r.seconds.toFixed(3).padStart(7) + r.aim.toFixed(1).padStart(7));
}
