// The buyer's page /e/{event}: a thin shell around <holdfast-seats>.  This file connects the parts (screen.js shows, purchase.js
// asks the server, card.js pays) and decides what comes next:
//
//   choosing --Continue, Find best seats--> held --Pay--> paying --> booked
//      ^   `--an offer of the waiting list-->|  ^            |
//      |                                     |  `--declined--'
//      `--Give back, Look again <-- expired <-'
//
// On a narrow screen these are steps that take each other's place; a wide one shows the map beside each of them.
//
// The hold is the server's.  What this page keeps of it (keep.js) is only its id, so that a reload and a second tab find it again.

import { call, insist, Problem, Unreachable } from '../lib/api.js';
import { countdown, duration } from '../lib/format.js';
import { venueText, venueZone } from '../lib/venue_time.js';
import { words } from '../texts.js';
import { SandboxCard, StripeCard } from './card.js';
import { byId, translate } from './dom.js';
import { Keep, Receipt } from './keep.js';
import { Places } from './places.js';
import { Purchase, stageOf } from './purchase.js';
import { keptQuery, linkedBooking, redirectStatus } from './returned.js';
import { isBefore, isOnSale } from './sale.js';
import { hasAccessible, Screen } from './screen.js';
import { eventId, lang, map } from './stage.js';
import { Waiting } from './waiting.js';

const TICK_MS = 500;
const WATCH_MS = 5000;
const UNKNOWN_MS = 10_000; // how long the server may take to hear of a payment whose outcome this page does not know
const SOON_MS = 120_000; // the time that is left is pointed out, and more is offered
const LAST_MS = 30_000; // it is pointed out again
const MORE_LEAST_MS = 5000; // less is not worth a button
const SLOW_MS = 4000; // until the buyer is told what the page waits for
const LONG_MS = 15_000; // until the buyer is told that a payment takes long

const t = words('buyer', lang);

const keep = new Keep(eventId, 'hold', () => otherTabChanged());
const receipt = new Receipt(eventId);
const purchase = new Purchase('', keep);
const places = new Places(map, lang);
const screen = new Screen(map, places, t, lang);
const say = (text, kind) => screen.say(text, kind);
const waiting = new Waiting(new Keep(eventId, 'entry', () => waiting.resume()), {
  map, places, t, lang, say, reasonOf, eventId,
  now: () => serverNow(),
  isTaken: () => waiting.isOf(purchase.hold) || waiting.isOf(lapsed),
  changed: waitChanged,
  take: () => takeOffer(),
  leaveExpired: () => { if (phase === 'expired') show('choosing'); },
});

let phase = 'loading'; // choosing, held, paying, expired, booked; missing: there is no such event
let sale = { status: 'open' }; // the event, as GET /v1/events/{e} has it
let settings = null; // how this server is paid
let card = null; // see card.js
let isMapOpen = false; // the buyer looks at the map again, on a narrow screen, while seats are held
let toldMs = Infinity; // the time left that was pointed out last
let lapsed = null; // the hold that has expired
let couldBuy = false; // when the page was last drawn
let wasSoldOut = false; // likewise
let clockOffsetMs = 0; // the server's clock less this one
let watchedAt = 0; // when a booking that is open was last asked about

// A sentence for what was thrown.  The map's refusals are sentences already.
function reasonOf(error) {
  if (error instanceof Unreachable) return t('unreachable');
  if (!(error instanceof Problem)) return error.message;
  const sentences = {
    payments_off: 'paymentsOff', renewal_cap: 'tooLate', too_many_bookings: 'tooManyAttempts', amount_too_small: 'amountTooSmall',
    too_many_holds: 'tooManyHolds', event_closed: 'closed', event_cancelled: 'cancelled', booking_exists: 'cannotChange',
  };
  if (sentences[error.code]) return t(sentences[error.code]);
  return error.isPassing ? t('busy') : t('failed', { reason: error.message });
}

// ---- what is shown ----

const isChoosing = () => phase === 'choosing' || (phase === 'held' && !purchase.booking);
const countOf = ({ seats, areas }) => seats.length + Object.values(areas ?? {}).reduce((sum, n) => sum + n, 0);

const serverNow = () => Date.now() + clockOffsetMs;
const canBuy = () => isOnSale(sale, serverNow());
const isSoldOut = () => Boolean(sale.waitlist) && canBuy() && map.available === 0; // so that waiting is all that is left

function show(next) {
  phase = next;
  isMapOpen = isMapOpen && phase === 'held';
  couldBuy = canBuy();
  wasSoldOut = isSoldOut();
  screen.showPhase(phase, { canBuy: couldBuy, isMapOpen, isSoldOut: wasSoldOut });
  waiting.show({ phase, canBuy: couldBuy, isSoldOut: wasSoldOut });
  screen.showTitle(waiting.isOffered ? t('offeredTitle') : '');
  byId('offer-note').hidden = !waiting.isOf(purchase.hold);
  card?.lock(phase === 'paying');
  map.interactive = isChoosing() && couldBuy && !waiting.isOf(purchase.hold); // an offer gets no other places
  showPlaces();
  tick();
}

function showPlaces() {
  const { hold } = purchase;
  const chosen = isChoosing() ? places.chosenLines : [];
  screen.showPlaces({
    held: hold ? places.linesOf(hold) : [], amount: hold?.amount ?? 0, chosen, isSoldOut: wasSoldOut && phase === 'choosing',
    changeHeld: isChoosing() ? ({ seat }, type) => changeHeld(() => purchase.retype(seat, type)) : null,
    removeHeld: isChoosing() ? removeHeld : null,
    changeChosen: ({ seat }, type) => map.setType(seat, type),
    removeChosen,
  });
  // Places that are chosen besides the held ones are held first, or taken back.
  const isOn = chosen.length > 0 || isMapOpen;
  screen.showHoldButton({ isShown: isChoosing() && (phase === 'choosing' ? isOn || !wasSoldOut : isOn), isEnabled: isOn, isBack: isMapOpen && chosen.length === 0 });
  screen.showPayButton(!hold || isOn || (hold.amount > 0 && !card) ? null : hold.amount);
  screen.showWayDown(phase === 'choosing' && chosen.length === 0, wasSoldOut);
  showLone(isChoosing() && ['hint', 'refuse'].includes(sale.lone_seats) ? map.loneSeats : []);
}

// Points out seats that the choice would leave single, beside it for as long as it does, and once where everybody looks.
function showLone(seats) {
  const text = seats.length > 0 ? t('lone', { n: seats.length, seats: places.names(seats) }) : '';
  if (text && text !== screen.lone) say(text);
  screen.showLone(text);
}

function removeChosen({ seat, area, type }) {
  if (seat) {
    map.deselect(seat);
    say(t('removed', { seat: places.name(seat) }));
  } else {
    map.setArea(area, 0, type ?? undefined);
    showAreas();
  }
  screen.focusAfterRemoval();
}

// The map grants at most what is left and what a hold may have.  While somebody types, the field is left as it is.
function chooseArea(field, isTyping) {
  if (isTyping && field.value === '') return;
  const wanted = Math.max(0, Math.floor(Number(field.value) || 0));
  const granted = map.setArea(field.name, wanted, field.dataset.type || undefined);
  if (!isTyping) field.value = granted;
  if (granted === wanted) return;
  const { capacity } = map.areas.find(({ name }) => name === field.name);
  const isWaitable = wanted <= Math.min(capacity, sale.max_per_hold) && waiting.propose({ quantity: wanted, types: field.dataset.type && { [field.dataset.type]: wanted }, where: ['area', field.name] });
  say(`${t('fewer', { area: field.name, n: granted })}${isWaitable ? ` ${t('orWait')}` : ''}`, 'bad');
}

function showAreas() { screen.showAreas(sale.max_per_hold ?? Infinity, chooseArea); }

// Says why nothing can be bought, if that is so.
function saySale() {
  if (isSoldOut() && !waiting.entry) say(t('soldOut'));
  if (canBuy()) return;
  if (sale.status === 'open' && isBefore(sale, serverNow())) say(t('opensAt', { time: venueText(t, sale.sales_open_at, venueZone(sale), lang) }));
  else say(t({ open: 'salesEnded', cancelled: 'cancelled' }[sale.status] ?? 'closed'));
}

function choose(text = '', kind = '') {
  show('choosing');
  say(text, kind);
  if (!text) saySale();
  byId(wasSoldOut ? 'wait-title' : 'choose-title').focus();
  if (waiting.isOffered) takeOffer(); // while the buyer was busy with something else
}

// ---- choosing ----

function sayLost(seats) { say(t('lost', { n: seats.length, seats: places.names(seats) }), 'bad'); }

function findSeat(submit) {
  submit.preventDefault();
  const field = byId('find-text');
  const text = field.value.trim();
  const found = text ? map.find(text) : [];
  if (found.length === 0) return say(t('noSuchSeat', { text }), 'bad');
  if (found.length > 1) return say(t('severalSeats', { text, n: found.length, example: places.name(found[0]) }));
  const [id] = found, lone = screen.lone;
  map.focusSeat(id);
  if (map.selection.includes(id)) return say(t('alreadySelected', { seat: places.name(id) }));
  try {
    map.select(id);
  } catch (error) {
    return say(reasonOf(error), 'bad');
  }
  field.value = '';
  return say([t('selected', { seat: places.name(id) }), screen.lone === lone ? '' : screen.lone].join(' ').trim());
}

async function findBest(submit) {
  submit.preventDefault();
  const field = byId('best-quantity');
  const quantity = Number(field.value);
  const most = sale.max_per_hold;
  const isGood = Number.isInteger(quantity) && quantity >= 1 && quantity <= most;
  field.setAttribute('aria-invalid', String(!isGood));
  if (!isGood) {
    field.focus();
    return say(t('badQuantity', { most }), 'bad');
  }
  const wish = { quantity, category: byId('best-category').value, ...(byId('best-accessible').checked ? { accessible: true } : {}) };
  return hold(() => map.best(wish), (error) => {
    if (error.code !== 'sold_out') return reasonOf(error);
    const isWaitable = waiting.propose({ quantity, where: wish.category ? ['category', wish.category] : [], accessible: wish.accessible });
    return `${t('soldOutBest', { n: quantity })}${isWaitable ? ` ${t('orWait')}` : ''}`;
  });
}

// Makes a hold, or adds to it.  The map tells of it by its event `hold`.
async function hold(take, explain = reasonOf) {
  for (const button of document.querySelectorAll('#hold, #best button')) button.disabled = true;
  try {
    await take();
  } catch (error) {
    if (error.code === 'seat_taken') sayLost(error.seats);
    else say(explain(error), 'bad');
  } finally {
    for (const button of document.querySelectorAll('#best button')) button.disabled = false;
    showPlaces();
  }
}

// Holds what is chosen; where nothing more is, the buyer only looked at the map.
function goOn() {
  if (places.chosenLines.length > 0) return hold(() => map.hold());
  return openMap(false);
}

function openMap(isOpen) {
  isMapOpen = isOpen;
  show('held');
  scrollTo(0, 0);
  if (!isOpen) byId('seats-title').focus();
}

function goDown() {
  if (wasSoldOut) return waiting.goTo();
  byId('choose').scrollIntoView();
  return byId('choose-title').focus({ preventScroll: true });
}

async function held({ detail: { hold: granted } }) {
  const isNew = purchase.hold?.id !== granted.id;
  isMapOpen = false;
  if (isNew) purchase.begin(granted);
  else await purchase.readHold(granted.id);
  await showHeld(t('held', { n: countOf(granted) }));
}

async function showHeld(text) {
  toldMs = Infinity;
  receipt.clear();
  show('held');
  scrollTo(0, 0);
  say(text, 'good');
  byId('seats-title').focus(); // the button that was pressed is gone
  await showCard();
}

// Gives back some of the places that are held; with the last one, the hold.
async function removeHeld({ seat, area, n, type }) {
  if (places.linesOf(purchase.hold).length === 1) return giveBack();
  const what = seat ? { seats: [seat] } : { areas: { [area]: type ? { [type]: n } : n } };
  if (await changeHeld(() => purchase.remove(what))) say(t('removed', { seat: seat ? places.name(seat) : area }));
  return screen.focusAfterRemoval();
}

let changing = Promise.resolve();

// Changes the hold, after earlier changes, since each has to name the fence of the one before; resolves to true if that was possible.
function changeHeld(change) {
  changing = changing.then(() => changeHeldNow(change));
  return changing;
}

async function changeHeldNow(change) {
  try {
    await change();
    await map.refreshHold();
    return true;
  } catch (error) {
    say(reasonOf(error), 'bad');
    await judge(); // another tab may have changed it
    return false;
  } finally {
    showPlaces();
  }
}

// The map tells of the release while it is under way; judging it would say that somebody else has ended the hold.
let isGivingBack = false;

async function giveBack() {
  byId('give-back').disabled = true;
  isGivingBack = true;
  try {
    if (map.currentHold?.id === purchase.hold.id) await map.release();
    const wasOffered = waiting.isOf(purchase.hold);
    await purchase.release();
    if (wasOffered) waiting.forget();
    card?.clear();
    screen.showCardError(null);
    choose(t('givenBack'), 'good');
  } catch (error) {
    say(reasonOf(error), 'bad');
  } finally {
    isGivingBack = false;
    byId('give-back').disabled = phase === 'paying';
  }
}

// ---- time ----

function tick() {
  if (phase === 'choosing' && canBuy() !== couldBuy) saleChanged(sale);
  if (!purchase.hold || !['held', 'paying'].includes(phase)) return;
  const { leftMs } = purchase;
  const canHaveMore = phase === 'held' && leftMs <= SOON_MS && moreMs() >= MORE_LEAST_MS;
  screen.showTime(countdown(leftMs), leftMs > SOON_MS ? '' : leftMs > LAST_MS ? 'soon' : 'last', canHaveMore);
  if (phase !== 'held') return;
  sayTime(leftMs, canHaveMore);
  // A payment that this page did not see to its end, before a reload say, may still arrive.
  const isWatching = purchase.booking && performance.now() - watchedAt > WATCH_MS;
  if (leftMs <= 0 || isWatching) judge();
}

// Says how much time is left when it gets short, unless there never was more.
function sayTime(leftMs, canHaveMore) {
  const markMs = [LAST_MS, SOON_MS].find((ms) => leftMs <= ms) ?? Infinity;
  const isNew = markMs < toldMs;
  toldMs = markMs;
  const { created_at: since, expires_at: until } = purchase.hold;
  if (isNew && leftMs > 0 && Date.parse(until) - Date.parse(since) > markMs) say(t(canHaveMore ? 'leftToPayMore' : 'leftToPay', { time: duration(markMs, lang) }));
}

// How much longer the hold would last if it were renewed now.  Once a booking has begun, it cannot be.
function moreMs() {
  const { expires_at: until, max_expires_at: most } = purchase.hold;
  if (purchase.booking && stageOf(purchase.booking) !== 'over') return 0;
  return Math.min(Date.parse(most), serverNow() + sale.hold_ttl_ms) - Date.parse(until);
}

async function haveMoreTime() {
  const { expires_at: before } = purchase.hold;
  byId('more-time').disabled = true;
  try {
    await purchase.renew();
    map.refreshHold().catch(() => {});
    say(...(purchase.hold.expires_at > before ? [t('moreTimeGiven', { time: countdown(purchase.leftMs) }), 'good'] : [t('moreTimeOver')]));
    tick();
    if (byId('more-time').hidden) byId('seats-title').focus(); // the button that was pressed is gone
  } catch (error) {
    await stumble(error);
  } finally {
    byId('more-time').disabled = false;
  }
}

let isJudging = false;

// Asks the server how the hold stands, and goes where that leads.
async function judge() {
  if (isJudging || isGivingBack || phase !== 'held') return;
  isJudging = true;
  watchedAt = performance.now();
  try {
    const found = await purchase.readHold(purchase.hold.id);
    const isUnpaid = !purchase.booking || stageOf(await purchase.readBooking()) === 'open';
    if (phase !== 'held' || isGivingBack) return;
    if (found?.status === 'active' && isUnpaid) showPlaces();
    else await leaveHold(found);
  } catch { /* the next tick asks again */ } finally {
    isJudging = false;
  }
}

// The hold has ended: by a payment in the last moment or in another tab, by time, or by somebody.
async function leaveHold(found) {
  const booking = found?.booking ?? purchase.booking?.id;
  if (booking) {
    await purchase.readBooking(booking);
    const stage = stageOf(purchase.booking);
    if (stage === 'booked') return booked();
    if (stage === 'processing') return settle();
    if (found?.status === 'active') return decided(purchase.booking);
  }
  return isGivingBack ? undefined : ended(found?.status);
}

function ended(status) {
  lapsed = purchase.hold;
  purchase.forget();
  map.forget();
  map.clear();
  card?.clear();
  screen.showCardError(null);
  waiting.read();
  if (status !== 'expired') return choose(t('ended'), 'bad');
  return showExpired();
}

function showExpired() {
  show('expired');
  showLapsed();
  scrollTo(0, 0);
  say(t('expired'), 'bad');
  return byId('expired-title').focus();
}

// Offers what was held until now as long as it is free.
function showLapsed() {
  const available = Object.fromEntries(map.areas.map((area) => [area.name, area.available]));
  const gone = [...lapsed.seats.filter((id) => map.status(id) !== '.').map((id) => places.name(id)),
    ...Object.entries(lapsed.areas ?? {}).filter(([name, n]) => !(available[name] >= n)).map(([name]) => name)];
  screen.showExpired(lapsed, gone, waiting.isOf(lapsed));
}

async function takeSame() {
  byId('same').disabled = true;
  await hold(async () => {
    map.clear();
    for (const { seat, area, n, type } of places.linesOf(lapsed)) {
      if (area) map.setArea(area, n, type ?? undefined);
      else {
        map.select(seat);
        map.setType(seat, type);
      }
    }
    await map.hold();
  });
  byId('same').disabled = false;
  if (phase === 'held' && waiting.isOf(lapsed)) waiting.forget();
  if (phase === 'expired') show('choosing'); // with what is left of them
}

// ---- paying ----

async function showCard() {
  if (card || !(purchase.hold?.amount > 0)) return;
  try {
    settings ??= (await insist('', 'GET', '/web/settings.json')).json.payments;
    if (settings.api) card = new SandboxCard(t);
    else if (settings.provider) card = await StripeCard.open(settings.publishable_key, lang, t);
    screen.showCardNote(t(settings.api ? 'sandboxNote' : settings.provider ? 'stripeNote' : 'paymentsOff'));
  } catch (error) {
    screen.showCardNote(error instanceof Unreachable || error instanceof Problem ? reasonOf(error) : t('stripeUnreachable'));
  }
  showPlaces();
}

async function pay(submit) {
  submit.preventDefault();
  if (phase !== 'held' || byId('pay-button').hidden) return;
  const { amount } = purchase.hold; // what the button says
  const wrong = amount > 0 ? card.check() : null;
  screen.showCardError(wrong?.text);
  if (wrong) {
    wrong.field.focus();
    return;
  }
  show('paying');
  say(t('booking'));
  const slow = setTimeout(() => say(t('waitingForProvider')), SLOW_MS);
  try {
    const booking = await purchase.book();
    clearTimeout(slow);
    showPlaces();
    map.refreshHold().catch(() => {}); // a booking renews its hold
    if (stageOf(booking) === 'open' && booking.amount !== amount) await lookAgain(booking);
    else if (stageOf(booking) === 'open') await charge(booking.payment);
    else await decided(booking);
  } catch (error) {
    await stumble(error);
  } finally {
    clearTimeout(slow);
  }
}

// The hold was changed elsewhere before it was booked: nothing is charged before the buyer has seen the new amount.
async function lookAgain(booking) {
  await purchase.readHold(purchase.hold.id);
  map.refreshHold().catch(() => {});
  show('held');
  say(t('changedElsewhere', { amount: places.money(booking.amount) }), 'bad');
  byId('seats-title').focus();
  await showCard();
}

// Charges the card, and goes on by what comes of it.
async function charge(payment) {
  say(t('paying'));
  const { outcome, message, url } = await card.pay(payment, location.origin + location.pathname + keptQuery);
  if (outcome === 'redirect') {
    say(t('redirecting'));
    location.assign(url);
  } else if (outcome === 'declined') {
    refused('declined', message);
  } else {
    await settle(outcome === 'unknown' ? { patienceMs: UNKNOWN_MS, message } : {});
  }
}

// The buyer's turn again.
function refused(text, message) {
  show('held');
  say(t(text, { message: message ?? '' }), 'bad');
  screen.showCardError(message);
  (card instanceof SandboxCard ? byId('card-number') : byId('pay-button')).focus();
}

// Waits until the booking is decided.  Where nobody knows whether the card was charged, the buyer is asked again after `patienceMs`,
// and told `message`; a payment is charged once, whatever the buyer does.
async function settle({ patienceMs = Infinity, message = '' } = {}) {
  show('paying');
  say(t('paying'));
  const slow = setTimeout(() => say(t('takesLong')), LONG_MS);
  let isLost = false;
  try {
    const booking = await purchase.settle(patienceMs, (isLostNow) => {
      if (isLostNow !== isLost) say(t(isLostNow ? 'offlineWhilePaying' : 'paying'));
      isLost = isLostNow;
    });
    const { last_error: error } = booking.payment ?? {};
    if (stageOf(booking) === 'open') refused(error ? 'declined' : 'notCompleted', error?.message ?? message);
    else await decided(booking);
  } finally {
    clearTimeout(slow);
  }
}

async function decided(booking) {
  const stage = stageOf(booking);
  if (stage === 'booked') return booked();
  if (stage === 'processing') return settle();
  if (booking.payment?.amount_received > 0) {
    ended('released');
    return say(t('moneyReturned'), 'bad');
  }
  purchase.booking = null; // another booking is possible, unless the hold has ended, too
  show('held');
  say(t('paymentOver'), 'bad');
  return judge();
}

async function stumble(error) {
  show('held');
  say(reasonOf(error), 'bad');
  if (error instanceof Problem && [404, 410].includes(error.status)) await judge();
}

// ---- booked ----

function booked() {
  const { booking } = purchase;
  receipt.set(booking.id);
  if (waiting.isOf(purchase.hold)) waiting.forget();
  purchase.forget();
  map.clear(); // it goes on showing the seats as the buyer's
  card?.clear();
  screen.showCardError(null);
  showBooking(booking);
  byId('booked-title').focus();
}

function showBooking(booking) {
  screen.showBooking(booking, sale, `${location.origin}${location.pathname}${keptQuery}#booking=${encodeURIComponent(booking.id)}`);
  show('booked');
  scrollTo(0, 0);
  say(t('bookedNow', { number: booking.number }), 'good');
}

async function copyLink() {
  await navigator.clipboard.writeText(byId('keep-link').href);
  say(t('copied'), 'good');
}

function bookMore() {
  receipt.clear();
  history.replaceState(history.state, '', location.pathname + keptQuery);
  map.forget();
  choose();
}

// ---- the waiting list ----

// What the buyer waits for has come back, or the waiting has an end.
function waitChanged(entry) {
  screen.showTitle(waiting.isOffered ? t('offeredTitle') : '');
  if (entry === null) return;
  const { status } = entry, isMine = waiting.isOf(purchase.hold), isFree = phase === 'choosing' || phase === 'expired';
  if (status === 'accepted' || status === 'left') waiting.forget();
  else if (isMine) judge();
  else if (status === 'offered' && isFree) takeOffer();
  else if (status === 'offered' && phase !== 'paying') say(t(phase === 'booked' ? 'offeredTitle' : 'offeredBesides'), 'good');
  else if (status === 'lapsed' && isFree) tellLapse();
  else if (status === 'ended' && isFree) say(t('waitOver'), 'bad');
}

// Takes up what was offered, as the hold of this browser.  Resolves to true if it is still there.
async function takeOffer() {
  const { hold: id } = waiting.entry;
  try {
    const found = await purchase.findHold(id);
    if (!['loading', 'choosing', 'expired', 'booked'].includes(phase) || waiting.isOf(purchase.hold)) return false;
    if (keep.get()?.hold === id) return await resume(); // another tab was faster
    if (found?.status !== 'active') {
      await waiting.read();
      return false;
    }
    map.forget(); // what was booked
    map.clear();
    purchase.begin(found);
    map.resume(id).catch(() => {});
    isMapOpen = false;
    await showHeld(t('offered', { n: countOf(found), time: duration(purchase.leftMs, lang) }));
    return true;
  } catch (error) {
    say(reasonOf(error), 'bad');
    return false;
  }
}

// What was offered went to the next, before this page heard of it perhaps.  Resolves to true if it says what that was.
async function tellLapse() {
  if (lapsed && waiting.isOf(lapsed)) return true;
  const found = await purchase.findHold(waiting.entry.hold).catch(() => null);
  if (!['loading', 'choosing'].includes(phase) || found?.status !== 'expired') return false;
  lapsed = found;
  showExpired();
  return true;
}

async function resumeWaiting() {
  const { status } = waiting.entry ?? {};
  if (status === 'accepted' || status === 'left') waiting.forget();
  if (status === 'offered') return takeOffer();
  return status === 'lapsed' ? tellLapse() : false;
}

// ---- the beginning, and other tabs ----

// Goes on with what this browser has begun earlier.  Resolves to true if there is something.
async function resume() {
  const kept = keep.get();
  if (!kept) return await resumeWaiting() || showBooked(receipt.get());
  const found = await purchase.readHold(kept.hold);
  if (!found) {
    keep.clear(kept.hold);
    return false;
  }
  const booking = kept.booking ?? found.booking;
  if (booking) await purchase.readBooking(booking);
  const stage = purchase.booking && stageOf(purchase.booking);
  if (stage === 'booked') booked();
  else if (stage === 'processing' || (stage === 'open' && redirectStatus === 'succeeded')) settle().catch(stumble);
  else if (found.status !== 'active') ended(found.status);
  else await resumeHold();
  return true;
}

async function resumeHold() {
  const isBack = redirectStatus !== null && purchase.booking !== null;
  if (purchase.booking && stageOf(purchase.booking) === 'over') purchase.booking = null;
  map.resume(purchase.hold.id).catch(() => {});
  show('held');
  say(t('resumed'), 'good');
  await showCard();
  if (isBack) refused('notCompleted', purchase.booking?.payment?.last_error?.message);
}

// What was booked in this tab is shown again after a reload, and wherever the link to it is opened.
async function showBooked(id) {
  if (!id) return false;
  const { json } = await insist('', 'GET', `/v1/bookings/${encodeURIComponent(id)}`).catch((error) => {
    if (error.status === 404) return { json: { status: 'none' } };
    throw error;
  });
  if (json.status === 'confirmed' && json.event === eventId) showBooking(json);
  else if (id === linkedBooking) choose(t('bookingOver'), 'bad');
  else return false;
  return true;
}

// Another tab has begun, changed or ended the purchase.
async function otherTabChanged() {
  const kept = keep.get();
  try {
    if (phase === 'held' && kept?.hold !== purchase.hold.id) await judge();
    else if (phase === 'held' && kept.booking && !purchase.booking) {
      await purchase.readBooking(kept.booking);
      show('held');
    } else if (phase === 'held' && kept.fence > purchase.hold.fence) {
      await Promise.all([judge(), map.refreshHold()]);
      await showCard(); // it may cost something by now
    } else if (['choosing', 'expired'].includes(phase) && kept) await resume();
  } catch { /* the next change, or the next tick, asks again */ }
}

function saleChanged({ status }) {
  sale = { ...sale, status };
  screen.showCategories();
  showAreas();
  waiting.showSale(sale, hasAccessible(sale));
  showPlaces();
  if (phase !== 'choosing' || canBuy() === couldBuy) return;
  show('choosing');
  if (canBuy()) say(t('reopened'), 'good');
  saySale();
}

function connect() {
  byId('find').addEventListener('submit', findSeat);
  byId('best').addEventListener('submit', findBest);
  byId('hold').addEventListener('click', goOn);
  byId('to-best').addEventListener('click', goDown);
  byId('change').addEventListener('click', () => openMap(true));
  byId('more-time').addEventListener('click', haveMoreTime);
  byId('give-back').addEventListener('click', giveBack);
  byId('pay').addEventListener('submit', pay);
  byId('same').addEventListener('click', takeSame);
  byId('again').addEventListener('click', () => {
    if (waiting.isOf(lapsed)) waiting.forget();
    choose();
  });
  byId('print').addEventListener('click', () => print());
  byId('copy-link').addEventListener('click', copyLink);
  byId('more').addEventListener('click', bookMore);
  map.addEventListener('select', ({ detail }) => {
    if (detail.lost?.length) sayLost(detail.lost);
    if (phase !== 'loading') showPlaces();
    if (phase === 'choosing') showAreas();
  });
  map.addEventListener('hold', held);
  map.addEventListener('refuse', ({ detail }) => say(detail.message, 'bad'));
  map.addEventListener('area', ({ detail }) => screen.areaField(detail.name)?.focus());
  for (const end of ['expire', 'release']) map.addEventListener(end, () => judge());
  map.addEventListener('change', () => {
    if (phase === 'choosing') showAreas();
    if (phase === 'choosing' && isSoldOut() !== wasSoldOut) show(phase);
    if (phase === 'expired') showLapsed();
    if (phase === 'held' && purchase.hold.seats.some((id) => map.status(id) !== 'h')) judge();
  });
  map.addEventListener('event', ({ detail }) => { if (phase !== 'loading') saleChanged(detail); });
  document.addEventListener('visibilitychange', () => { if (!document.hidden) judge(); });
  addEventListener('online', () => judge());
  addEventListener('pageshow', ({ persisted }) => { if (persisted) location.reload(); }); // back from a bank, by the browser's button
  setInterval(tick, TICK_MS);
}

async function begin() {
  document.documentElement.lang = lang;
  translate(t);
  byId('back').href = `/${keptQuery}`;
  say(t('loading'));
  connect();
  try {
    const { json, headers } = await insist('', 'GET', `/v1/events/${encodeURIComponent(eventId)}`);
    sale = json;
    clockOffsetMs = Date.parse(headers.get('Date')) - Date.now() || 0;
    screen.showSale(sale);
    await map.ready;
  } catch (error) {
    const isMissing = error.status === 404;
    phase = 'missing';
    screen.showMissing(t(isMissing ? 'notFound' : 'notLoaded'));
    say(isMissing ? t('noSuchEvent') : t('eventFailed', { reason: reasonOf(error) }), 'bad');
    return;
  }
  screen.showCategories();
  showAreas();
  waiting.showSale(sale, hasAccessible(sale));
  await waiting.resume();
  const hasBegun = await (linkedBooking ? showBooked(linkedBooking) : resume()).catch((error) => { say(reasonOf(error), 'bad'); return null; });
  if (hasBegun) return;
  show('choosing');
  if (hasBegun === false) say('');
  saySale();
  if (!canBuy()) screen.showAbout();
  if (waiting.isOffered) takeOffer(); // while the page was loading
}

begin();
