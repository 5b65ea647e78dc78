// SPDX-License-Identifier: Apache-2.0
// The browser's part of tests/bench/team/live: opens a run's page on one process, sends points to another one, and
// prints, for each point as a line of JSON, the seconds until it was stored, reported by the page's process, drawn in
// the chart, shown in the table.
//
//	node live.mjs ADDRESS-THAT-STORES ADDRESS-THAT-SHOWS POINTS MIN-PAUSE MAX-PAUSE
import { charted, launch, open, says } from '../../web/browser.mjs';
import { ask } from '../../web/serve.mjs';

const [takes, shows] = process.argv.slice(2, 4);
const [points, least, most] = process.argv.slice(4).map(Number);
const KEY = 'loss';
/** Points stored before the page is opened. */
const BEFORE = 20;
const WAIT = { timeout: 30000 };

/** Seconds of the wall clock, which the page shares. */
const now = () => (performance.timeOrigin + performance.now()) / 1000;
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));
/** A point's value is its step, so that the highest is the newest. */
const log = (run, steps) => ask(takes, `runs/${run}/metrics`, { points: steps.map((step) => ({ key: KEY, step, value: step })) });

/** Runs in the page: records [newest step, time] at the first frame after the one that showed it, in chart and table.
*/
function watch(key) {
	const seen = (globalThis.seen = { chart: [], table: [] });
	const note = (list, step) => {
		if (step > (list.at(-1)?.[0] ?? 0)) list.push([step, (performance.timeOrigin + performance.now()) / 1000]);
	};
	const look = () => {
		const chart = document.querySelector(`[data-chart="${key}"]`)?.chart?.drawn();
		note(seen.chart, chart?.lines[0]?.top ?? 0);
		note(seen.table, Number(document.querySelector('.metrics tbody td:nth-child(5)')?.textContent ?? 0));
		requestAnimationFrame(look);
	};
	requestAnimationFrame(look);
}

/** Records when an event stream reported a change of the run. */
async function listen(run, told, signal) {
	const { body } = await fetch(shows + 'api/v1/events', { signal });
	let text = '';
	for await (const piece of body.pipeThrough(new TextDecoderStream())) {
		text += piece;
		const end = text.lastIndexOf('\n\n');
		if (end >= 0 && text.slice(0, end).includes(run)) told.push([Infinity, now()]);
		text = text.slice(end + 1);
	}
}

async function opened(browser, run) {
	const { page } = await open(browser, `${shows}?e=live&r=${run}`, { height: 1400 });
	await charted(page, KEY, (d) => d.lines[0]?.top === BEFORE);
	await says(page, '.metrics tbody td:nth-child(5)', new RegExp(`^${BEFORE}$`));
	await sleep(2); // until the page has loaded its later parts
	await page.evaluate(watch, KEY);
	return page;
}

async function send(run) {
	const sent = [];
	for (let step = BEFORE + 1; step <= BEFORE + points; step++) {
		await sleep(least + (most - least) * Math.random());
		const began = now();
		await log(run, [step]);
		sent.push({ step, began, taken: now() - began });
	}
	return sent;
}

/** Seconds from `began` until a list of [step, time] contains this step or a later one. */
const after = ({ step, began }, list) => list.find(([s, at]) => s >= step && at > began)[1] - began;

const browser = await launch();
const stop = new AbortController();
try {
	const { id } = await ask(takes, 'runs', { experiment: 'live', name: 'live' });
	await log(id, Array.from({ length: BEFORE }, (_, i) => i + 1));
	const page = await opened(browser, id);
	const told = [];
	listen(id, told, stop.signal).catch(() => undefined);
	await sleep(1);
	const sent = await send(id);
	await page.waitForFunction((last) => Object.values(globalThis.seen).every((l) => l.at(-1)?.[0] >= last), BEFORE + points, WAIT);
	while (!(told.at(-1)?.[1] > sent.at(-1).began)) await sleep(0.05);
	const seen = await page.evaluate(() => globalThis.seen);
	for (const p of sent) console.log(JSON.stringify({ taken: p.taken, told: after(p, told), chart: after(p, seen.chart),
		table: after(p, seen.table) }));
} finally {
	stop.abort();
	await browser.close();
}
