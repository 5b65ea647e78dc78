// SPDX-License-Identifier: Apache-2.0
// How the page moves while one reads it: the first row, frames while the pointer hovers over a chart, while the table
// is scrolled and while a chart is dragged and resized, and the heap while runs are live. Three stores, each with its
// aims:
//	metrics      200 runs of 2,000 metrics
//	runs         1,500 runs
//	live         8 live runs of 5 points a second, read for some minutes
//
//	tests/bench/page --live [--only NAME] [--minutes N] [--small] [--json]
//
// --minutes: how long the live runs are read (default: 10); the heap is compared with the one after a tenth of the
// time. --small: a tenth of the data, to try the program.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { chart, drawn, launch } from '../../web/browser.mjs';
import { ask, serveFolder } from '../../web/serve.mjs';
import { each, pause, rest } from './fill.mjs';

const option = (name, otherwise) => {
	const at = process.argv.indexOf('--' + name);
	return at < 0 ? otherwise : process.argv[at + 1];
};
const only = option('only', null);
const minutes = Number(option('minutes', 10));
const less = process.argv.includes('--small') ? 10 : 1;
const AT_ONCE = 4;
const OPENED = 5;
const STEPS = 400;
const LIVE = 8;
const TICK_MS = 200;
const SAMPLE_S = 6;
const HEAP_TAKEN = 5;
const SLOW_MS = 50;
/** Frames a second while a chart is arranged. */
const SMOOTH = 55;
const ROW = '.grid .body .row';
const PLOT = '[data-chart="train/loss"]';
const rows = [];

/** met: whether the value keeps the aim. */
function note(what, value, unit, aim, met) {
	rows.push({ what, value, unit, aim, met });
}

async function fill(n, act) {
	await each(n, AT_ONCE, act);
	await rest();
}

const loss = (i, step) => Math.exp(-step / 150) + 0.1 * Math.sin(step * (i + 1)) ** 2 + i / 1000;

/** Creates a run with a loss curve and one point of each of the metrics. */
async function made(url, experiment, i, metrics, live = false) {
	const { id } = await ask(url, 'runs', { experiment, name: `${experiment}-${i}`,
		params: { lr: String((i % 20) / 100), seed: String(i) } });
	const curve = Array.from({ length: live ? 1 : STEPS }, (_, k) =>
		({ key: 'train/loss', step: k + 1, value: loss(i, k + 1), wall_time: 1.7e9 + k }));
	const once = Array.from({ length: metrics }, (_, m) =>
		({ key: `layer${m % 40}/part${m}`, step: 1, value: (i * 31 + m) % 997, wall_time: 1.7e9 }));
	await ask(url, `runs/${id}/metrics`, { points: [...curve, ...once] });
	if (!live) await ask(url, 'runs/' + id, { status: 'finished' }, 'PATCH');
	return id;
}

/** Opens an experiment with a cold cache; returns the page and the seconds until its first row is painted. */
async function openedOnce(browser, url, experiment) {
	const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
	await page.addInitScript((q) => {
		const look = () => requestAnimationFrame(!document.querySelector(q) ? look
			: () => (globalThis.rowAt = performance.now()));
		requestAnimationFrame(look);
	}, ROW);
	await page.goto(`${url}?e=${experiment}`, { waitUntil: 'commit' });
	await page.waitForFunction(() => globalThis.rowAt > 0, null, { timeout: 120000 });
	const seconds = (await page.evaluate(() => globalThis.rowAt)) / 1000;
	await drawn(page);
	return { page, seconds };
}

/** Opens an experiment several times, the first time in a browser that has just started; notes the median. */
async function opened(browser, url, experiment) {
	const all = [];
	for (let i = 0; i < OPENED; i++) {
		await all.at(-1)?.page.context().close();
		all.push(await openedOnce(browser, url, experiment));
	}
	const seconds = all.map((o) => o.seconds).sort((a, b) => a - b)[OPENED >> 1];
	note(`${experiment}: first row, median of ${OPENED}`, seconds, 's', '0.5 at most', seconds <= 0.5);
	return all.at(-1).page;
}

/** Notes the share of frames below SLOW_MS while act(k), k = 0, 1, …, is repeated, and their number a second. */
async function frames(page, what, act, least = 0) {
	await page.evaluate(() => {
		const list = globalThis.took = [];
		let last = performance.now();
		const next = (now) => {
			list.push(now - last);
			last = now;
			if (globalThis.took === list) requestAnimationFrame(next);
		};
		requestAnimationFrame(next);
	});
	const end = performance.now() + SAMPLE_S * 1000;
	for (let k = 0; performance.now() < end; k++) await act(k);
	const took = await page.evaluate(() => {
		const list = globalThis.took;
		globalThis.took = null;
		return list.slice(1);
	});
	const share = took.filter((ms) => ms < SLOW_MS).length / took.length * 100;
	note(`${what}: frames below ${SLOW_MS} ms, of ${took.length}`, share, '%', '95 at least', share >= 95);
	note(`${what}: slowest frame`, Math.max(...took), 'ms', '', true);
	const rate = took.length * 1000 / took.reduce((a, b) => a + b);
	note(`${what}: frames`, rate, '/s', least ? `${least} at least` : '', rate >= least);
}

async function hover(page, what) {
	const box = await page.locator(PLOT).first().boundingBox();
	await frames(page, `${what}, hovering`, (k) => page.mouse.move(
		box.x + box.width * (0.1 + 0.6 * (k % 97) / 97), box.y + box.height * (0.2 + 0.6 * (k % 31) / 31)));
	await page.mouse.move(5, 5);
}

async function scroll(page, what) {
	const box = await page.locator('.grid').first().boundingBox();
	await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
	await frames(page, `${what}, scrolling`, (k) => page.mouse.wheel(0, k % 80 < 40 ? 120 : -120));
}

/** A chart follows the pointer by its caption; its corner does, which changes columns and rows of the grid. */
async function arrange(page, what) {
	const card = page.locator(`.chart:has(> ${PLOT})`).first();
	await card.scrollIntoViewIfNeeded();
	const { x, y, width, height } = await card.boundingBox();
	for (const [way, px, py] of [['dragging', x + 60, y + 14], ['resizing', x + width - 5, y + height - 5]]) {
		await page.mouse.move(px, py);
		await page.mouse.down();
		await frames(page, `${what}, ${way}`, (k) => page.mouse.move(px + 300 * Math.sin(k / 20),
			py - 120 * Math.sin(k / 13) ** 2), SMOOTH);
		await page.mouse.move(px, py);
		await page.mouse.up();
	}
}

/** Bytes of the heap after a collection: the least of several, because what a tick has left is not always collected. */
async function heap(page) {
	const cdp = await page.context().newCDPSession(page);
	let least = Infinity;
	for (let i = 0; i < HEAP_TAKEN; i++) {
		await cdp.send('HeapProfiler.collectGarbage');
		least = Math.min(least, (await cdp.send('Runtime.getHeapUsage')).usedSize);
		await pause(TICK_MS);
	}
	await cdp.detach();
	return least;
}

async function still(browser, url, experiment) {
	const page = await opened(browser, url, experiment);
	await hover(page, experiment);
	await scroll(page, experiment);
	await arrange(page, experiment);
	await page.context().close();
}

async function metrics(browser, url) {
	await fill(200 / less, (i) => made(url, 'metrics', i, 2000 / less));
	await still(browser, url, 'metrics');
}

async function runs(browser, url) {
	await fill(1500 / less, (i) => made(url, 'runs', i, 10));
	await still(browser, url, 'runs');
}

/** Writes a point of each run every TICK_MS; stop() resolves to the last step. */
function writing(url, ids) {
	let [step, stopped] = [1, false];
	const tick = async () => {
		while (!stopped) {
			const due = performance.now() + TICK_MS;
			step++;
			await Promise.all(ids.map((id, i) => ask(url, `runs/${id}/metrics`, { points: [
				{ key: 'train/loss', step, value: loss(i, step), wall_time: Date.now() / 1000 }] })));
			await pause(Math.max(0, due - performance.now()));
		}
	};
	const ended = tick();
	return { stop: async () => {
		stopped = true;
		await ended;
		return step;
	} };
}

async function live(browser, url) {
	const ids = [];
	for (let i = 0; i < LIVE; i++) ids.push(await made(url, 'live', i, 5, true));
	const writer = writing(url, ids);
	const page = await opened(browser, url, 'live');
	const began = performance.now();
	const until = (part) => pause(began + part * minutes * 60e3 - performance.now());
	await hover(page, 'live');
	await until(0.1);
	const first = await heap(page);
	await until(1);
	await hover(page, `live after ${minutes} min`);
	const growth = (await heap(page) / first - 1) * 100;
	note(`live: heap after ${minutes} min over ${minutes / 10} min (${(first / 1048576).toFixed(1)} MiB)`,
		growth, '%', '10 at most', growth <= 10);
	const step = await writer.stop();
	await pause(4000);
	const lacks = step - (await chart(page, 'train/loss')).to;
	note(`live: steps of ${step} that the chart lacks 4 s after the last`, lacks, '', '0', lacks === 0);
	await page.context().close();
}

const folder = mkdtempSync(path.join(tmpdir(), 'dptrack-live-'));
const server = await serveFolder(folder);
const browser = await launch();
try {
	for (const [name, act] of Object.entries({ metrics, runs, live })) {
		if (only !== null && only !== name) continue;
		await act(browser, server.url);
	}
} finally {
	await browser.close();
	await server.close();
	rmSync(folder, { recursive: true, force: true });
}
if (process.argv.includes('--json')) console.log(JSON.stringify({ minutes, small: less > 1, rows }));
else for (const r of rows)
	console.log(`${r.what.padEnd(62)} ${r.value.toFixed(2).padStart(8)} ${r.unit.padEnd(3)} ${r.aim}`
		+ (r.met ? '' : '  MISSED'));
