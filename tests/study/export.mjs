// SPDX-License-Identifier: Apache-2.0
// Opens a report of `dptrack serve` in a browser, freezes its panels, and saves it as one HTML file.
// usage: node export.mjs URL REPORT FILE
import { launch } from '../web/browser.mjs';

const [url, report, file] = process.argv.slice(2);
const WAIT = { timeout: 60000 };
const browser = await launch();
try {
	const page = await browser.newPage();
	await page.goto(`${url}?report=${report}`, WAIT);
	await page.waitForSelector('.reporttext figure, .reporttext p', WAIT);
	const freeze = page.locator('button:text-is("Freeze all")');
	if (await page.locator('.reporttext figure').count() > 0) {
		await freeze.click(WAIT);
		await page.waitForFunction(() => {
			const all = [...document.querySelectorAll('figure.reportpanel')];
			return all.length > 0 && all.every((f) => f.dataset.frozen === 'true');
		}, null, WAIT);
		await page.waitForFunction(() => [...document.querySelectorAll('.reporttext [data-chart]')]
			.every((c) => c.chart?.drawn()), null, WAIT);
	}
	const [download] = await Promise.all([page.waitForEvent('download', WAIT),
		page.click('button:text-is("Save as HTML")', WAIT)]);
	await download.saveAs(file);
} finally {
	await browser.close();
}
