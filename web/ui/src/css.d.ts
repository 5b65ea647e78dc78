// SPDX-License-Identifier: Apache-2.0
declare module '*.part.css' {
	const text: string;
	export default text;
}
declare module '*.css';
/** A table of schema/: rows of the macro's name and its arguments. */
declare module '*.def' {
	const rows: readonly (readonly string[])[];
	export default rows;
}
