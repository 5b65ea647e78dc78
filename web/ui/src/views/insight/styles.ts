// SPDX-License-Identifier: Apache-2.0
// Styles of timeline and speed comparison.
import '../base/later.ts';
import { addStyles } from '../base/styles.ts';
import text from './insight.part.css';

addStyles(text);
