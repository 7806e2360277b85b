import { language } from '../texts.js';

document.documentElement.lang = language();
