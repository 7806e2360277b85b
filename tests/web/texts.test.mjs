// The texts of the pages: every text is there in every language, with the same values in it.  And what is made of texts.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { describe, it } from 'node:test';
import YAML from 'yaml';

// As a module whatever Node thinks of its name.
const load = (file) => import(`data:text/javascript,${encodeURIComponent(fs.readFileSync(new URL(`../../web/${file}`, import.meta.url), 'utf8'))}`);
const { language, languages, texts, words } = await load('texts.js');
const { countdown, duration, money } = await load('lib/format.js');
const { calendarOf } = await load('buyer/calendar.js');

const formsOf = (text) => (typeof text === 'string' ? { other: text } : text);
const valuesOf = (text) => [...new Set(Object.values(formsOf(text)).flatMap((form) => [...form.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)))].filter((name) => name !== 'n').sort();

describe('texts', () => {
  for (const [group, byLanguage] of Object.entries(texts)) {
    it(`of ${group} are the same in every language, but for the words`, () => {
      assert.deepEqual(Object.keys(byLanguage).sort(), [...languages].sort());
      const keys = Object.keys(byLanguage.en).sort();
      for (const name of languages) {
        assert.deepEqual(Object.keys(byLanguage[name]).sort(), keys, name);
        for (const key of keys) {
          assert.deepEqual(valuesOf(byLanguage[name][key]), valuesOf(byLanguage.en[key]), `${name}: ${key}`);
          assert.equal(typeof byLanguage[name][key], typeof byLanguage.en[key], `${name}: ${key}`);
          if (typeof byLanguage[name][key] === 'object') assert.ok(byLanguage[name][key].other, `${name}: ${key} has no form for many`);
        }
      }
    });
  }

  it('are there for every status and cause of the API', () => {
    const document = fs.readFileSync(new URL('../../docs/openapi.yaml', import.meta.url), 'utf8');
    const schema = (name) => YAML.parse(new RegExp(`^    ${name}:.*\\n(?:      .*\\n)*`, 'm').exec(document)[0])[name]; // all of it takes a second
    const wanted = [
      ...['AnyStatus', 'HoldStatus', 'BookingStatus', 'RefundStatus', 'NotificationStatus', 'SeatStatus'].flatMap((name) => schema(name).enum.map((value) => `state.${value}`)),
      ...schema('AuditFields').properties.cause.enum.map((value) => `cause.${value}`),
      ...schema('AuditFields').properties.object.enum.map((value) => `object.${value}`),
      ...schema('EventStatus').enum.map((value) => `eventStatus.${value}`),
      ...schema('Refund').properties.origin.enum.map((value) => `origin.${value}`),
    ].filter((key) => !key.endsWith('.null'));
    assert.deepEqual(wanted.filter((key) => !(key in texts.ops.en)), []);
  });

  it('have values put in, numbers as the language writes them, and the plural that fits', () => {
    const [en, de] = [words('buyer', 'en'), words('buyer', 'de')];
    assert.equal(en('seatsLeft', { n: 1 }), 'One place left');
    assert.equal(en('seatsLeft', { n: 1234 }), '1,234 places left');
    assert.equal(de('seatsLeft', { n: 1234 }), 'Noch 1.234 Plätze frei');
    assert.equal(en('noSuchSeat', { text: '<b>{id}$&' }), 'There is no seat “<b>{id}$&”.', 'a value is not a template');
    assert.throws(() => en('none'), /no text buyer\.none/);
  });

  it('are in the language asked for, else in the first of the browser that there is, else in English', () => {
    assert.equal(language('de', ['en-GB']), 'de');
    assert.equal(language(undefined, ['fr-FR', 'de-AT', 'en']), 'de-AT');
    assert.equal(language('xx', ['fr']), 'en');
    assert.equal(language('"><script>', ['not a tag']), 'en');
  });
});

describe('money and time', () => {
  const plain = (text) => text.replace(/\s/g, ' ');

  it('money has the digits of its currency', () => {
    assert.equal(money(6500, 'usd', 'en-US'), '$65.00');
    assert.equal(money(6500, 'jpy', 'en-US'), '¥6,500');
    assert.equal(money(6500, 'kwd', 'en-US').replace(/[^\d.]/g, ''), '6.500');
    assert.equal(plain(money(123456, 'eur', 'de-DE')), '1.234,56 €');
  });

  it('a countdown rounds up, so that it shows nothing left only when nothing is left', () => {
    assert.deepEqual([480_000, 59_001, 1, 0, -5].map(countdown), ['8:00', '1:00', '0:01', '0:00', '0:00']);
  });

  it('a duration has the unit that fits', () => {
    assert.deepEqual([5000, 300_000, 7_200_000, 172_800_000].map((ms) => duration(ms, 'en')), ['5 seconds', '5 minutes', '2 hours', '2 days']);
  });
});

describe('a booking in a calendar', () => {
  it('says what, where and when, in lines that a calendar reads', () => {
    const event = { name: 'Hamlet; or, "To be"\nBEGIN:VALARM', venue: 'Globe', venue_address: 'Bankside 1', starts_at: '2040-05-06T19:30:00+02:00' };
    const text = calendarOf({ event, booking: { number: '8F3K-71QZ-M0XD' }, places: ['Parkett, Reihe Ä, Platz 1'.repeat(4)], host: 'tickets.example', now: 0 });
    assert.ok(text.endsWith('END:VCALENDAR\r\n'));
    const folded = text.split('\r\n');
    assert.ok(folded.every((line) => Buffer.byteLength(line) <= 75 && !line.includes('\n')));
    const lines = text.replaceAll('\r\n ', '').split('\r\n');
    for (const line of ['UID:8F3K-71QZ-M0XD@tickets.example', 'DTSTAMP:19700101T000000Z', 'DTSTART:20400506T173000Z', 'LOCATION:Globe\\, Bankside 1',
      'SUMMARY:Hamlet\\; or\\, "To be"\\nBEGIN:VALARM', `DESCRIPTION:${'Parkett\\, Reihe Ä\\, Platz 1'.repeat(4)}\\n8F3K-71QZ-M0XD`]) assert.ok(lines.includes(line), `${line} in ${text}`);
  });
});
