// SPDX-License-Identifier: Apache-2.0
// Debian's chromium driven by playwright-core: one browser, a fresh context for each test, and a record of everything
// that a page requests or logs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { builddir } from './serve.mjs';

const WAIT_MS = 30000;
/** Distance in pixels from a panel's corner at which its area starts, because its corners are round. */
const CORNER = 8;

export const require = createRequire(path.join(builddir, 'tests/web/work/x.js'));
const { chromium } = require('playwright-core');

export const ARGS = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-background-networking',
	'--disable-component-update', '--disable-sync', '--no-first-run'];

export function launch() {
	return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ARGS });
}

/** Opens a page and records its requests, console errors and exceptions. */
export async function open(browser, address, { width = 1280, height = 800, colorScheme = 'light' } = {}) {
	const context = await browser.newContext({ viewport: { width, height }, colorScheme, deviceScaleFactor: 1,
		locale: 'en-GB',
		timezoneId: 'UTC', reducedMotion: 'reduce' });
	const page = await context.newPage();
	const seen = { requests: [], complaints: [] };
	page.on('request', (r) => seen.requests.push({ url: r.url(), method: r.method(), at: Date.now() }));
	page.on('console', (m) => ['error', 'warning'].includes(m.type()) && seen.complaints.push(m.text()));
	page.on('pageerror', (e) => seen.complaints.push(String(e.stack)));
	page.on('response', (r) => r.status() >= 400 && seen.complaints.push(`${r.status()} ${r.url()}`));
	await page.goto(address);
	return { context, page, seen };
}

/** Resolves once everything on the first screen has its data and is drawn. */
export async function drawn(page) {
	await page.waitForSelector('.app[data-ready="true"]', { timeout: WAIT_MS });
	await page.waitForFunction(() => {
		const shown = [...document.querySelectorAll('[data-chart]')]
			.filter((c) => c.getBoundingClientRect().top < innerHeight);
		return shown.every((c) => c.chart?.drawn()?.lines.length > 0);
	}, null, { timeout: WAIT_MS });
}

/** Fails if an open panel is outside the window, clipped by its container or covered by another element. */
export async function whole(page) {
	const hidden = await page.evaluate((inset) => [...document.querySelectorAll('.picker')].flatMap((panel) => {
		panel.scrollIntoView({ block: 'nearest' });
		const { left, right, top, bottom } = panel.getBoundingClientRect();
		const heights = [top + inset, Math.min(bottom, innerHeight) - inset];
		const lost = [left + inset, right - inset].flatMap((x) => heights.map((y) => [x, y]))
			.filter(([x, y]) => !panel.contains(document.elementFromPoint(x, y)));
		return lost.map((c) => `${panel.getAttribute('aria-label')}: ${c.map(Math.round)}`);
	}), CORNER);
	assert.deepEqual(hidden, [], 'hidden corners of open panels');
}

/** Fails if axe finds a serious problem, the page is wider than its window, or an open panel is partly hidden. */
export async function clean(page) {
	await whole(page);
	await page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
	const { violations } = await page.evaluate(() => globalThis.axe.run(document));
	assert.deepEqual(violations.filter((v) => ['serious', 'critical'].includes(v.impact))
		.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).slice(0, 3).join(' ')}`), []);
	const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
	assert.ok(wide <= window, `${wide} px wide`);
}

/** Returns what a chart has drawn, or null while it does not exist yet: its element is created earlier. */
export function chart(page, key) {
	return page.evaluate((k) =>
		document.querySelector(`[data-chart="${k}"], [data-rank-chart="${k}"]`)?.chart?.drawn() ?? null, key);
}

/** Calls look() until test() accepts its result; resolves to that result. */
export async function until(look, test, what = String(test)) {
	const end = Date.now() + WAIT_MS;
	for (;;) {
		const seen = await look();
		if (test(seen)) return seen;
		assert.ok(Date.now() < end,
			`not within ${WAIT_MS / 1000} s: ${what}; seen last: ${JSON.stringify(seen)}`);
		await new Promise((done) => setTimeout(done, 50));
	}
}

/** Waits until what a chart has drawn passes the test; resolves to it. */
export function charted(page, key, test) {
	return until(() => chart(page, key), (d) => d !== null && test(d), `${key}: ${test}`);
}

/** Waits until the text of the first element that the selector finds matches the pattern; resolves to the text. */
export function says(page, selector, pattern) {
	return until(() => page.evaluate((q) => document.querySelector(q)?.textContent ?? '', selector),
		(s) => pattern.test(s), `${selector} matches ${pattern}`);
}

/**
 * Waits for an element in a lazily loaded part of the page. Retries as often as the page reports that loading failed,
 * because a browser may cache the failure. A page that reloads during the wait counts as not ready.
 */
export function loaded(page, selector) {
	return until(() => page.evaluate((q) => {
		document.querySelector('.lost button')?.click();
		return document.querySelector(q) !== null;
	}, selector).catch(() => false), (there) => there, selector);
}
