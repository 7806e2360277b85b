// Every text that a page shows, in English and German.  A text is a string with {names} in it, or an object of strings
// by plural form ("one", "other"), which the value {n} chooses among.
//
//   const t = words('buyer', 'de');
//   t('seatsLeft', { n: 3 })            // "3 Plätze frei"
//
// Groups: `seats` is the web component's, `buyer` that of the list and the buyer's page, `ops` that of the operator's page.

// ---- the web component ----

const seats = {
  en: {
  },
  de: {
  },
};

// ---- the list of events and the buyer's page ----

const buyer = {
  en: {
    skip: 'Skip to the content',
    events: 'Events on sale',
  },
  de: {
    skip: 'Zum Inhalt springen',
    events: 'Veranstaltungen im Verkauf',
  },
};

// ---- the operator's page ----

const ops = {
  en: {
  },
  de: {
  },
};

export const texts = { seats, buyer, ops };
export const languages = ['en', 'de'];

// The language of a reader: the one asked for, else the first of the browser's that there are texts in.  The region is
// kept, since it decides how times and money are written: "de-AT", "en-GB".
export function language(wanted, preferred = navigator.languages ?? []) {
  for (const tag of [wanted, ...preferred, 'en']) {
    try {
      const { language: name } = new Intl.Locale(tag);
      if (languages.includes(name)) return tag;
    } catch { /* not a language tag */ }
  }
  return 'en';
}

// A function that returns the texts of a group.  A key that the language lacks is shown in English, and a key that
// does not exist is an error, so that a test finds it.
export function words(group, lang) {
  const name = new Intl.Locale(lang).language;
  const plural = new Intl.PluralRules(lang);
  return (key, values = {}) => {
    const text = texts[group][name]?.[key] ?? texts[group].en[key];
    if (text === undefined) throw new Error(`no text ${group}.${key}`);
    const chosen = typeof text === 'string' ? text : text[plural.select(values.n)] ?? text.other;
    return chosen.replace(/\{(\w+)\}/g, (_, value) => values[value] ?? '');
  };
}
