// What this browser remembers of a purchase, per event: the ids of the hold and of the booking, which are secrets, and
// the key under which the booking is made; and the id of the buyer's entry of the waiting list, a secret, too.  In local
// storage, so that a reload and a second tab go on with it, and only until it is over.  Where storage is forbidden (a page
// inside another site's frame, say) it lasts as long as the page.
//
//   holdfast:{event}        { hold, fence, booking, secret, key }
//   holdfast:{event}:entry  { entry }

const PREFIX = 'holdfast:';

export class Keep {
  #name;
  #what;
  #memory = null;

  // `what` is 'hold' or 'entry': whose id is kept.  `changed` is called when another tab has changed what is kept.
  constructor(event, what, changed) {
    this.#what = what;
    this.#name = PREFIX + event + (what === 'hold' ? '' : `:${what}`);
    addEventListener('storage', ({ key }) => { if (key === this.#name || key === null) changed(); });
  }

  get() {
    try {
      const kept = JSON.parse(localStorage.getItem(this.#name));
      return kept && typeof kept === 'object' && typeof kept[this.#what] === 'string' ? kept : null;
    } catch { return this.#memory; }
  }

  set(kept) {
    this.#memory = kept;
    try { localStorage.setItem(this.#name, JSON.stringify(kept)); } catch { /* this page remembers it */ }
  }

  // Adds to what is kept of this id; nothing if another one is kept by now.
  add(id, more) {
    const kept = this.get();
    if (kept?.[this.#what] === id) this.set({ ...kept, ...more });
  }

  // Forgets this id.
  clear(id) {
    if (this.get()?.[this.#what] !== id) return;
    this.#memory = null;
    try { localStorage.removeItem(this.#name); } catch { /* there is none */ }
  }
}

// What was booked, so that a reload shows it again: in this tab alone, and no longer than the tab.
export class Receipt {
  #name;

  constructor(event) { this.#name = PREFIX + event; }

  get() { try { return sessionStorage.getItem(this.#name); } catch { return null; } }
  set(booking) { try { sessionStorage.setItem(this.#name, booking); } catch { /* a reload will not show it */ } }
  clear() { try { sessionStorage.removeItem(this.#name); } catch { /* there is none */ } }
}
