// SPDX-License-Identifier: Apache-2.0
// Time from the request for the page until everything on the first screen is drawn (table, both charts), with a cold
// cache: at local speed, and through 10 Mbit/s with 40 ms latency. The twelve runs of tests/web/twelve.py.
import { drawn, launch } from '../web/browser.mjs';
import { real, serve } from '../web/serve.mjs';

const AIMS = { local: 0.3, slow: 1.0 };
const TIMES = { local: 5, slow: 3 };
const SLOW = { offline: false, latency: 40, downloadThroughput: 10e6 / 8, uploadThroughput: 10e6 / 8 };

/** Runs in the page from its start: records when the app is ready and when each chart on the screen has lines. */
function watch() {
	const look = () => {
		const charts = [...document.querySelectorAll('[data-chart]')].filter((c) => c.getBoundingClientRect().top < innerHeight);
		if (document.querySelector('.app[data-ready="true"]') && charts.length && charts.every((c) => c.chart?.drawn()?.lines.length)) {
			globalThis.drawnAt = performance.now();
			return;
		}
		requestAnimationFrame(look);
	};
	requestAnimationFrame(look);
}

async function once(browser, url, slow) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
	const page = await context.newPage();
	const cdp = await context.newCDPSession(page);
	await cdp.send('Network.enable');
	let bytes = 0;
	cdp.on('Network.loadingFinished', (e) => (bytes += e.encodedDataLength));
	if (slow) await cdp.send('Network.emulateNetworkConditions', SLOW);
	await page.addInitScript(watch);
	await page.goto(url, { waitUntil: 'commit' });
	await drawn(page);
	await page.waitForFunction(() => globalThis.drawnAt > 0);
	const seconds = (await page.evaluate(() => globalThis.drawnAt)) / 1000;
	await context.close();
	return { seconds, bytes };
}

const median = (l) => [...l].sort((a, b) => a - b)[l.length >> 1];

const server = await serve();
const browser = await launch();
const result = { server: real ? 'dptrack serve' : 'stand-in' };
try {
	await once(browser, server.url, false);
	for (const kind of ['local', 'slow']) {
		const all = [];
		for (let i = 0; i < TIMES[kind]; i++) all.push(await once(browser, server.url, kind === 'slow'));
		result[kind] = { median_s: median(all.map((a) => a.seconds)), min_s: Math.min(...all.map((a) => a.seconds)),
			max_s: Math.max(...all.map((a) => a.seconds)), aim_s: AIMS[kind], bytes: median(all.map((a) => a.bytes)) };
	}
} finally {
	await browser.close();
	await server.close();
}
if (process.argv.includes('--json')) console.log(JSON.stringify(result));
else {
	console.log(`first screen drawn, 12 runs, ${result.server}; seconds, cold cache`);
	console.log('where                 median    min    max    aim   KB received');
	for (const [kind, name] of [['local', 'local'], ['slow', '10 Mbit/s + 40 ms']]) {
		const r = result[kind];
		const n = (v) => v.toFixed(2).padStart(7);
		console.log(name.padEnd(20) + n(r.median_s) + n(r.min_s) + n(r.max_s) + n(r.aim_s) + (r.bytes / 1024).toFixed(0).padStart(14));
	}
}
