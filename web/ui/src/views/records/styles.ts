// SPDX-License-Identifier: Apache-2.0
// Styles of console, code and media.
import '../base/later.ts';
import { addStyles } from '../base/styles.ts';
import text from './told.part.css';

addStyles(text);
