// SPDX-License-Identifier: Apache-2.0
// The figure dialog: its files have the size, the texts and the lines that were set, and the server's points.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { chart, clean, until } from '../browser.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const here = stage();
const KEY = 'train/loss';
const RUNS = ['alpha', 'beta', 'gamma', 'delta'];
const STEPS = Array.from({ length: 25 }, (_, i) => 10 * (i + 1));
const ids = {};

async function record() {
	for (const [n, name] of RUNS.entries()) {
		const { id } = await here.ask('POST', 'runs', { experiment: 'figure', name,
			params: { model: n % 2 ? 'mlp' : 'cnn', lr: String(10 ** -(n + 1)) } });
		ids[name] = id;
		await here.ask('POST', `runs/${id}/metrics`, { points: STEPS.map((step) =>
			({ key: KEY, step, value: 2 / (1 + step * (n + 1) / 50), wall_time: 1.8e9 + step })) });
		await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	}
}
let recorded;

async function shown(t, { width = 1440, height = 900, dark = false, query = '' } = {}) {
	await (recorded ??= record());
	const page = await here.open(t, 'health');
	await page.setViewportSize({ width, height });
	await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' });
	await page.goto(`${here.server.url}?e=figure${query}`);
	await until(() => chart(page, KEY), (d) => d?.lines.length > 0, 'the chart');
	return page;
}

const DIALOG = 'dialog[aria-label="Figure of train/loss"]';

async function opened(t, options) {
	const page = await shown(t, options);
	await page.hover(`.chart:has(> [data-chart="${KEY}"])`);
	await page.click(`[aria-label="More of ${KEY}"]`);
	await page.click('[role=dialog] button:text-is("Make a figure")');
	await page.waitForSelector(`${DIALOG} svg`, WAIT);
	return page;
}

/** Presses a button of the dialog that saves; resolves to the file's name and bytes. */
async function saved(page, kind) {
	const [file] = await Promise.all([page.waitForEvent('download', WAIT),
		page.click(`${DIALOG} [aria-label="Save as ${kind}"]`)]);
	return [file.suggestedFilename(), await readFile(await file.path())];
}

/** What an SVG says: size, texts, and the points of each line by its colour. */
const readSvg = (page, text) => page.evaluate((svg) => {
	const doc = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
	const lines = {};
	for (const p of doc.querySelectorAll('path[stroke]')) {
		const d = p.getAttribute('d');
		const points = [...d.matchAll(/[ML](\S+) ([-\d.]+)/g)].map((m) => [Number(m[1]), Number(m[2])]);
		if (!/[a-z]/.test(d) && points.length > 4) lines[p.getAttribute('stroke')] = points;
	}
	return { wrong: doc.querySelector('parsererror')?.textContent ?? null, lines, width: doc.getAttribute('width'),
		height: doc.getAttribute('height'), back: doc.querySelector('rect')?.getAttribute('fill') ?? null,
		box: doc.getAttribute('viewBox').split(' ').map(Number), size: Number(doc.getAttribute('font-size')),
		texts: [...doc.querySelectorAll('text')].map((e) => e.textContent) };
}, text);

async function svgOf(page) {
	const [name, bytes] = await saved(page, 'SVG');
	assert.equal(name, 'train-loss.svg');
	const svg = await readSvg(page, bytes.toString());
	assert.equal(svg.wrong, null);
	return svg;
}

/** Points of a run as the server has them. */
async function pointsOf(name) {
	const { points } = await here.ask('GET', `series?run=${ids[name]}&key=${encodeURIComponent(KEY)}&rank=-1`);
	return points.map((p) => [p.step, p.value]);
}

/** Fails unless pixels are a linear map of values, with the largest difference of `most` pixels. */
function linear(pixels, values, most = 0.03) {
	assert.equal(pixels.length, values.length);
	const [a, b] = [values.indexOf(Math.min(...values)), values.indexOf(Math.max(...values))];
	const k = (pixels[b] - pixels[a]) / (values[b] - values[a]);
	values.forEach((v, i) => assert.ok(Math.abs(pixels[a] + k * (v - values[a]) - pixels[i]) <= most,
		`${v} is drawn at ${pixels[i]}, not ${pixels[a] + k * (v - values[a])}`));
}

test('a click on its dash gives a run an own colour: table, charts, figure, address; and back', async (t) => {
	const page = await shown(t);
	const row = `.body [data-run="${ids.beta}"]`;
	const colour = async (name, of = page) => (await chart(of, KEY)).lines.find((l) => l.id === ids[name]).colour;
	const dash = (of = page) => of.getAttribute(`${row} .key line`, 'stroke');
	const others = await Promise.all(['alpha', 'gamma', 'delta'].map((n) => colour(n)));
	const automatic = await colour('beta');
	await page.click(`${row} .eye`);
	await page.check('[aria-label="Colour of beta"] [aria-label="Magenta"]');
	await until(() => colour('beta'), (c) => c === '#cd3f9b');
	await clean(page);
	assert.equal(await dash(), '#cd3f9b');
	assert.deepEqual(await Promise.all(['alpha', 'gamma', 'delta'].map((n) => colour(n))), others, 'others stay');
	await page.keyboard.press('Escape');
	await page.waitForURL(/[?&]oc=/, WAIT);
	const other = await shown(t, { query: new URL(page.url()).search.replace('?e=figure', ''), dark: true });
	assert.deepEqual([await colour('beta', other), await dash(other)], ['#cd3f9b', '#cd3f9b'], 'for others');

	// the dash of its name in a chart, then any colour
	const at = await page.evaluate((key) => {
		const el = document.querySelector(`[data-chart="${key}"]`);
		const { left, top } = el.getBoundingClientRect();
		const { box, lines } = el.chart.drawn();
		return { x: left + box.left + box.width + 8, y: top + box.top,
			height: box.height, id: lines.length };
	}, KEY);
	for (let y = at.y; y <= at.y + at.height; y += 6) {
		await page.mouse.move(at.x, y);
		if (await page.$(`${row}.lit`)) {
			await page.mouse.click(at.x, y);
			break;
		}
	}
	await page.waitForSelector('[aria-label="Colour of beta"]', WAIT);
	await page.fill('[aria-label="Colour of beta"] input[type=color]', '#102030');
	await until(() => colour('beta'), (c) => c === '#102030');
	await page.keyboard.press('Escape');
	await page.hover(`.chart:has(> [data-chart="${KEY}"])`);
	await page.click(`[aria-label="More of ${KEY}"]`);
	await page.click('[role=dialog] button:text-is("Make a figure")');
	await page.waitForSelector(`${DIALOG} svg`, WAIT);
	assert.ok('#102030' in (await svgOf(page)).lines, 'the figure has it');
	await page.keyboard.press('Escape');

	// by keys, back to the automatic one
	await page.focus(`${row} [role=rowheader]`);
	await page.keyboard.press('c');
	await page.waitForSelector('[aria-label="Colour of beta"] input:focus', WAIT);
	await page.keyboard.press('Space');
	await until(() => colour('beta'), (c) => c === automatic);
	await page.keyboard.press('Escape');
	await until(() => page.$eval(`${row} [role=rowheader]`, (e) => e === document.activeElement), (on) => on);
	assert.ok(!/[?&]oc=/.test(page.url()));
});

test('two curves, 84 mm wide, with own names, as SVG: 8 clicks', async (t) => {
	const page = await shown(t);
	let clicks = 0;
	const click = (q) => (clicks++, page.click(q));
	await page.hover(`.body [data-run="${ids.beta}"]`);
	await click(`.body [data-run="${ids.beta}"] [title^="Only this run"]`);
	await page.hover(`.body [data-run="${ids.delta}"]`);
	await click(`.body [data-run="${ids.delta}"] .shows`);
	await until(() => chart(page, KEY), (d) => d.lines.length === 2);
	await page.hover(`.chart:has(> [data-chart="${KEY}"])`);
	await click(`[aria-label="More of ${KEY}"]`);
	await click('[role=dialog] button:text-is("Make a figure")');
	await click(`${DIALOG} button:text-is("Paper column")`);
	await click(`${DIALOG} li:first-child input[type=text]`);
	await page.keyboard.type('Ours <α>');
	for (let n = 0; n < 3; n++) await page.keyboard.press('Tab');
	await page.keyboard.type('Baseline & more');
	await page.waitForSelector(`${DIALOG} svg text:text-is("Ours <α>")`, WAIT);
	const [file] = await Promise.all([page.waitForEvent('download', WAIT),
		click(`${DIALOG} [aria-label="Save as SVG"]`)]);
	assert.ok(clicks <= 8, `${clicks} clicks`);
	const text = await readFile(await file.path(), 'utf8');
	const svg = await readSvg(page, text);
	assert.deepEqual([svg.width, svg.height], ['84mm', '56mm']);
	for (const word of ['Ours <α>', 'Baseline & more', 'step', KEY])
		assert.ok(svg.texts.includes(word), `${word} in ${svg.texts}`);
	assert.ok(!/beta|delta/.test(text));
	const points = (svg.size * 84 / 25.4 * 72) / svg.box[2];
	assert.ok(Math.abs(points - 8) < 0.02, `text of ${points} pt`);
	assert.equal(Object.keys(svg.lines).length, 2);
	const d = await chart(page, KEY);
	for (const name of ['beta', 'delta']) {
		const drawn = svg.lines[d.lines.find((l) => l.id === ids[name]).colour];
		const there = await pointsOf(name);
		linear(drawn.map((p) => p[0]), there.map((p) => p[0]));
		linear(drawn.map((p) => p[1]), there.map((p) => p[1]));
	}
});

test('titles, names, templates, colours, hidden lines, ranges and scales are in the SVG and the CSV', async (t) => {
	const page = await opened(t);
	const fill = (label, text) => page.fill(`${DIALOG} label:has(> span:text-is("${label}")) input`, text);
	await fill('Title', 'Loss');
	await fill('Name of X', 'Updates');
	await fill('Name of Y', 'Cross entropy');
	await fill('Names', '{model} lr {lr}');
	await fill('X from', '50');
	await fill('X to', '200');
	await page.click(`${DIALOG} label:has-text("Log y") input`);
	await page.click(`${DIALOG} [aria-label="Draw cnn lr 0.1"]`);
	await page.fill(`${DIALOG} [aria-label="Colour of mlp lr 0.01"]`, '#ff0000');
	await page.waitForSelector(`${DIALOG} svg path[stroke="#ff0000"]`, { ...WAIT, state: 'attached' });
	const svg = await svgOf(page);
	const words = ['Loss', 'Updates', 'Cross entropy', 'mlp lr 0.01', 'cnn lr 0.001', 'mlp lr 0.0001'];
	for (const word of words) assert.ok(svg.texts.includes(word), `${word} in ${svg.texts}`);
	assert.ok(!svg.texts.includes('cnn lr 0.1'), String(svg.texts));
	assert.equal(Object.keys(svg.lines).length, 3);
	const there = await pointsOf('beta');
	linear(svg.lines['#ff0000'].map((p) => p[1]), there.map((p) => Math.log(p[1])));
	const [name, csv] = await saved(page, 'CSV');
	assert.equal(name, 'train-loss.csv');
	const want = ['line,Updates,Cross entropy'];
	for (const [run, label] of [['beta', 'mlp lr 0.01'], ['gamma', 'cnn lr 0.001'], ['delta', 'mlp lr 0.0001']])
		for (const [x, y] of await pointsOf(run)) if (x >= 50 && x <= 200) want.push(`${label},${x},${y}`);
	assert.deepEqual(csv.toString().trim().split('\r\n').sort(), want.sort());
	await page.keyboard.press('Escape');
	await page.waitForSelector(DIALOG, { ...WAIT, state: 'detached' });
	await page.click(`[aria-label="More of ${KEY}"]`);
	await page.click('[role=dialog] button:text-is("Make a figure")');
	await page.waitForSelector(`${DIALOG} svg text:text-is("Cross entropy")`, WAIT);
});

for (const [preset, times, size] of [['Paper column', 1, [317, 212]], ['Paper column', 4, [1270, 847]],
	['Slide', 1, [960, 540]], ['Slide', 3, [2880, 1620]]])
	test(`a PNG of ${preset.toLowerCase()} at ${times} times has ${size.join(' x ')} pixels`, async (t) => {
		const page = await opened(t);
		await page.click(`${DIALOG} button:text-is("${preset}")`);
		await page.selectOption(`${DIALOG} footer select`, String(times));
		const [name, png] = await saved(page, 'PNG');
		assert.equal(name, 'train-loss.png');
		assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], size);
		const ink = await page.evaluate(async (bytes) => {
			const picture = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
			const c = new OffscreenCanvas(picture.width, picture.height);
			const g = c.getContext('2d');
			g.drawImage(picture, 0, 0);
			const { data } = g.getImageData(0, 0, c.width, c.height);
			let n = 0;
			for (let i = 0; i < data.length; i += 4) if (data[i] < 200 || data[i + 1] < 200) n++;
			return n / (data.length / 4);
		}, [...png]);
		assert.ok(ink > 0.01 && ink < 0.3, `${ink} of it is drawn`);
	});

test('the table of a chart has round steps, and is copied and saved whole', async (t) => {
	const page = await shown(t);
	await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
	await page.hover(`.chart:has(> [data-chart="${KEY}"])`);
	await page.click(`.chart:has(> [data-chart="${KEY}"]) .numbers button:text-is("Table")`);
	const head = await page.$$eval('.values thead th', (l) => l.map((e) => e.textContent));
	const steps = head.slice(3).map(Number);
	assert.deepEqual([steps[0], steps.at(-1)], [10, 250]);
	assert.ok(steps.slice(1, -1).every((x) => x % 20 === 0 || x % 25 === 0), steps.join());
	await clean(page);
	const cells = await page.$$eval('.values tr', (l) => l.map((r) => [...r.cells].map((c) => c.textContent)));
	await page.click('[role=dialog] button:text-is("Copy")');
	await page.waitForSelector('[role=dialog] [role=status]:text-is("Copied")', WAIT);
	const copied = await page.evaluate(() => navigator.clipboard.readText());
	assert.equal(copied, cells.map((r) => r.join('\t')).join('\n'));
	const [file] = await Promise.all([page.waitForEvent('download', WAIT),
		page.click('[role=dialog] button:text-is("CSV")')]);
	const csv = await readFile(await file.path(), 'utf8');
	assert.equal(csv, '\ufeff' + cells.map((r) => r.join() + '\r\n').join(''));
	await page.click('[role=dialog] [aria-label=Close]');
	await page.click(`.chart:has(> [data-chart="${KEY}"]) .limits button`);
	const boxes = await Promise.all(['From', 'To'].map((k) =>
		page.locator(`[aria-label="Y axis: ${k}"]`).boundingBox()));
	assert.ok(boxes[0].y === boxes[1].y && boxes[0].width === boxes[1].width, JSON.stringify(boxes));
	assert.ok(await page.isDisabled('[role=dialog] button:text-is("Both automatic")'));
});

const WRONG = [
	['X to', '5', /first value must be below/], ['Y from', '9', null], ['Width', '10', /Nothing fits/],
];
for (const [field, value, says] of WRONG)
	test(`${field} ${value} ${says ? 'is refused' : 'is drawn'}`, async (t) => {
		const page = await opened(t);
		const input = page.locator(`${DIALOG} label:has(> span:text-is("${field}")) input`);
		await input.fill(value);
		if (!says) return void await page.waitForSelector(`${DIALOG} [aria-label="Save as SVG"]:enabled`, WAIT);
		await page.waitForSelector(`${DIALOG} [role=alert]:text-matches("${says.source}")`, WAIT);
		assert.ok(await page.isDisabled(`${DIALOG} [aria-label="Save as SVG"]`));
		await input.fill(field === 'Width' ? '84' : '');
		await page.waitForSelector(`${DIALOG} [aria-label="Save as SVG"]:enabled`, WAIT);
	});

test('the PDF has one page of the size of the figure, and the page is as before', async (t) => {
	const page = await opened(t);
	await page.evaluate(() => (window.print = () => {}));
	await page.click(`${DIALOG} [aria-label="Save as PDF"]`);
	const pdf = (await page.pdf({ preferCSSPageSize: true })).toString('latin1');
	const boxes = [...pdf.matchAll(/\/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)/g)]
		.map((m) => [Number(m[1]) * 25.4 / 72, Number(m[2]) * 25.4 / 72]);
	assert.equal(boxes.length, 1, JSON.stringify(boxes));
	assert.ok(Math.abs(boxes[0][0] - 84) < 0.4 && Math.abs(boxes[0][1] - 56) < 0.4, boxes[0].join());
	await page.evaluate(() => dispatchEvent(new Event('afterprint')));
	assert.equal(await page.$('.printed'), null);
	assert.ok(await page.isVisible(DIALOG));
});

for (const [width, height, dark] of [[1440, 900, false], [1440, 900, true], [390, 844, false], [390, 844, true]])
	test(`the dialog at ${width} px, ${dark ? 'dark' : 'light'}: keys, axe, colours of paper`, async (t) => {
		const page = await opened(t, { width, height, dark });
		const box = await page.locator(DIALOG).boundingBox();
		assert.ok(box.x >= 0 && box.x + box.width <= width && box.height <= height, JSON.stringify(box));
		const settings = await page.$eval(`${DIALOG} .settings`, (e) => [e.scrollWidth, e.clientWidth]);
		assert.ok(settings[0] <= settings[1], 'settings are wider than their place');
		await clean(page);
		const svg = await svgOf(page);
		assert.equal(svg.back, '#ffffff');
		const light = await shown(t);
		const d = await chart(light, KEY);
		assert.deepEqual(Object.keys(svg.lines).sort(), d.lines.map((l) => l.colour).sort());
		await page.keyboard.press('Escape');
		await page.waitForSelector(DIALOG, { ...WAIT, state: 'detached' });
		assert.equal(await page.evaluate(() => document.activeElement.ariaLabel), `More of ${KEY}`);
	});

/** [what, its address, the button, the names of its lines]. */
const others = [
	['a panel of a report', async () => {
		const text = `\`\`\`panel\nmetrics: ${KEY}\n\`\`\`\n`;
		return '?e=figure&report=' + (await here.ask('POST', 'reports',
			{ experiment: 'figure', name: 'p', text })).id;
	}, /^Figure of /, RUNS],
	['a chart by rank', async () => {
		const points = STEPS.flatMap((step) => [0, 1].map((rank) =>
			({ key: 'phase/forward', step, value: step + rank, rank, wall_time: 1.8e9 + step })));
		await here.ask('POST', `runs/${ids.beta}/metrics`, { points });
		return `?e=figure&r=${ids.beta}&t=system`;
	}, /^Figure of phase\/forward by rank/, ['rank 0', 'rank 1']],
];

for (const [what, address, label, names] of others)
	test(`${what} is a figure, in the colours of paper`, async (t) => {
		const page = await shown(t, { dark: true });
		await page.goto(here.server.url + await address());
		const button = page.getByLabel(label).first();
		await button.hover();
		await button.click();
		await page.waitForSelector('dialog.figurebox svg', WAIT);
		const [file] = await Promise.all([page.waitForEvent('download', WAIT),
			page.click('dialog [aria-label="Save as SVG"]')]);
		const svg = await readSvg(page, (await readFile(await file.path())).toString());
		assert.equal(svg.wrong, null);
		assert.equal(Object.keys(svg.lines).length, names.length, JSON.stringify(svg.texts));
		for (const name of names) assert.ok(svg.texts.includes(name), `${name}: ${svg.texts}`);
		assert.equal(svg.back, '#ffffff');
		await clean(page);
		await page.keyboard.press('Escape');
		await page.waitForSelector('dialog.figurebox', { ...WAIT, state: 'detached' });
	});
