// SPDX-License-Identifier: Apache-2.0
// Adds the styles of a script to the page once, when it is loaded.

export function addStyles(text: string): void {
	const sheet = new CSSStyleSheet();
	sheet.replaceSync(text);
	document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}
