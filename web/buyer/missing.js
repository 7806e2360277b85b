// The page of a path that does not exist.  It says so without this script, too, in English.

import { language, words } from '../texts.js';
import { translate, withBrand } from './dom.js';

const lang = language(new URLSearchParams(location.search).get('lang') ?? undefined);
const t = words('buyer', lang);
document.documentElement.lang = lang;
document.title = withBrand(t('notFound'));
translate(t);
