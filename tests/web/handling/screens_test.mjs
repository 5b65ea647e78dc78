// SPDX-License-Identifier: Apache-2.0
// Every screen, light and dark: texts have a contrast of 4.5:1 and targets 24 pixels or room around them (axe's rules
// of WCAG 2.2 AA), what has the focus shows it, and nothing moves for readers who asked for less motion.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { require, until } from '../browser.mjs';
import { writeTwelve } from '../serve.mjs';
import { stage } from '../stage.mjs';

const WAIT = { timeout: 30000 };
const TABS = 45;
const here = stage(writeTwelve);
const axe = () => readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** Screens by name: their address and what shows that they are drawn. */
async function screens() {
	const { runs } = await here.ask('GET', 'runs?experiment=fashion&limit=12');
	const [a, b] = runs.map((r) => r.id);
	return {
		runs: ['?e=fashion', '.app[data-ready=true] .grid .body .row'],
		groups: ['?e=fashion&by=model', '.grouped [data-group], .cards'],
		run: [`?e=fashion&r=${a}`, '.runpage h1'],
		'run\'s charts': [`?e=fashion&r=${a}&t=charts`, '.runpage [data-chart]'],
		'side by side': [`?e=fashion&side&o=${a.slice(0, 8)}.${b.slice(0, 8)}`, 'main h1, main h2'],
		experiments: ['?all', 'main.experiments table'],
		reports: ['?e=fashion&report', 'main h1'],
		models: ['?e=fashion&models', 'main h1'],
		alerts: ['?e=fashion&alerts', 'main h1'],
		trash: ['?trash', 'main h1'],
		...Object.fromEntries(['', 'connect', 'persons', 'tokens', 'grants', 'providers', 'audit'].map((tab) =>
			[`settings ${tab}`, [`?settings=${tab}`, 'main.settings .tabs ~ *']])),
		nothing: ['?e=fashion&q=lr+%3E+9', '.empty'],
	};
}

/** What axe finds: the rule, the element and why. */
async function faults(page) {
	await page.evaluate(axe());
	return page.evaluate(async () => {
		const values = ['color-contrast', 'target-size'];
		const { violations } = await globalThis.axe.run(document, { runOnly: { type: 'rule', values },
			rules: { 'target-size': { enabled: true } } });
		return violations.flatMap((v) => v.nodes.map((n) =>
			`${v.id} ${n.target} ${n.any.map((c) => c.message)} ${n.html.slice(0, 100)}`));
	});
}

/** Elements that move although the reader asked for less motion. */
const moving = (page) => page.evaluate(() => [...document.querySelectorAll('*')].flatMap((e) =>
	['', '::before', '::after'].filter((p) => {
		const s = getComputedStyle(e, p || null);
		const long = (t) => t.split(',').some((d) => parseFloat(d) > 0);
		return long(s.transitionDuration) || (s.animationName !== 'none' && long(s.animationDuration));
	}).map((p) => e.tagName + '.' + e.className + p)));

/** Tabs through the page; returns the elements whose focus is not seen. */
async function unseen(page) {
	const out = [];
	for (let i = 0; i < TABS; i++) {
		await page.keyboard.press('Tab');
		out.push(await page.evaluate(() => {
			const e = document.activeElement;
			if (e === document.body) return null;
			const s = getComputedStyle(e);
			const seen = s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2;
			const b = e.getBoundingClientRect();
			return seen && b.width > 0 && b.right > 0 && b.left < innerWidth ? null
				: `${e.tagName}.${e.className} ${e.textContent.slice(0, 30)} ${s.outline}`;
		}));
	}
	return [...new Set(out.filter((x) => x !== null))];
}

for (const [colorScheme, width] of [['light', 1440], ['dark', 1440], ['light', 390], ['dark', 390]])
	test(`contrast and targets: ${colorScheme}, ${width} px`, async (t) => {
		const page = await here.open(t);
		await page.setViewportSize({ width, height: 900 });
		await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
		const found = {};
		for (const [name, [address, there]] of Object.entries(await screens())) {
			await page.goto(here.server.url + address);
			await page.waitForSelector(width > 720 || name !== 'runs' ? there : '.cards', WAIT);
			await until(() => page.locator('[aria-busy=true]').count(), (n) => n === 0);
			found[name] = [...await faults(page), ...(await moving(page)).map((m) => 'moves: ' + m)];
		}
		const bad = Object.entries(found).filter(([, l]) => l.length)
			.map(([name, l]) => `${name}:\n  ${l.join('\n  ')}`);
		assert.equal(bad.join('\n'), '');
	});

test('what has the focus shows it', async (t) => {
	const page = await here.open(t);
	await page.emulateMedia({ reducedMotion: 'reduce' });
	const found = {};
	for (const [name, [address, there]] of Object.entries(await screens())) {
		await page.goto(here.server.url + address);
		await page.waitForSelector(there, WAIT);
		const list = await unseen(page);
		if (list.length) found[name] = list;
	}
	assert.deepEqual(found, {});
});

test('17: lists have one left edge: headings, names of columns and names', async (t) => {
	for (const name of ['a', 'b']) await here.ask('POST', 'reports', { experiment: 'fashion', name, text: 'x' });
	const { id } = await here.ask('POST', 'runs', { experiment: 'fashion', name: 'gone' });
	await here.ask('DELETE', 'runs/' + id);
	const page = await here.open(t);
	await page.setViewportSize({ width: 1440, height: 900 });
	const edges = {};
	for (const query of ['?all', '?e=fashion&report', '?trash']) {
		await page.goto(here.server.url + query);
		await page.waitForSelector('main .list tbody td', WAIT);
		edges[query] = await page.evaluate(() => ['main h1', 'main .list th', 'main .list td'].map((q) => {
			const range = document.createRange();
			range.selectNodeContents(document.querySelector(q));
			return Math.round(range.getBoundingClientRect().left);
		}));
	}
	const [first] = Object.values(edges);
	assert.deepEqual(edges, Object.fromEntries(Object.keys(edges).map((k) => [k, first])));
	assert.equal(first[1], first[2]);
});
