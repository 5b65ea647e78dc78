// SPDX-License-Identifier: Apache-2.0
// The design system (specimens.tsx), light and dark, against recorded.txt: the computed styles of every kind of
// element, and a coarse picture of each specimen, which tolerates the edges of letters. DESIGN_RECORD=1 records; a
// failure leaves the pictures in $builddir/tests/web/design. With other fonts than the recorded ones pictures
// are not compared, styles are.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launch } from '../browser.mjs';
import * as standin from '../devserver.mjs';
import { builddir } from '../serve.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const RECORD = path.join(here, 'recorded.txt');
const CHAPTERS = ['tokens', 'buttons', 'fields', 'panels', 'texts', 'charts', 'frame'];
/** Pixels of a cell of a picture, and how far its mean may be off, of 255. */
const CELL = 32;
const OFF = 18;
const out = path.join(builddir, 'tests/web/design');
const on = {};

before(async () => {
	on.folder = mkdtempSync(path.join(tmpdir(), 'dptrack-design-'));
	const work = path.join(builddir, 'web/ui/work');
	execFileSync(process.execPath, ['build.mjs', '--out', on.folder, '--top', path.join(here, '../../..'),
		'--extra', path.join(here, 'page.tsx')], { cwd: work });
	on.server = await standin.start({ dist: path.join(on.folder, 'dist'), all: standin.load() });
	on.browser = await launch();
});
after(async () => {
	await on.browser?.close();
	on.server?.close();
	rmSync(on.folder, { recursive: true, force: true });
});

/** Puts the first control of each element with data-force into that state. */
async function force(page) {
	const cdp = await page.context().newCDPSession(page);
	await cdp.send('DOM.enable');
	await cdp.send('CSS.enable');
	const { root } = await cdp.send('DOM.getDocument', { depth: -1 });
	for (const state of ['hover', 'focus-visible', 'active']) {
		const { nodeIds } = await cdp.send('DOM.querySelectorAll',
			{ nodeId: root.nodeId, selector: `[data-force="${state}"] :is(button, input, a)` });
		for (const nodeId of nodeIds)
			await cdp.send('CSS.forcePseudoState', { nodeId, forcedPseudoClasses: [state] });
	}
}

async function opened(chapter, theme, sheet = '') {
	const context = await on.browser.newContext({ viewport: { width: 1280, height: 900 }, deviceScaleFactor: 1,
		locale: 'en-GB', timezoneId: 'UTC', reducedMotion: 'reduce', colorScheme: theme });
	const page = await context.newPage();
	const thrown = [];
	page.on('pageerror', (e) => thrown.push(String(e.stack)));
	await page.goto(`${on.server.url}?design=${chapter}&theme=${theme}`);
	await page.waitForSelector('html[data-ready=true] [data-specimen]', { timeout: 30000 });
	await page.evaluate((css) => {
		const s = new CSSStyleSheet();
		s.replaceSync('* { caret-color: transparent !important; }' + css);
		document.adoptedStyleSheets = [...document.adoptedStyleSheets, s];
	}, sheet);
	await force(page);
	assert.deepEqual(thrown, []);
	return page;
}

/** Styles of a chapter by kind of element: colours and shapes, then sizes. Kinds of a specimen are told apart by their
 * tag, classes, states and the specimen's forced state. */
const stylesIn = (page) => page.evaluate(() => {
	const all = {};
	for (const e of document.querySelectorAll('[data-specimen] *')) {
		if (e.closest('svg, canvas') && e.tagName !== 'svg') continue;
		const c = getComputedStyle(e);
		const states = ['disabled', 'checked', 'aria-pressed', 'aria-current', 'aria-expanded', 'aria-invalid',
			'aria-selected'].filter((a) => e.hasAttribute(a))
			.map((a) => `[${a}${e.getAttribute(a) && '=' + e.getAttribute(a)}]`).join('');
		const force = e.closest('[data-force]')?.dataset.force;
		const kind = e.tagName.toLowerCase() + [...e.classList].map((n) => '.' + n).join('') + states
			+ (force ? ':' + force : '');
		const own = ['color', 'background-color'].map((p) => c[p]);
		const border = c.borderTopWidth === '0px' ? ''
			: `${c.borderTopWidth} ${c.borderTopStyle} ${c.borderTopColor}`;
		const outline = c.outlineStyle === 'none' ? '' : `${c.outlineWidth} ${c.outlineColor}`;
		const sizes = ['border-top-left-radius', 'font-size', 'font-weight', 'padding', 'opacity']
			.map((p) => c[p]);
		const style = [...own, border, outline, ...sizes].join(' | ');
		(all[kind] ??= new Set()).add(style);
	}
	return Object.fromEntries(Object.entries(all).map(([k, v]) => [k, [...v].sort().join(' / ')]));
});

/** A picture of the whole page, once two in a row are equal. */
async function stillPicture(page) {
	for (let n = 0, last; n < 40; n++) {
		const now = await page.screenshot({ fullPage: true });
		if (last?.equals(now)) return now;
		last = now;
		await page.waitForTimeout(100);
	}
	throw new Error('the page does not stand still');
}

/** The mean colour of every cell of each specimen, as digits 0 to f of red, green and blue. */
async function picturesIn(page, name) {
	const shot = await stillPicture(page);
	mkdirSync(out, { recursive: true });
	writeFileSync(path.join(out, name + '.png'), shot);
	return page.evaluate(async ([data, cell]) => {
		const img = new Image();
		img.src = 'data:image/png;base64,' + data;
		await img.decode();
		const canvas = document.createElement('canvas');
		const g = canvas.getContext('2d', { willReadFrequently: true });
		const means = {};
		for (const s of document.querySelectorAll('[data-specimen]')) {
			const r = s.getBoundingClientRect();
			const [w, h] = [Math.ceil(r.width / cell), Math.ceil(r.height / cell)];
			[canvas.width, canvas.height] = [w * cell, h * cell];
			g.drawImage(img, -Math.round(r.left + scrollX), -Math.round(r.top + scrollY));
			const px = g.getImageData(0, 0, canvas.width, canvas.height).data;
			const rows = [];
			for (let y = 0; y < h; y++) {
				const row = [];
				for (let x = 0; x < w; x++) {
					const sum = [0, 0, 0];
					for (let n = 0; n < cell * cell; n++) {
						const line = y * cell + Math.floor(n / cell);
						const at = line * canvas.width + x * cell + n % cell;
						for (let c = 0; c < 3; c++) sum[c] += px[at * 4 + c];
					}
					row.push(sum.map((v) => v / (cell * cell)));
				}
				rows.push(row);
			}
			means[s.dataset.specimen] = rows;
		}
		return means;
	}, [shot.toString('base64'), CELL]);
}

const digits = (rows) => rows.map((r) => r.flat().map((v) => Math.round(v / 17).toString(16)).join(''));

/** What differs between a picture and its record; '' if nothing. */
function differs(rows, recorded) {
	const want = recorded.split(' ');
	if (want.length !== rows.length || want[0].length !== rows[0].length * 3)
		return `${rows[0].length} x ${rows.length} cells, ${want[0].length / 3} x ${want.length} recorded`;
	const far = [];
	rows.forEach((r, y) => r.forEach((c, x) => c.forEach((v, i) => {
		const off = Math.abs(v - parseInt(want[y][x * 3 + i], 16) * 17);
		if (off > OFF) far.push([off, x, y]);
	})));
	if (!far.length) return '';
	const [off, x, y] = far.sort((a, b) => b[0] - a[0])[0];
	return `${far.length} values differ, most at ${x * CELL}, ${y * CELL} px: by ${Math.round(off)} of 255`;
}

/** Widths of a text in the fonts of the page, which tell whether the record was made with them. */
const fontsOf = (page) => page.evaluate(() => {
	const g = document.createElement('canvas').getContext('2d');
	const c = getComputedStyle(document.documentElement);
	return ['', c.getPropertyValue('--mono')].map((f) => {
		g.font = `100px ${f || c.fontFamily}`;
		return g.measureText('Hamburgefonstiv 0123456789').width.toFixed(1);
	}).join(' ');
});

/** The record of a chapter in a theme: lines of styles and of pictures. */
async function recordOf(page, chapter, theme) {
	const pictures = await picturesIn(page, `${chapter}-${theme}`);
	return { styles: await stylesIn(page), pictures, fonts: await fontsOf(page) };
}

const lines = ({ styles, pictures, fonts }, chapter, theme) => [
	`fonts\t${fonts}`,
	...Object.entries(styles).map(([k, v]) => `${theme} ${chapter}\tstyle\t${k}\t${v}`),
	...Object.entries(pictures).map(([k, v]) => `${theme} ${chapter}\tpicture\t${k}\t${digits(v).join(' ')}`)];

function recorded() {
	const map = new Map();
	for (const line of readFileSync(RECORD, 'utf8').split('\n')) {
		const cells = line.split('\t');
		if (cells[0] === 'fonts') map.set('fonts', cells[1]);
		else if (cells.length === 4) map.set(cells.slice(0, 3).join('\t'), cells[3]);
	}
	return map;
}

/** Everything in which a chapter differs from the record. */
function compare({ styles, pictures, fonts }, chapter, theme, record) {
	const wrong = [];
	const same = fonts === record.get('fonts');
	const of = (kind, k) => record.get(`${theme} ${chapter}\t${kind}\t${k}`);
	for (const [k, v] of Object.entries(styles))
		if (of('style', k) !== v) wrong.push(`${k}:\n  is  ${v}\n  was ${of('style', k) ?? '(not recorded)'}`);
	for (const [k, v] of Object.entries(same ? pictures : {})) {
		const was = of('picture', k);
		const text = was === undefined ? 'not recorded' : differs(v, was);
		if (text) wrong.push(`picture of ${k}: ${text}`);
	}
	const now = { style: styles, picture: pictures };
	for (const key of record.keys()) {
		const [where, kind, k] = key.split('\t');
		if (where === `${theme} ${chapter}` && !(k in now[kind])) wrong.push(`${kind} of ${k}: gone`);
	}
	return wrong;
}

const fresh = [];
for (const theme of ['light', 'dark']) for (const chapter of CHAPTERS)
	test(`${chapter}, ${theme}`, async (t) => {
		const page = await opened(chapter, theme);
		const now = await recordOf(page, chapter, theme);
		await page.context().close();
		if (process.env.DESIGN_RECORD) {
			fresh.push(...lines(now, chapter, theme).slice(fresh.length ? 1 : 0));
			writeFileSync(RECORD, fresh.join('\n') + '\n');
			return;
		}
		const record = recorded();
		if (now.fonts !== record.get('fonts'))
			t.diagnostic('other fonts than the recorded: no pictures compared');
		assert.deepEqual(compare(now, chapter, theme, record), [], `pictures: ${out}`);
	});

test('a changed style and a changed picture are found', async () => {
	const record = recorded();
	const page = await opened('buttons', 'light', 'button.primary { border-radius: 0 }');
	assert.ok(compare(await recordOf(page, 'wrong', 'light'), 'buttons', 'light', record)
		.some((w) => w.startsWith('button.primary:')), 'the corners of a button');
	await page.context().close();
	const moved = await opened('charts', 'light', '.plot canvas { transform: translateY(40px) }');
	const wrong = compare(await recordOf(moved, 'wrong', 'light'), 'charts', 'light', record);
	assert.ok((await fontsOf(moved)) !== record.get('fonts')
		|| wrong.some((w) => w.startsWith('picture of three lines')), 'the lines of a chart');
	await moved.context().close();
});
