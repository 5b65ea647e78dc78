// The styles of what shows why runs are good.
import '../base/later.ts';
import { addStyles } from '../base/styles.ts';
import text from './why.part.css';

addStyles(text);
