// The card: a form of ours where a sandbox takes test cards, Stripe's own element where Stripe is paid.  A real card number
// is typed into Stripe's frame and never reaches this page.
//
// Both kinds have the same methods:
//   check()           null, or { field, text } of what is not filled in
//   pay(payment, returnUrl)   pays; resolves to { outcome: 'done' | 'declined' | 'redirect' | 'unknown', message?, url? }
//   lock(busy)        while a payment is under way

import { byId } from './dom.js';

const STRIPE_JS = 'https://js.stripe.com/v3/';
const TIMEOUT_MS = 30_000;

// ---- a sandbox ----

// Reads "12/34", "12/2034", "12 34" or "1234" as { month, year }; null if it is none of these.
export function readExpiry(text) {
  const [, month, year] = /^\s*(\d{1,2})\s*[/\-. ]\s*(\d{2}|\d{4})\s*$/.exec(text) ?? /^\s*(\d{2})(\d{2}|\d{4})\s*$/.exec(text) ?? [];
  if (!month || Number(month) < 1 || Number(month) > 12) return null;
  return { month: Number(month), year: Number(year) < 100 ? 2000 + Number(year) : Number(year) };
}

export class SandboxCard {
  #number = byId('card-number');
  #expiry = byId('card-expiry');
  #cvc = byId('card-cvc');

  constructor(t) {
    this.t = t;
    this.#expiry.placeholder = t('expiryHint');
    byId('card-fields').hidden = false;
  }

  check() {
    const wrong = !/^\d{12,19}$/.test(this.#number.value.replace(/[\s-]/g, '')) ? [this.#number, 'wrongNumber']
      : !readExpiry(this.#expiry.value) ? [this.#expiry, 'wrongExpiry']
        : !/^\s*\d{3,4}\s*$/.test(this.#cvc.value) ? [this.#cvc, 'wrongCvc'] : null;
    for (const field of [this.#number, this.#expiry, this.#cvc]) {
      if (field === wrong?.[0]) field.setAttribute('aria-invalid', 'true');
      else field.removeAttribute('aria-invalid');
    }
    return wrong && { field: wrong[0], text: this.t(wrong[1]) };
  }

  lock(busy) { for (const field of [this.#number, this.#expiry, this.#cvc]) field.readOnly = busy; }

  // The fields are emptied once the card has done its work.
  clear() { for (const field of [this.#number, this.#expiry, this.#cvc]) field.value = ''; }

  async pay(payment, returnUrl) {
    const { month, year } = readExpiry(this.#expiry.value);
    const form = new URLSearchParams({
      key: payment.publishable_key,
      client_secret: payment.client_secret,
      return_url: returnUrl,
      'payment_method_data[type]': 'card',
      'payment_method_data[card][number]': this.#number.value.replace(/[\s-]/g, ''),
      'payment_method_data[card][exp_month]': month,
      'payment_method_data[card][exp_year]': year,
      'payment_method_data[card][cvc]': this.#cvc.value.trim(),
    });
    const answer = await post(`${payment.api}/v1/payment_intents/${encodeURIComponent(payment.intent)}/confirm`, form);
    if (!answer) return { outcome: 'unknown', message: this.t('providerTrouble') };
    return answer.ok ? outcomeOf(answer.json) : refusalOf(answer.json?.error, this.t);
  }
}

// Resolves to null if no answer came; the card may have been charged all the same.
async function post(url, form) {
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), TIMEOUT_MS);
  try {
    const response = await fetch(url, { method: 'POST', body: form, credentials: 'omit', signal: giveUp.signal });
    return { ok: response.ok, json: await response.json() };
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
  }
}

function outcomeOf(intent) {
  const url = intent.next_action?.redirect_to_url?.url;
  if (intent.status === 'requires_action' && /^https?:\/\//.test(url ?? '')) return { outcome: 'redirect', url };
  return { outcome: intent.status === 'requires_payment_method' ? 'declined' : 'done', message: intent.last_payment_error?.message };
}

// A card error is for the buyer to read.  Other errors say that the intent is not to be paid in this way any more (it has
// been paid or canceled, say), or that something is broken: the booking knows.
function refusalOf(error, t) {
  if (error?.type === 'card_error') return { outcome: 'declined', message: error.message };
  return { outcome: 'unknown', message: error?.message ?? t('providerTrouble') };
}

// ---- Stripe ----

function loadStripe() {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = STRIPE_JS;
    script.onload = () => (globalThis.Stripe ? resolve(globalThis.Stripe) : reject(new Error('Stripe.js is empty')));
    script.onerror = () => reject(new Error('Stripe.js cannot be loaded'));
    document.head.append(script);
  });
}

export class StripeCard {
  #stripe;
  #card;
  #isComplete = false;

  // Loads Stripe.js and shows its element.  Fails if Stripe cannot be reached.
  static async open(publishableKey, lang, t) {
    const Stripe = await loadStripe();
    const made = new StripeCard();
    made.t = t;
    made.#stripe = Stripe(publishableKey, { locale: new Intl.Locale(lang).language });
    made.#card = made.#stripe.elements().create('card', { style: { base: { color: getComputedStyle(document.body).color, fontSize: '16px' } } });
    byId('card-element').hidden = false;
    made.#card.mount('#card-element');
    made.#card.on('change', ({ complete }) => { made.#isComplete = complete; });
    return made;
  }

  check() { return this.#isComplete ? null : { field: { focus: () => this.#card.focus() }, text: this.t('cardIncomplete') }; }
  lock(busy) { this.#card.update({ disabled: busy }); }
  clear() { this.#card.clear(); }

  // Stripe.js shows the bank's page in a frame of its own where one is needed.
  async pay(payment, returnUrl) {
    const { error, paymentIntent } = await this.#stripe.confirmCardPayment(payment.client_secret, { payment_method: { card: this.#card }, return_url: returnUrl });
    if (error) return error.type === 'validation_error' ? { outcome: 'declined', message: error.message } : refusalOf(error, this.t);
    return outcomeOf(paymentIntent);
  }
}
