// The few things that both pages do with the document.  Names that sellers and buyers wrote reach it as text nodes only.

export const byId = (id) => document.getElementById(id);

// Makes an element.  `fields` are its properties, or attributes where their name has a hyphen or is `role` or `for`; children are elements or text.
export function element(name, fields = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(fields)) {
    if (key.includes('-') || key === 'role' || key === 'for') made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

// A title of the page, with the name of the shop if the server has a brand.
export const withBrand = (title) => [title, document.querySelector('meta[name="application-name"]')?.content].filter(Boolean).join(' · ');

// Puts the texts of a language where the markup names them: data-text for contents, data-label for names.
export function translate(t) {
  for (const each of document.querySelectorAll('[data-text]')) each.textContent = t(each.dataset.text);
  for (const each of document.querySelectorAll('[data-label]')) each.setAttribute('aria-label', t(each.dataset.label));
}
