// What the map says: a line above the seats, which lasts or passes, and words for screen readers.

const NOTE_MS = 4000;

export class Notes {
  #timer = 0;
  #lasting = '';

  constructor({ note, live }) {
    this.note = note;
    this.live = live;
  }

  close() {
    clearTimeout(this.#timer);
    this.#show(this.#lasting);
  }

  // Says something to screen readers, who do not hear a text that stays the same.
  announce(text) { this.live.textContent = text === this.live.textContent ? `${text}\u00a0` : text; }

  // Shows a text until another one takes its place; '' shows none.
  last(text) {
    if (text === this.#lasting) return; // what passes may go on
    this.#lasting = text;
    clearTimeout(this.#timer);
    this.#show(text);
  }

  // Shows a text for a moment.
  pass(text) {
    this.#show(text);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#show(this.#lasting), NOTE_MS);
  }

  #show(text) {
    this.note.textContent = text;
    this.note.hidden = text === '';
  }
}
