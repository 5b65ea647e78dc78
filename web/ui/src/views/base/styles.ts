// Styles that come with a script: added to the page once, when its part is loaded.

export function addStyles(text: string): void {
	const sheet = new CSSStyleSheet();
	sheet.replaceSync(text);
	document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}
