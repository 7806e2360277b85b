// What this browser remembers of a purchase, per event: the ids of the hold and of the booking, which are secrets, and
// the key under which the booking is made.  In local storage, so that a reload and a second tab go on with it, and only
// until the purchase is over.  Where storage is forbidden (a page inside another site's frame, say) it lasts as long as the page.
//
//   { hold, fence, booking, secret, key }

const PREFIX = 'holdfast:';

export class Keep {
  #name;
  #memory = null;

  // `changed` is called when another tab has changed what is kept.
  constructor(event, changed) {
    this.#name = PREFIX + event;
    addEventListener('storage', ({ key }) => { if (key === this.#name || key === null) changed(); });
  }

  get() {
    try {
      const kept = JSON.parse(localStorage.getItem(this.#name));
      return kept && typeof kept === 'object' && typeof kept.hold === 'string' ? kept : null;
    } catch { return this.#memory; }
  }

  set(kept) {
    this.#memory = kept;
    try { localStorage.setItem(this.#name, JSON.stringify(kept)); } catch { /* this page remembers it */ }
  }

  // Adds to what is kept of this hold; nothing if another hold is kept by now.
  add(hold, more) {
    const kept = this.get();
    if (kept?.hold === hold) this.set({ ...kept, ...more });
  }

  // Forgets this hold.
  clear(hold) {
    if (this.get()?.hold !== hold) return;
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
