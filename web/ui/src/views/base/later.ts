// SPDX-License-Identifier: Apache-2.0
// Styles of parts that are loaded on demand, not with the first screen.
import { addStyles } from './styles.ts';
import text from './later.part.css';

addStyles(text);
