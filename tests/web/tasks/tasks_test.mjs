// SPDX-License-Identifier: Apache-2.0
// Runs the tasks of tasks.mjs by keys alone, in a wide window and in one of 390 px, and checks the resulting page with
// axe. TASKS=all: every task in both windows and both themes; otherwise a third of them, each in one window.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { charted, clean, drawn, until, whole } from '../browser.mjs';
import { builddir } from '../serve.mjs';
import { stage } from '../stage.mjs';
import { tasks } from './tasks.mjs';

const TABS_MAX = 400;
/** Waits until more than one chart is drawn. */
const RANKS = 20;
const all = process.env.TASKS === 'all';
const here = stage((logdir) => execFileSync(path.join(builddir, 'tests/web/told_record'), [logdir]));

/** Creates a run of many ranks, one of them slower. */
async function ranked() {
	const { id } = await here.ask('POST', 'runs', { experiment: 'ranks', name: 'ranked' });
	const times = (slow) => [['phase/step', 1], ['phase/forward', slow ? 0.7 : 0.5],
		['phase/comm_exposed', slow ? 0.3 : 0.5]];
	const at = (i, rank) => ([key, value]) => ({ key, value, step: i + 1, wall_time: 1.7e9 + i, ...rank });
	const all = (i) => Array.from({ length: RANKS }, (_, rank) => times(rank === 1).map(at(i, { rank }))).flat();
	for (let i = 0; i < 40; i++)
		await here.ask('POST', `runs/${id}/metrics`,
			{ points: [at(i)(['train/loss', 1 / (i + 1)]), ...all(i)] });
	return id;
}

/** Creates 12 runs of two rates, two decays and three seeds, and a run of many ranks. */
async function fill() {
	for (let i = 0; i < 12; i++) {
		const params = { lr: String([0.1, 1][i % 2]), wd: String([0, 2][(i >> 1) % 2]), seed: String(i >> 2),
			...Object.fromEntries(Array.from({ length: 8 }, (_, p) => ['same' + p, 'x'])) };
		const { id } = await here.ask('POST', 'runs', { experiment: 'sweep', name: 'r' + i, params,
			start_time: 1.7e12 + i });
		const at = (key, value) => (_, k) => ({ key, step: k + 1, value: value(k), wall_time: 1.7e9 + k });
		const curve = (key, value) => Array.from({ length: 30 }, at(key, value));
		await here.ask('POST', `runs/${id}/metrics`, { points: [
			...curve('train/loss', (k) => (1 + (i % 2)) / (k + 1) + i / 1000),
			...curve('val/acc', (k) => k / 40 - (i % 2) / 10 + i / 1000)] });
		await here.ask('PATCH', 'runs/' + id, { status: 'finished' });
	}
	for (const name of ['one', 'two', 'three', 'four', 'five'])
		await here.ask('POST', 'runs', { experiment: 'team/' + name, name: 'r' });
	const RANKED = await ranked();
	const { runs: records } = await here.ask('GET', 'runs?experiment=told');
	const { runs: sweep } = await here.ask('GET', 'runs?experiment=sweep&order_by=metrics."val/acc".max+DESC');
	return { ONE: records.find((r) => r.name === 'one').id, RUN: sweep[0].id, RANKED };
}
let filled = null;

/** The actions that a task may use; none uses the pointer. */
function keysOf(page, width, colorScheme) {
	const focused = (selector) => page.locator(selector).first()
		.evaluate((e) => e === document.activeElement).catch(() => false);
	const k = {
		narrow: width < 720,
		window: `${width} ${colorScheme}`,
		press: async (...keys) => {
			for (const key of keys) await page.keyboard.press(key);
		},
		type: (words) => page.keyboard.type(words),
		reach: async (selector) => {
			await page.locator(selector).first().waitFor({ state: 'attached' });
			for (let i = 0; i < TABS_MAX; i++) {
				if (await focused(selector)) return;
				await page.keyboard.press('Tab');
			}
			assert.fail(`Tab does not reach ${selector}`);
		},
		at: (selector) => until(() => focused(selector), (there) => there, `the focus is at ${selector}`),
		enter: async (selector) => {
			await k.reach(selector);
			await page.keyboard.press('Enter');
		},
		/** Opens a tool of the header's menu, which holds more of them in a narrow window. */
		tool: async (word) => {
			await k.enter('.others > .pop > button');
			return k.enter(`.others li button:text-is("${word}")`);
		},
		says: (selector, pattern) => until(() => page.locator(selector).first().textContent({ timeout: 1000 })
			.catch(() => ''), (s) => pattern.test(s), `${selector} matches ${pattern}`),
		lines: (chart, n) => charted(page, chart, (d) => d.lines.length === n),
		whole: () => whole(page),
		gone: (selector) => page.waitForSelector(selector, { state: 'detached', timeout: 30000 }),
		address: (pattern) => until(() => decodeURIComponent(page.url()), (u) => pattern.test(u),
			String(pattern)),
	};
	return k;
}

async function doTask(t, task, { width, colorScheme }) {
	const ids = await (filled ??= fill());
	const page = await here.open(t, 'health');
	await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
	await page.setViewportSize({ width, height: 844 });
	await page.goto(here.server.url + task.at.replace(/ONE|RUN|RANKED/, (w) => ids[w]));
	if (/r=(?!.*t=timeline)|e=sweep(?!.*(report|alerts))/.test(task.at)) await drawn(page);
	await task.act(keysOf(page, width, colorScheme));
	await clean(page);
}

assert.ok(tasks.length >= 25, `${tasks.length} tasks`);
for (const [i, task] of tasks.entries()) {
	const windows = all ? [[1280, 'light'], [1280, 'dark'], [390, 'light'], [390, 'dark']]
		: i % 3 ? [] : [i % 2 ? [390, 'dark'] : [1280, 'light']];
	for (const [width, colorScheme] of windows)
		test(`${task.part}: ${task.name} (${width} px, ${colorScheme})`,
			(t) => doTask(t, task, { width, colorScheme }));
}
