// A booking for a calendar: the text of an .ics file (RFC 5545).

const LINE_BYTES = 73; // of the 75 that a line may have; a following one begins with a space
const encoder = new TextEncoder();

const escaped = (text) => String(text).replace(/[\\;,]/g, '\\$&').replace(/\r?\n/g, '\\n').replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, ' ');
const utc = (ms) => new Date(ms).toISOString().replace(/[-:]|\.\d+/g, '');

// Lines are folded between characters, never inside one.
function fold(line) {
  let folded = '', bytes = 0;
  for (const character of line) {
    const { length } = encoder.encode(character);
    if (bytes + length > LINE_BYTES) {
      folded += '\r\n ';
      bytes = 1;
    }
    folded += character;
    bytes += length;
  }
  return folded;
}

// `event` and `booking` are as the API has them; `places` is what was booked, in words.  There is no end, since the event has none.
export function calendarOf({ event, booking, places, host, now = Date.now() }) {
  const where = [event.venue, event.venue_address].filter(Boolean).join(', ');
  const lines = [
    'BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//Holdfast//Booking//EN', 'METHOD:PUBLISH', 'BEGIN:VEVENT',
    `UID:${escaped(booking.number)}@${escaped(host)}`, `DTSTAMP:${utc(now)}`, `DTSTART:${utc(Date.parse(event.starts_at))}`,
    `SUMMARY:${escaped(event.name)}`, ...(where ? [`LOCATION:${escaped(where)}`] : []),
    `DESCRIPTION:${escaped([...places, booking.number].join('\n'))}`, 'END:VEVENT', 'END:VCALENDAR',
  ];
  return lines.map((line) => `${fold(line)}\r\n`).join('');
}
