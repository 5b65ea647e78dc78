// SPDX-License-Identifier: Apache-2.0
// Runs side by side have their charts, and speeds where they share the work; tabs of a run show first what was asked
// for; a phone cuts no difference; CSV is UTF-8 also for spreadsheets; scatter plots and parallel axes become figures.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { charted, clean, says, until } from '../browser.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage();
const PHASES = { forward: 0.03, backward: 0.06, step: 0.1 };
const points = (key, n, value, more = {}) => Array.from({ length: n }, (_, i) =>
	({ key, step: i + 1, value: value(i + 1), wall_time: 1.8e9 + i * 0.1, ...more }));

async function run(experiment, name, params, list) {
	const { id } = await here.ask('POST', 'runs', { experiment, name, params });
	await here.ask('POST', `runs/${id}/metrics`, { points: list });
	await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	return id;
}

/** Runs with timed steps: [name, params]. */
async function timed(experiment, runs) {
	const ids = [];
	for (const [n, [name, params]] of runs.entries())
		ids.push(await run(experiment, name, { batch_size: '8', ...params }, [
			...points('train/loss', 60, (s) => (n + 1.234567) / s),
			...Object.entries(PHASES).flatMap(([k, v]) => points('phase/' + k, 60, (s) =>
				v * (n + 1) * (1 + s % 5 / 100), { rank: 0 }))]));
	return ids.map((id) => id.slice(0, 8)).join('.');
}

/** Opens a tab of a run whose system series are of these ranks. */
async function system(open, name, ranks) {
	const id = await run('tabs', name, {}, [...points('train/loss', 5, (s) => 1 / s),
		...ranks.flatMap((rank) => points('memory/rss_bytes', 5, (s) => s * 2 ** 30, { rank }))]);
	return open(`?e=tabs&r=${id}&t=system`);
}

const byRank = (page) => page.getAttribute('section[aria-label="By rank"] h2 button', 'aria-expanded', WAIT);
const top = (page, selector) => page.locator(selector).first().boundingBox().then((b) => b.y);

async function figure(page, name) {
	const button = page.getByLabel(`Figure of ${name}`, { exact: true });
	await button.click(WAIT);
	await page.waitForSelector('dialog.figurebox svg', WAIT);
	await clean(page);
	return async (kind) => {
		const [file] = await Promise.all([page.waitForEvent('download', WAIT),
			page.click(`dialog [aria-label="Save as ${kind}"]`)]);
		return readFile(await file.path());
	};
}

let filled = null;
/** Ten runs of two params. */
const swept = () => (filled ??= (async () => {
	for (let n = 0; n < 10; n++)
		await run('swept', 'r' + n, { lr: String(10 ** -(n % 5)), width: String(2 + n) },
			[...points('train/loss', 3, (s) => 1 / s), ...points('val/acc', 3, (s) => (n + s) / 20)]);
	return '?e=swept';
})());

const textsOf = (page, svg) => page.evaluate((text) => {
	const doc = new DOMParser().parseFromString(text, 'image/svg+xml');
	const all = (q) => [...doc.querySelectorAll(q)];
	return { texts: all('text').map((e) => e.textContent), wrong: doc.querySelector('parsererror'),
		discs: all('path[fill]:not([fill=none])').length, back: all('rect')[0].getAttribute('fill'),
		lines: all('path[stroke]').map((e) => e.getAttribute('stroke')),
		width: doc.documentElement.getAttribute('width') };
}, String(svg));

const cases = [
	['12: runs side by side have their charts; what cannot be separated is said once', async (open) => {
		const o = await timed('speeds', [['a', { workers: '1', precision: 'fp32' }],
			['b', { workers: '2', precision: 'bf16' }], ['c', { workers: '4', precision: 'fp16' }]]);
		const page = await open(`?e=speeds&side&o=${o}`);
		await charted(page, 'train/loss', (d) => d.lines.length === 3);
		await page.waitForSelector('.bought tbody tr', WAIT);
		const text = await page.textContent('main');
		assert.equal(text.match(/cannot be separated/g).length, 1);
		assert.match(text, /2 params changed at once/);
		await clean(page);
	}],
	['12: the speeds of different models are not compared', async (open) => {
		const o = await timed('models', [['mlp', { model: 'mlp' }], ['resnet', { model: 'resnet' }]]);
		const answer = await here.ask('GET', 'compare/why?'
			+ (await here.ask('GET', 'runs?experiment=models')).runs.map((r) => 'run=' + r.id).join('&'));
		assert.equal(answer.pairs.length, 1, 'they could be');
		const page = await open(`?e=models&side&o=${o}`);
		await charted(page, 'train/loss', (d) => d.lines.length === 2);
		await page.waitForTimeout(1500); // what follows the first screen
		assert.equal(await page.locator('.bought').count(), 0);
	}],
	['19: series by rank are open where a tab has nothing else', async (open) => {
		const page = await system(open, 'ranks alone', [0, 1]);
		await charted(page, 'memory/rss_bytes', (d) => d.lines.length === 2);
		assert.equal(await byRank(page), 'true');
	}],
	['19: series by rank are folded below others', async (open) => {
		const page = await system(open, 'ranks too', [-1, 0, 1]);
		await page.waitForSelector('[data-chart="memory/rss_bytes"]', WAIT);
		assert.equal(await byRank(page), 'false');
	}],
	['28: a phone cuts no difference of runs side by side', async (open) => {
		const o = await timed('phone', [['a', { lr: '0.1' }], ['b', { lr: '0.2' }]]);
		const page = await open(`?e=phone&side&o=${o}`, 390);
		await page.waitForSelector('.side td small', WAIT);
		const cut = await page.$$eval('.side > .scroll td', (l) => l.filter((e) => e.querySelector('small')
			&& e.scrollWidth > e.clientWidth).map((e) => e.textContent));
		assert.deepEqual(cut, []);
	}],
	['28: on a phone the facts of a run follow its title', async (open) => {
		const page = await open(`?e=alone&r=${await run('alone', 'x', {}, points('loss', 3, (s) => s))}`, 390);
		await page.waitForSelector('.runfacts', WAIT);
		const title = await page.locator('h1').boundingBox();
		assert.ok(await top(page, '.runfacts') - title.y - title.height < 16);
	}],
	['30: the CSV of a table begins with a byte order mark', async (open) => {
		const page = await open(await swept());
		await page.waitForSelector('.grid .body .row', WAIT);
		await page.click('.others > .pop > button');
		const [file] = await Promise.all([page.waitForEvent('download', WAIT),
			page.click('.others button:text-is("Download CSV")')]);
		assert.deepEqual([...(await readFile(await file.path())).subarray(0, 3)], [0xef, 0xbb, 0xbf]);
	}],
	['33, 34, 36, 45: facts are separated, tools level; places keep their colour, charts fade below tools',
		async (open) => {
		for (const n of [0, 1]) await run('same', 'r' + n, { n: String(n), model: 'x', bits: '8' },
			[...points('train/loss', 3, (s) => n + s), ...points('val/acc', 3, (s) => s / 9)]);
		const page = await open('?e=same', 1440);
		await says(page, '.facts .same', /^same in all: (bits 8 · model x|model x · bits 8) *$/);
		const card = page.locator('.chart:has(> [data-chart="train/loss"])');
		await card.hover(WAIT);
		const middle = async (at) => (({ y, height }) => y + height / 2)(await card.locator(at).boundingBox());
		const by = await middle('.acts > button') - await middle('figcaption > b');
		assert.ok(Math.abs(by) < 2, `tools are ${by} px lower than the name`);
		const place = '.nav .places a[aria-current]';
		const colour = () => page.$eval(place, (e) => getComputedStyle(e).backgroundColor);
		const was = await colour();
		await page.hover(place);
		assert.equal(await colour(), was);
		const fade = await page.$eval('.toolbar', (e) => getComputedStyle(e, '::after').backgroundImage);
		assert.match(fade, /gradient/);
	}],
	['35, 42, 46, 47: tabs keep their places, notes are no reason, times have a zone, alerts say where to',
		async (open) => {
		const { id } = await here.ask('POST', 'runs', { experiment: 'lost', name: 'a' });
		await here.ask('PATCH', 'runs/' + id, { status: 'failed', notes: 'perhaps the data' });
		const page = await open('?e=lost&r=' + id, 1440);
		await says(page, '.failure', /No console was recorded/);
		assert.doesNotMatch(await page.textContent('.failure'), /perhaps/);
		assert.match(await page.getAttribute('.runfacts', 'title'), /^Times of \w/);
		const lefts = () => page.$$eval('.tabs a', (l) => l.map((e) => e.getBoundingClientRect().left));
		const before = await lefts();
		await page.click('.tabs a:text-is("Console")');
		await page.waitForSelector('.tabs a[aria-current]:text-is("Console")', WAIT);
		assert.deepEqual(await lefts(), before);
		await page.goto(here.server.url + '?e=lost&alerts');
		await says(page, 'main.alerts', /--webhook/);
	}],
	['40: the name of a run from right to left is not split', async (open) => {
		const name = 'ניסוי-מספר-42-עם-קצב-למידה-0.001-ועוד';
		const id = await run('rtl', name, {}, points('loss', 3, (s) => s));
		const page = await open('?e=rtl');
		const cut = page.locator(`.grid [data-run="${id}"] .cut`);
		assert.deepEqual(await cut.evaluate((e) => [...e.childNodes].map((n) => n.textContent)
			.filter(Boolean)), [name]);
	}],
	['a scatter plot is a figure: names, ranges, scales, hidden and recoloured points', async (open) => {
		const page = await open(await swept() + '&sc=p:lr&sc=m:best:val/acc');
		await says(page, '.scatter .said', /^10 points/);
		const save = await figure(page, 'Scatter');
		const field = (name) => page.locator(`dialog label:has(> span:text-is("${name}")) input`);
		await field('Title').fill('Runs');
		await field('Name of X').fill('Rate');
		await field('Name of Y').fill('Accuracy');
		await page.uncheck('dialog [aria-label="Draw r9"]');
		await page.fill('dialog [aria-label="Colour of r8"]', '#ff0000');
		await page.selectOption('dialog label:has(> span:text-is("Legend")) select', 'below');
		await until(async () => (await textsOf(page, await save('SVG'))).texts.includes('Rate'), (is) => is);
		const svg = await textsOf(page, await save('SVG'));
		for (const word of ['Runs', 'Rate', 'Accuracy', 'r8'])
			assert.ok(svg.texts.includes(word), String(svg.texts));
		assert.ok(!svg.texts.includes('r9'));
		assert.deepEqual([svg.wrong, svg.back, svg.width, svg.discs], [null, '#ffffff', '84mm', 9]);
		const rows = String(await save('CSV')).slice(1).trim().split('\r\n');
		assert.equal(rows[0], 'run,Rate,Accuracy');
		assert.deepEqual(rows.slice(1).sort(), Array.from({ length: 9 }, (_, n) =>
			`r${n},${10 ** -(n % 5)},${(n + 3) / 20}`));
		await field('X from').fill('0.01');
		await page.check('dialog label:has-text("Log y") input');
		await until(async () => (await textsOf(page, await save('SVG'))).discs, (n) => n === 6);
		const png = await save('PNG');
		assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [635, 423]);
	}],
	['parallel axes are a figure: names of axes, hidden and recoloured lines', async (open) => {
		const page = await open(await swept() + '&par', 1280, 'dark');
		await says(page, '.parallel .said', /^10 lines/);
		const save = await figure(page, 'Params and goal');
		await page.fill('dialog label:has(> span:text-is("Name of width")) input', 'Width of a layer');
		await page.uncheck('dialog [aria-label="Draw r9"]');
		await page.fill('dialog [aria-label="Colour of r8"]', '#ff0000');
		await until(async () => (await textsOf(page, await save('SVG'))).lines.includes('#ff0000'), (is) => is);
		const svg = await textsOf(page, await save('SVG'));
		assert.ok(svg.texts.includes('Width of a layer') && !svg.texts.includes('r9'), String(svg.texts));
		assert.deepEqual([svg.wrong, svg.back], [null, '#ffffff']);
		const rows = String(await save('CSV')).slice(1).trim().split('\r\n');
		assert.match(rows[0], /^run,.*Width of a layer/);
		assert.ok(rows.some((r) => r.startsWith('r8,')) && !rows.some((r) => r.startsWith('r9,')));
	}],
];

for (const [name, look] of cases)
	test(name, async (t) => look(async (address, width = 1280, colorScheme = 'light') => {
		const page = await here.open(t, 'health');
		await page.setViewportSize({ width, height: 844 });
		await page.emulateMedia({ colorScheme });
		await page.goto(here.server.url + address);
		return page;
	}));
