// SPDX-License-Identifier: Apache-2.0
// Drops the small words of a question from a search. The theme completes each word (to*), so they would match every page.
"use strict";
const smallWords = new Set(("a all an and any are at be by can could did do does for from had has have here how i if in into is it its keep me my no "
	+ "not of on or our see should so some that the their them there they this to two use was we what when where which who why will with "
	+ "would you your").split(" "));

function dropSmallWords(question) {
	const words = question.split(/[\s?!.,;:]+/).filter((word) => word);
	const kept = words.filter((word) => !smallWords.has(word.toLowerCase()));
	return words.length > 2 && kept.length ? kept.join(" ") : question;
}

const postToWorker = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...more) {
	const isQuery = message && message.type === 2 && typeof message.data === "string";
	return postToWorker.call(this, isQuery ? { ...message, data: dropSmallWords(message.data) } : message, ...more);
};
