// SPDX-License-Identifier: Apache-2.0
// Styles of the analysis panels.
import '../base/later.ts';
import { addStyles } from '../base/styles.ts';
import text from './why.part.css';

addStyles(text);
