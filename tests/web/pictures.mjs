// SPDX-License-Identifier: Apache-2.0
// Takes the pictures of web/ui/pictures again: node tests/web/pictures.mjs [FOLDER]. It needs a build, chromium, and
// the packages of tests/web (tests/web/page.sh installs them).
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { drawn, launch, open } from './browser.mjs';
import { serve } from './serve.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? path.join(here, '../../web/ui/pictures');

async function overLine(p, name, step) {
	const at = await p.evaluate(([n, x]) => {
		const c = document.querySelector('[data-chart="train/loss"]');
		const id = [...document.querySelectorAll('.grid .body .row')].find((r) =>
			r.querySelector('a').textContent === n).dataset.run;
		const d = c.chart.drawn();
		const o = c.getBoundingClientRect();
		return { x: o.left + d.box.left + (d.box.width * (x - d.from)) / (d.to - d.from),
			y: o.top + d.box.top + d.lines.find((l) => l.id === id).topPixel + 12 };
	}, [name, step]);
	await p.mouse.move(at.x, at.y);
	await p.waitForTimeout(500);
}

const PICTURES = [
	{ name: 'compare', act: () => {} },
	{ name: 'compare-dark', colorScheme: 'dark', act: () => {} },
	{ name: 'compare-hover', act: (p) => overLine(p, 'cnn-base-s3', 337) },
	{ name: 'run', act: async (p) => {
		await p.click('text=cnn-base-s3');
		await p.waitForSelector('.runpage h1');
		await p.mouse.move(2, 2);
	} },
	{ name: 'phone', width: 390, height: 844, act: () => {} },
];

const server = await serve();
const browser = await launch();
mkdirSync(out, { recursive: true });
for (const { name, act, ...options } of PICTURES) {
	const { page, context } = await open(browser, server.url, options);
	await drawn(page);
	await act(page);
	await page.waitForTimeout(500);
	await page.screenshot({ path: path.join(out, name + '.png') });
	await context.close();
}
await browser.close();
await server.close();
