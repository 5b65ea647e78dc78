// Debian's chromium behind playwright-core: one browser, a fresh context per test, everything that a page does recorded.
import { createRequire } from 'node:module';
import path from 'node:path';
import { builddir } from './serve.mjs';

export const require = createRequire(path.join(builddir, 'tests/web/work/x.js'));
const { chromium } = require('playwright-core');

export const ARGS = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-background-networking',
	'--disable-component-update', '--disable-sync', '--no-first-run'];

export function launch() {
	return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ARGS });
}

/** A page that notes its requests and complaints. */
export async function open(browser, address, { width = 1280, height = 800, colorScheme = 'light' } = {}) {
	const context = await browser.newContext({ viewport: { width, height }, colorScheme, deviceScaleFactor: 1, locale: 'en-GB',
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
	await page.waitForSelector('.app[data-ready="true"]', { timeout: 15000 });
	await page.waitForFunction(() => {
		const shown = [...document.querySelectorAll('[data-chart]')].filter((c) => c.getBoundingClientRect().top < innerHeight);
		return shown.every((c) => c.chart?.drawn()?.lines.length > 0);
	}, null, { timeout: 15000 });
}

/** What a chart has drawn. */
export function chart(page, key) {
	return page.evaluate((k) => document.querySelector(`[data-chart="${k}"]`).chart.drawn(), key);
}
