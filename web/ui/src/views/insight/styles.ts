// The styles of what shows where time went.
import '../base/later.ts';
import { addStyles } from '../base/styles.ts';
import text from './insight.part.css';

addStyles(text);
