// Every text that a page shows, in English and German.  A text is a string with {names} in it, or an object of strings
// by plural form ("one", "other"), which the value {n} chooses among.  Numbers are written as the language writes them.
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
    allEvents: 'All events',
    // the list
    events: 'Events on sale',
    loading: 'Loading…',
    noEvents: 'Nothing is on sale at the moment.',
    eventsShown: { one: 'One event is on sale.', other: '{n} events are on sale.' },
    eventsFirst: 'These are {n} of the events on sale.',
    listFailed: 'The events cannot be loaded. {reason}',
    tryAgain: 'Try again',
    showMore: 'Show more events',
    from: 'from {price}',
    free: 'free of charge',
    seatsLeft: { one: 'One place left', other: '{n} places left' },
    soldOut: 'Sold out',
    // the event
    notFound: 'Not found',
    notLoaded: 'Not loaded',
    noSuchEvent: 'There is no such event. It may be over, or the address is incomplete.',
    eventFailed: 'The event cannot be loaded. {reason}',
    closed: 'Tickets are not on sale at the moment.',
    opensAt: 'Sales open on {time}.',
    salesEnded: 'Sales have ended.',
    reopened: 'Tickets are on sale again.',
    reconnecting: 'The connection is lost. The map may be out of date; trying again…',
    // choosing
    chooseTitle: 'Choose seats',
    findSeat: 'Find a seat',
    findHint: 'such as {id}',
    select: 'Select',
    noSuchSeat: 'There is no seat “{text}”.',
    severalSeats: '“{text}” fits {n} seats. Type more of it, such as {id}.',
    alreadySelected: '{seat} is among your seats already.',
    selected: '{seat} is selected.',
    removed: '{seat} is removed.',
    howMany: 'How many',
    category: 'Category',
    anyCategory: 'Any',
    accessible: 'Wheelchair places',
    findBest: 'Find best seats',
    badQuantity: 'How many must be a number from 1 to {most}.',
    areas: 'Without a seat number',
    areaHint: '{price} each, {n} left',
    yourSeats: 'Your seats',
    nothingChosen: 'Choose seats on the map, type a seat, or have the best ones found.',
    seatName: '{section}, row {row}, seat {label}',
    seatAndId: '{name} ({id})',
    places: { one: '{area}, one place', other: '{area}, {n} places' },
    remove: 'Remove {seat}',
    removeShort: 'Remove',
    total: 'Total',
    holdSeats: 'Hold seats',
    lost: { one: '{seats} was taken by somebody else and is removed from your seats.', other: '{seats} were taken by somebody else and are removed from your seats.' },
    tooMany: 'You can have at most {most} places at once.',
    // held
    heldFor: 'Held for you for another',
    timeLeft: 'Time left',
    held: { one: 'One place is held for you.', other: '{n} places are held for you.' },
    resumed: 'Your seats are still held for you.',
    minuteLeft: 'One minute left to pay.',
    giveBack: 'Give back',
    givenBack: 'You have given the seats back.',
    lastSeat: 'That was the last one; the hold is given back.',
    cannotChange: 'The seats cannot be changed once a payment has begun.',
    // paying
    paymentTitle: 'Payment',
    cardNumber: 'Card number',
    expiry: 'Expiry',
    expiryHint: 'MM/YY',
    cvc: 'CVC',
    sandboxNote: 'This is a test shop: pay with a test card such as 4242 4242 4242 4242. No money moves.',
    wrongNumber: 'The card number has 12 to 19 digits.',
    wrongExpiry: 'The expiry is a month and a year, such as 12/34.',
    wrongCvc: 'The CVC is the three or four digits on the card.',
    cardIncomplete: 'Fill in the card first.',
    pay: 'Pay {amount}',
    book: 'Book free of charge',
    booking: 'The seats are being booked…',
    waitingForProvider: 'Waiting for the payment provider. Your seats are held meanwhile…',
    paying: 'Your payment is being checked…',
    redirecting: 'Your bank wants to hear from you; its page opens…',
    takesLong: 'This takes longer than usual. You can leave this page open, or come back to it later.',
    offlineWhilePaying: 'The connection is lost. This page goes on asking whether the payment arrived…',
    declined: 'The card was declined: {message} Your seats are still held.',
    notCompleted: 'The payment was not completed. {message} Your seats are still held; you can pay again.',
    providerTrouble: 'The payment provider has a problem.',
    stripeUnreachable: 'The card form of Stripe cannot be loaded. Check the connection, then reload the page; your seats stay held.',
    paymentsOff: 'Nothing can be paid on this page: the shop takes payments elsewhere.',
    tooLate: 'Too little time is left to pay. Give the seats back and choose again.',
    tooManyAttempts: 'Too many payments for these seats have failed. Give the seats back and choose again.',
    amountTooSmall: 'The amount is too small to be paid by card.',
    paymentOver: 'The payment was ended before money moved. You can pay again while the seats are held.',
    moneyReturned: 'The seats could not be booked. What you paid is being returned.',
    // the end
    expiredTitle: 'Your time is up',
    expiredText: 'The seats were not paid in time, and are on sale again.',
    expired: 'Your hold has expired.',
    lookAgain: 'Look again',
    released: 'Your hold was given back.',
    evicted: 'Your hold has ended. Choose seats again.',
    booked: 'Booked',
    bookedText: 'These places are yours:',
    bookingId: 'Booking',
    orderNumber: 'Order number',
    paid: 'Paid',
    keepIds: 'Keep the booking to yourself: whoever has it can act on it.',
    bookMore: 'Book more seats',
    // refusals
    failed: 'That did not work: {reason}',
    unreachable: 'The server cannot be reached. Check the connection and try again.',
    busy: 'The server is busy. Try again in a moment.',
    tooManyHolds: 'You hold as many places as one visitor may. Pay for them, or give some back.',
    soldOutBest: 'There are no {n} places together that fit. Try fewer, or another category.',
  },
  de: {
    skip: 'Zum Inhalt springen',
    allEvents: 'Alle Veranstaltungen',
    events: 'Veranstaltungen im Verkauf',
    loading: 'Wird geladen …',
    noEvents: 'Zurzeit ist nichts im Verkauf.',
    eventsShown: { one: 'Eine Veranstaltung ist im Verkauf.', other: '{n} Veranstaltungen sind im Verkauf.' },
    eventsFirst: 'Das sind {n} der Veranstaltungen im Verkauf.',
    listFailed: 'Die Veranstaltungen können nicht geladen werden. {reason}',
    tryAgain: 'Noch einmal versuchen',
    showMore: 'Weitere Veranstaltungen',
    from: 'ab {price}',
    free: 'kostenlos',
    seatsLeft: { one: 'Noch ein Platz frei', other: 'Noch {n} Plätze frei' },
    soldOut: 'Ausverkauft',
    notFound: 'Nicht gefunden',
    notLoaded: 'Nicht geladen',
    noSuchEvent: 'Diese Veranstaltung gibt es nicht. Vielleicht ist sie vorbei, oder die Adresse ist unvollständig.',
    eventFailed: 'Die Veranstaltung kann nicht geladen werden. {reason}',
    closed: 'Zurzeit gibt es keine Karten.',
    opensAt: 'Der Verkauf beginnt am {time}.',
    salesEnded: 'Der Verkauf ist beendet.',
    reopened: 'Es gibt wieder Karten.',
    reconnecting: 'Die Verbindung ist unterbrochen. Der Plan ist vielleicht veraltet; neuer Versuch …',
    chooseTitle: 'Plätze wählen',
    findSeat: 'Platz suchen',
    findHint: 'zum Beispiel {id}',
    select: 'Auswählen',
    noSuchSeat: 'Einen Platz „{text}“ gibt es nicht.',
    severalSeats: '„{text}“ passt auf {n} Plätze. Geben Sie mehr davon ein, zum Beispiel {id}.',
    alreadySelected: '{seat} gehört schon zu Ihren Plätzen.',
    selected: '{seat} ist ausgewählt.',
    removed: '{seat} ist entfernt.',
    howMany: 'Wie viele',
    category: 'Kategorie',
    anyCategory: 'Alle',
    accessible: 'Rollstuhlplätze',
    findBest: 'Beste Plätze finden',
    badQuantity: '„Wie viele“ muss eine Zahl von 1 bis {most} sein.',
    areas: 'Ohne Platznummer',
    areaHint: 'je {price}, noch {n} frei',
    yourSeats: 'Ihre Plätze',
    nothingChosen: 'Wählen Sie Plätze im Plan, geben Sie einen Platz ein, oder lassen Sie die besten finden.',
    seatName: '{section}, Reihe {row}, Platz {label}',
    seatAndId: '{name} ({id})',
    places: { one: '{area}, ein Platz', other: '{area}, {n} Plätze' },
    remove: '{seat} entfernen',
    removeShort: 'Entfernen',
    total: 'Summe',
    holdSeats: 'Plätze reservieren',
    lost: { one: '{seats} wurde von jemand anderem genommen und ist aus Ihren Plätzen entfernt.', other: '{seats} wurden von jemand anderem genommen und sind aus Ihren Plätzen entfernt.' },
    tooMany: 'Sie können höchstens {most} Plätze auf einmal haben.',
    heldFor: 'Für Sie reserviert, noch',
    timeLeft: 'Verbleibende Zeit',
    held: { one: 'Ein Platz ist für Sie reserviert.', other: '{n} Plätze sind für Sie reserviert.' },
    resumed: 'Ihre Plätze sind weiterhin für Sie reserviert.',
    minuteLeft: 'Noch eine Minute zum Bezahlen.',
    giveBack: 'Zurückgeben',
    givenBack: 'Sie haben die Plätze zurückgegeben.',
    lastSeat: 'Das war der letzte Platz; die Reservierung ist zurückgegeben.',
    cannotChange: 'Sobald eine Zahlung begonnen hat, können die Plätze nicht mehr geändert werden.',
    paymentTitle: 'Bezahlung',
    cardNumber: 'Kartennummer',
    expiry: 'Gültig bis',
    expiryHint: 'MM/JJ',
    cvc: 'Prüfziffer',
    sandboxNote: 'Dies ist ein Testladen: Bezahlen Sie mit einer Testkarte wie 4242 4242 4242 4242. Es fließt kein Geld.',
    wrongNumber: 'Die Kartennummer hat 12 bis 19 Ziffern.',
    wrongExpiry: 'Das Ablaufdatum besteht aus Monat und Jahr, zum Beispiel 12/34.',
    wrongCvc: 'Die Prüfziffer sind die drei oder vier Ziffern auf der Karte.',
    cardIncomplete: 'Füllen Sie zuerst die Kartendaten aus.',
    pay: '{amount} bezahlen',
    book: 'Kostenlos buchen',
    booking: 'Die Plätze werden gebucht …',
    waitingForProvider: 'Der Zahlungsdienst lässt auf sich warten. Ihre Plätze bleiben reserviert …',
    paying: 'Ihre Zahlung wird geprüft …',
    redirecting: 'Ihre Bank möchte von Ihnen hören; ihre Seite öffnet sich …',
    takesLong: 'Das dauert länger als sonst. Sie können diese Seite offen lassen oder später zurückkehren.',
    offlineWhilePaying: 'Die Verbindung ist unterbrochen. Diese Seite fragt weiter, ob die Zahlung angekommen ist …',
    declined: 'Die Karte wurde abgelehnt: {message} Ihre Plätze bleiben reserviert.',
    notCompleted: 'Die Zahlung wurde nicht abgeschlossen. {message} Ihre Plätze bleiben reserviert; Sie können noch einmal bezahlen.',
    providerTrouble: 'Der Zahlungsdienst hat ein Problem.',
    stripeUnreachable: 'Das Kartenformular von Stripe kann nicht geladen werden. Prüfen Sie die Verbindung und laden Sie die Seite neu; Ihre Plätze bleiben reserviert.',
    paymentsOff: 'Auf dieser Seite kann nicht bezahlt werden: Der Laden nimmt Zahlungen anderswo an.',
    tooLate: 'Zum Bezahlen bleibt zu wenig Zeit. Geben Sie die Plätze zurück und wählen Sie neu.',
    tooManyAttempts: 'Zu viele Zahlungen für diese Plätze sind gescheitert. Geben Sie die Plätze zurück und wählen Sie neu.',
    amountTooSmall: 'Der Betrag ist zu klein für eine Kartenzahlung.',
    paymentOver: 'Die Zahlung wurde beendet, bevor Geld geflossen ist. Solange die Plätze reserviert sind, können Sie noch einmal bezahlen.',
    moneyReturned: 'Die Plätze konnten nicht gebucht werden. Ihr Geld wird zurückgezahlt.',
    expiredTitle: 'Ihre Zeit ist abgelaufen',
    expiredText: 'Die Plätze wurden nicht rechtzeitig bezahlt und sind wieder im Verkauf.',
    expired: 'Ihre Reservierung ist abgelaufen.',
    lookAgain: 'Noch einmal suchen',
    released: 'Ihre Reservierung wurde zurückgegeben.',
    evicted: 'Ihre Reservierung ist beendet. Wählen Sie neue Plätze.',
    booked: 'Gebucht',
    bookedText: 'Diese Plätze gehören Ihnen:',
    bookingId: 'Buchung',
    orderNumber: 'Bestellnummer',
    paid: 'Bezahlt',
    keepIds: 'Behalten Sie die Buchung für sich: Wer sie kennt, kann über sie verfügen.',
    bookMore: 'Weitere Plätze buchen',
    failed: 'Das hat nicht geklappt: {reason}',
    unreachable: 'Der Server ist nicht erreichbar. Prüfen Sie die Verbindung und versuchen Sie es noch einmal.',
    busy: 'Der Server ist beschäftigt. Versuchen Sie es gleich noch einmal.',
    tooManyHolds: 'Sie haben so viele Plätze reserviert, wie ein Besucher darf. Bezahlen Sie sie, oder geben Sie welche zurück.',
    soldOutBest: 'Es gibt keine {n} passenden Plätze nebeneinander. Versuchen Sie es mit weniger oder einer anderen Kategorie.',
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
  const digits = new Intl.NumberFormat(lang);
  const shown = (value) => (typeof value === 'number' ? digits.format(value) : value ?? '');
  return (key, values = {}) => {
    const text = texts[group][name]?.[key] ?? texts[group].en[key];
    if (text === undefined) throw new Error(`no text ${group}.${key}`);
    const chosen = typeof text === 'string' ? text : text[plural.select(values.n)] ?? text.other;
    return chosen.replace(/\{(\w+)\}/g, (_, value) => shown(values[value]));
  };
}
