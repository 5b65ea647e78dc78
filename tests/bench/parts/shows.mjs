// SPDX-License-Identifier: Apache-2.0
// Waiting times of readers of large experiments, each with its target:
//	groups       the reply to /series of 200 runs in 20 groups
//	pictures     a step of the slider over 10,000 pictures of a run, until the picture is painted
//	console      a million lines of two ranks: the last line, and one that contains a word, are painted
//
//	tests/bench/page --shows [--only NAME] [--json] [--small]
//
// --small: a hundredth of the data, to try the program.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { launch } from '../../web/browser.mjs';
import { ask, builddir, serveFolder } from '../../web/serve.mjs';

const WAIT = { timeout: 120000 };
const less = process.argv.includes('--small') ? 100 : 1;
/** A line far from the console's end. */
const FAR = less === 1 ? 'step 200001:' : 'step 2001:';
const only = process.argv.includes('--only') ? process.argv[process.argv.indexOf('--only') + 1] : null;
const median = (l) => [...l].sort((a, b) => a - b)[l.length >> 1];
const seconds = (from) => (performance.now() - from) / 1000;
const rows = [];

function note(what, aim, list) {
	rows.push({ what, aim, median_s: median(list), max_s: Math.max(...list), times: list.length });
}

/** Runs act with a server on a folder that fill has written to. */
async function served(fill, act) {
	const folder = mkdtempSync(path.join(tmpdir(), 'dptrack-shows-'));
	fill(folder);
	const server = await serveFolder(folder);
	try {
		await act(server);
	} finally {
		await server.close();
		rmSync(folder, { recursive: true, force: true });
	}
}

async function groups(server) {
	const runs = Math.max(20, 200 / less);
	const points = 10000 / less;
	const ids = [];
	for (let i = 0; i < runs; i++) {
		const { id } = await ask(server.url, 'runs', { experiment: 'groups', name: 'r' + i,
			params: { lr: String((i % 20) / 100), seed: String(i) } });
		await ask(server.url, `runs/${id}/metrics`, { points: Array.from({ length: points }, (_, k) =>
			({ key: 'loss', step: k + 1, value: Math.exp(-k / points) + i / runs, wall_time: 1.7e9 + k })) });
		ids.push(id);
	}
	const question = { runs: ids, keys: ['loss'], buckets: 600, x: 'step', group_by: ['params.lr'], band: 'std' };
	const times = [];
	for (let i = 0; i < 21; i++) {
		const began = performance.now();
		const { groups: got } = await ask(server.url, 'series/query', question);
		times.push(seconds(began));
		if (got.length !== 20) throw new Error(`${got.length} groups`);
	}
	note(`/series of ${runs} runs of ${points} points in 20 groups`, 0.1, times.slice(1));
}

async function runPage(browser, url) {
	const { runs } = await ask(url, 'runs?experiment=told&limit=1', undefined, 'GET');
	const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
	await page.goto(`${url}?e=told&r=${runs[0].id}`);
	await page.waitForSelector('[data-media="seen/picture"] img', WAIT);
	await page.waitForSelector('section[aria-label=Console] h2 button', WAIT);
	return page;
}

/** Seconds of each move of the slider until the picture of the step is shown, decoded. */
function slid(page, moves) {
	return page.evaluate(async (n) => {
		const card = document.querySelector('[data-media="seen/picture"]');
		const slider = card.querySelector('input[type=range]');
		const frame = () => new Promise((done) => requestAnimationFrame(done));
		const times = [];
		for (let i = 0; i < n; i++) {
			const to = (i * 7919) % Number(slider.max);
			const began = performance.now();
			slider.value = to;
			slider.dispatchEvent(new Event('input', { bubbles: true }));
			const there = () => {
				const img = card.querySelector('img');
				return img?.alt === `Step ${to}` && img.complete && img.naturalWidth > 0;
			};
			while (!there()) await frame();
			await frame();
			times.push((performance.now() - began) / 1000);
		}
		return times;
	}, moves);
}

/** Seconds from a click, or typed words, until the console shows the text. */
function said(page, { click, words, shown }) {
	return page.evaluate(async ([c, w, text]) => {
		const frame = () => new Promise((done) => requestAnimationFrame(done));
		const began = performance.now();
		if (c) document.querySelector(c).click();
		else {
			const box = document.querySelector('.console input[type=search]');
			box.value = w;
			box.dispatchEvent(new Event('input', { bubbles: true }));
		}
		while (!document.querySelector('.console .screen')?.textContent.includes(text)) await frame();
		await frame();
		return (performance.now() - began) / 1000;
	}, [click, words, shown]);
}

async function told(server) {
	const browser = await launch();
	try {
		if (only !== 'console') {
			const page = await runPage(browser, server.url);
			note(`a step of the slider over ${10000 / less} pictures`, 0.1, await slid(page, 30));
			await page.context().close();
		}
		if (only === 'pictures') return;
		const opened = [];
		const searched = [];
		for (let i = 0; i < 5; i++) {
			const page = await runPage(browser, server.url);
			opened.push(await said(page, { click: 'section[aria-label=Console] h2 button', shown: '/1000000' }));
			searched.push(await said(page, { words: FAR, shown: FAR }));
			await page.context().close();
		}
		note(`the console of ${1e6 / less} lines opens`, 0.3, opened);
		note('it is searched', 0.5, searched);
	} finally {
		await browser.close();
	}
}

if (!only || only === 'groups') await served(() => {}, groups);
if (!only || only === 'pictures' || only === 'console')
	await served((folder) => execFileSync(path.join(builddir, 'tests/web/told_many'),
		[folder, String(10000 / less), String(1e6 / less)]), told);
if (process.argv.includes('--json')) console.log(JSON.stringify({ rows }));
else {
	console.log('what'.padEnd(58) + 'median      max    aim   (seconds)');
	for (const r of rows) console.log(r.what.padEnd(58) + r.median_s.toFixed(3).padStart(6)
		+ r.max_s.toFixed(3).padStart(9) + r.aim.toFixed(1).padStart(7));
}
