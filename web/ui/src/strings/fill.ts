// SPDX-License-Identifier: Apache-2.0
// Puts values into the places {0}, {1}, … of a text.

export function filled(text: string, ...values: unknown[]): string {
	return text.replace(/\{(\d)\}/g, (_, at) => String(values[at]));
}

/** The text in pieces with the values between, which may be elements. */
export function parts<T extends unknown[]>(text: string, ...values: T): (T[number] | string)[] {
	return text.split(/\{(\d)\}/).map((piece, at) => (at % 2 ? values[Number(piece)] : piece));
}
