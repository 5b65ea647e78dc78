// The styles of later parts of the page: whatever needs them imports this. They are no part of the first screen.
import { addStyles } from './styles.ts';
import text from './later.part.css';

addStyles(text);
