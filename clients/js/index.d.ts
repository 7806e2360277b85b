// Types of the package.  Names of fields are those of the API; docs/openapi.yaml says what each of them means.

/** RFC 3339, in UTC. */
export type Time = string;
/** RFC 3339, with the offset from UTC that it was given with. */
export type LocalTime = string;
/** In the smallest unit of the currency. */
export type Money = number;
export type Metadata = Record<string, string | number | boolean | null>;

// ---- errors ----

export class HoldfastError extends Error {
  code: string;
  /** Of the answer; null if there was none. */
  status: number | null;
  detail: string;
  /** Seconds. */
  retry_after: number | null;
  /** The other members of the problem, such as `seats`. */
  extra: Record<string, any>;
}
/** A verdict: 409 or 422. */
export class Conflict extends HoldfastError {}
/** A larger fence has written: the lock has passed to another holder. */
export class StaleFence extends Conflict {}
/** 410. */
export class Gone extends HoldfastError {}
/** The lock is held no more. */
export class LockLost extends Gone {}
/** 404. */
export class NotFound extends HoldfastError {}
/** Nothing was done: 429, 502, 503, 504, or no answer (`unreachable`, `timeout`). */
export class Unavailable extends HoldfastError {}
/** It may have been done, or may not. */
export class OutcomeUnknown extends HoldfastError {}

// ---- calls ----

export interface ClientOptions {
  /** The access key. */
  key?: string;
  /** Seconds that a call may take with all of its repeats: 30. */
  timeout?: number;
  /** In place of the global fetch. */
  fetch?: typeof fetch;
  /** What others see of the holder of a lock. */
  label?: string;
}
export interface CallOptions {
  /** Seconds. */
  timeout?: number;
  signal?: AbortSignal;
}
export interface WriteOptions extends CallOptions {
  /** Instead of one that is drawn for the call. */
  idempotencyKey?: string;
}
export interface Page<T> { data: T[]; has_more: boolean; next_cursor: string | null }
export interface PageParams { limit?: number; cursor?: string }
/** Awaited it is a page; iterated over it is every entry, of all pages. */
export interface Listing<T> extends Promise<Page<T>>, AsyncIterable<T> {}

/** Places of an area, or how many of each ticket type. */
export type AreaQuantity = number | Record<string, number>;
export type Places = { seats?: string[]; areas?: Record<string, AreaQuantity> };
export interface TicketType { id: string; name: string; prices: Record<string, Money> }
export interface TypedPlace { seat?: string; area?: string; type: string | null; amount: Money | null }
export type SeatStatus = 'available' | 'held' | 'booked' | 'blocked';
export type EventStatus = 'open' | 'closed' | 'archived' | 'cancelled';
export interface EventTerms {
  name: string; venue?: string | null; venue_address?: string | null; timezone?: string | null; metadata?: Metadata | null;
  prices?: Record<string, Money>; types?: Array<{ id: string; name?: string; prices?: Record<string, Money | null> }>;
  image?: string | null; description?: string | null;
  starts_at?: LocalTime | null; doors_at?: LocalTime | null; sales_open_at?: Time | null; sales_close_at?: Time | null;
  hold_ttl_ms?: number; hold_max_ms?: number; max_per_hold?: number; max_per_owner?: number | null;
  lone_seats?: 'allow' | 'hint' | 'refuse';
  waitlist?: { offer_ttl_ms?: number; alive_ms?: number; per_owner?: number } | null;
}
export interface Section {
  name: string; tier?: string | null; price?: Money; category?: string | null; seats_per_row?: number;
  rows: number | Array<{ name: string; seats: number | Array<string | Record<string, unknown>> }>;
}
export interface Area { name: string; price: Money; capacity: number; plan_area?: string | null }
export interface EventCreate extends EventTerms {
  currency: string; sections?: Section[]; areas?: Area[]; plan?: Record<string, unknown>; accessible?: string[];
  categories?: Array<{ name: string; price: Money; color?: string | null }>; focus?: { x: number; y: number };
}
export interface Event extends Required<Omit<EventTerms, 'prices' | 'types'>> {
  object: 'event'; id: string; status: EventStatus; currency: string; created_at: Time; capacity: number;
  available?: number; held?: number; booked?: number; blocked?: number; sections?: Section[]; areas?: Area[];
  prices?: Record<string, Money>; types?: TicketType[]; cancellation?: Record<string, number>; [more: string]: unknown;
}
export interface SeatsAnswer {
  event: string; seq: number; at?: Time; status: EventStatus; currency: string; prices: Record<string, Money>; types?: TicketType[];
  sections: Array<{ name: string; tier: string | null; price: Money | null; rows: Array<{ name: string; seats: string }> }>;
  areas: Array<{ name: string; price: Money; capacity: number; available: number }>;
}
export interface EventSeats { object: 'event_seats'; event: string; status: SeatStatus; seats: string[]; areas: Record<string, number>; channel: string | null }
export interface HoldCreate extends Places {
  event: string; owner?: string | null; ttl_ms?: number; metadata?: Metadata | null; channel?: string | null; resume?: boolean;
  /** The ticket types of seats. */
  types?: Record<string, string>;
  best_available?: {
    quantity: number; section?: string | null; tier?: string | null; category?: string | null; accessible?: boolean; adjacent?: boolean;
    types?: Record<string, number>;
  };
}
export interface Hold {
  object: 'hold'; id: string; event: string; status: 'active' | 'expired' | 'released' | 'confirmed'; owner: string | null; fence: number;
  seats: string[]; areas: Record<string, number>; places?: TypedPlace[]; amount: Money; currency: string; booking: string | null;
  booked_with?: string;
  created_at: Time; expires_at: Time; expires_in_ms: number; max_expires_at: Time; metadata?: Metadata;
}
export interface WaitlistWish { best_available?: HoldCreate['best_available']; areas?: HoldCreate['areas'] }
export interface WaitlistJoin extends WaitlistWish { event: string; owner?: string | null; until?: Time | null; metadata?: Metadata | null }
export interface WaitlistEntry extends WaitlistWish {
  object: 'waitlist_entry'; id: string; event: string; status: 'waiting' | 'offered' | 'accepted' | 'lapsed' | 'left' | 'ended'; number: number;
  /** How many come before it, while it waits. */
  ahead?: number;
  hold: string | null; expires_at?: Time; expires_in_ms?: number; reason?: string;
  owner: string | null; until: Time | null; created_at: Time; ended_at: Time | null; metadata?: Metadata;
}
export interface Payment {
  object: 'payment'; id: string; provider: string | null; status: string; intent: string | null; client_secret: string | null;
  publishable_key: string | null; api: string | null; amount: Money; amount_received: Money; amount_refunded: Money; disputed: boolean;
  last_error: { code: string | null; decline_code: string | null; message: string | null } | null;
}
export interface Booking {
  object: 'booking'; id: string; status: 'pending' | 'confirmed' | 'failed' | 'cancelled'; hold: string; holds?: string[]; event: string;
  seats: string[]; areas: Record<string, number>; places?: TypedPlace[]; amount: Money; currency: string; number: string;
  payment: Payment | null; fence: number;
  reference: string | null; owner: string | null; created_at: Time; expires_at: Time | null; cancelled_at: Time | null; reason: string | null;
}
export interface Refund { object: 'refund'; booking: string; payment: string; status: 'owed' | 'pending' | 'succeeded' | 'failed'; amount: Money; [more: string]: unknown }
export interface Notification { object: 'notification'; status: 'pending' | 'delivered' | 'failed'; [more: string]: unknown }
export interface AuditRow { seq: number; event: string; cause: string; actor: string | null; [more: string]: unknown }
export interface Session { object: 'session'; id: string; ttl_ms: number; label: string | null }
export type LockMode = 'exclusive' | 'shared' | 'intention_exclusive' | 'intention_shared';
export interface LockGrant { object: 'lock'; name: string; mode: LockMode; owner: string; fence: number; slot: number; value: string | null; claimed?: boolean }
export interface LockState {
  object: 'lock'; name: string; n_holders: number; n_waiters: number; last_fence: number | null; value: string | null;
  holders: Array<{ label: string | null; mode: LockMode; owner: string; fence: number; slot: number; held_ms: number | null; remaining_ms: number | null; [more: string]: unknown }>;
  waiters: Array<{ label: string | null; mode: LockMode; owner: string; priority: number; waited_ms: number | null; waits_for: unknown[] }>;
}
export interface Revenue {
  object: 'revenue'; event: string; currency: string; bookings: number; amount: Money; refunded: Money;
  types?: { type: string; amount: Money }[];
}
export interface PlanCheck { object: 'plan_check'; capacity: number; seats: number; plan: any }
export interface Cell { object: 'cell'; master: { url: string } | null; epoch: number; index: number; url: string; role: string; servers: unknown[]; [more: string]: unknown }

/** Changes, each once and in order, over lost connections. */
export interface ChangeStream<T> extends AsyncIterable<T> {
  /** Connects: what happens after that is delivered.  The iteration does it, too. */
  open(): Promise<void>;
  close(): void;
}
export type SeatChange =
  | { type: 'seats'; seq: number; changes: Array<[seat: string, state: '.' | 'h' | 'b' | 'x']>; areas: Record<string, number> }
  | { type: 'event'; seq: number; status: EventStatus; prices: Record<string, Money>; types?: TicketType[] }
  /** What led to this map is not known any more. */
  | { type: 'reset'; seq: number; map: SeatsAnswer };
/** What became of an entry of a waiting list.  The stream ends with the entry. */
export type WaitlistChange =
  | { type: 'offered' | 'lapsed' | 'ended'; seq: number; status: WaitlistEntry['status'] }
  | { type: 'reset'; entry: WaitlistEntry };
export type LockChange =
  | { type: 'granted' | 'released' | 'lost' | 'wanted'; index: number; name: string; label: string | null; owner: string | null; mode: LockMode; fence: number }
  | { type: 'value'; index: number; name: string; value: string | null; fence: number }
  | { type: 'reset'; index: number; lock?: LockState };

type List<T, P = {}> = (params?: PageParams & P, options?: CallOptions) => Listing<T>;
type Read<T, P = {}> = (id: string, params?: P, options?: CallOptions) => Promise<T>;
type Act<T, P = {}> = (id: string, params?: P, options?: WriteOptions) => Promise<T>;
type Write<T, P> = (params: P, options?: WriteOptions) => Promise<T>;
type Look<T, P = {}> = (params?: P, options?: CallOptions) => Promise<T>;
type Follow<T> = (id: string, params?: { after?: number }, options?: CallOptions) => ChangeStream<T>;
type Blocked = { seats?: string[]; areas?: Record<string, number> } & { sections?: string[]; channel?: string | null };

export class Client {
  constructor(urls: string | string[], options?: ClientOptions);

  events: {
    list: List<Event, { upcoming?: boolean }>; create: Write<Event, EventCreate>; get: Read<Event>; change: Act<Event, Partial<EventTerms>>; plan: Read<any>;
    seats: Read<SeatsAnswer, { at?: Time }>; seat: Read<any, { seat: string; at?: Time }>; heat: Read<any, { limit?: number }>;
    revenue: Read<Revenue>;
    /** Would this event be created, and how would it be drawn?  The `complaints` of a refusal list all that is wrong. */
    check: (params: EventCreate, options?: CallOptions) => Promise<PlanCheck>;
    stream: Follow<SeatChange>; block: Act<EventSeats, Blocked>; unblock: Act<EventSeats, Blocked>;
    close: Act<Event>; open: Act<Event>; archive: Act<Event>; cancel: Act<Event>;
    /** A map that is kept up to date. */
    seatMap(id: string, options?: CallOptions): Promise<SeatMap>;
  };
  holds: {
    list: List<Hold, { event?: string; status?: Hold['status']; owner?: string }>; create: Write<Hold, HoldCreate>; get: Read<Hold>;
    change: Act<Hold, { fence: number; add?: Places & { channel?: string | null }; remove?: Places; types?: Record<string, string>; [more: string]: unknown }>;
    release: (id: string, params?: {}, options?: CallOptions) => Promise<null>; renew: Act<Hold, { ttl_ms?: number }>;
    confirm: Act<Booking, { fence: number; reference?: string | null; rescue?: boolean }>; evict: Act<Hold>;
  };
  waitlist: {
    list: List<WaitlistEntry, { event?: string; status?: WaitlistEntry['status']; owner?: string }>; create: Write<WaitlistEntry, WaitlistJoin>;
    get: Read<WaitlistEntry>; leave: (id: string, params?: {}, options?: CallOptions) => Promise<null>; stream: Follow<WaitlistChange>;
    first: Act<WaitlistEntry>; evict: Act<WaitlistEntry>; pause: Act<Event>; resume: Act<Event>;
  };
  bookings: {
    list: List<Booking, { event?: string; status?: Booking['status']; reference?: string; owner?: string }>;
    create: Write<Booking, { hold?: string; holds?: string[]; email?: string | null; reference?: string | null; [more: string]: unknown }>;
    get: Read<Booking>; cancel: Act<Booking, { reason?: string | null }>; refund: Act<Booking, { amount?: Money; [more: string]: unknown }>;
  };
  refunds: { list: List<Refund, { status?: Refund['status'] }> };
  notifications: { list: List<Notification, { status?: Notification['status'] }> };
  audit: { list: List<AuditRow, { event?: string; seat?: string; hold?: string; after?: number }> };
  idempotency: { get: Read<any> };
  owners: { erase: Write<any, { owner: string }> };
  /** The requests that `lock` is made of. */
  sessions: {
    open: (params: { ttl_ms: number; label?: string | null }, options?: CallOptions) => Promise<Session>; close: Read<null>;
    keepAlive: Read<{ object: 'session'; ttl_ms: number; wanted: string[] }>; stream: Follow<LockChange>;
  };
  locks: {
    list: List<LockState, { prefix?: string; waiting?: boolean; stale?: boolean }>; get: Read<LockState, { stale?: boolean }>;
    acquire: Read<LockGrant, { session: string; owner?: string; mode?: LockMode; wait_ms?: number; [more: string]: unknown }>;
    release: Read<{ object: 'lock'; name: string; owner: string }, { session: string; owner: string; fence?: number }>;
    setValue: Read<{ object: 'lock'; name: string; value: string | null }, { session: string; owner: string; fence: number; value: string | null }>;
    breakLock: Read<{ object: 'lock'; name: string }>; stream: Follow<LockChange>;
  };
  cell: { get: Look<Cell>; transfer: Look<Cell> };
  server: {
    health: Look<any>; readiness: Look<any, { for?: string }>; metrics: Look<string>; samples: Look<any, { after?: number }>; document: Look<string>;
    receiveWebhook: Look<any, { body: string; signature: string }>;
  };

  /** What happens to a lock, from now on. */
  watch(name: string, options?: CallOptions): ChangeStream<LockChange>;
  /** Takes a lock.  Node only. */
  lock(name: string, options?: LockOptions): Promise<Lock>;
  lock<T>(name: string, work: (lock: Lock) => T | Promise<T>): Promise<T>;
  lock<T>(name: string, options: LockOptions, work: (lock: Lock) => T | Promise<T>): Promise<T>;
  /** Takes all of several locks, in sorted order. */
  lock(names: string[], options?: LockOptions): Promise<LockSet>;
  lock<T>(names: string[], work: (lock: LockSet) => T | Promise<T>): Promise<T>;
  lock<T>(names: string[], options: LockOptions, work: (lock: LockSet) => T | Promise<T>): Promise<T>;
  /** Closes streams and maps, and ends the client's sessions; what they hold is released. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Dispatches `change`, whose `change` is a SeatChange. */
export class SeatMap extends EventTarget {
  readonly seq: number;
  readonly status: EventStatus;
  readonly currency: string;
  readonly prices: Record<string, Money>;
  readonly types: TicketType[];
  readonly seats: Map<string, SeatStatus>;
  /** Places available. */
  readonly areas: Record<string, number>;
  /** Resolves when the map is closed; rejects if it cannot be kept up to date any longer. */
  readonly closed: Promise<void>;
  close(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

// ---- locks ----

export interface LockOptions extends CallOptions {
  /** Seconds after which the lock is lost if this process falls silent: 30. */
  ttl?: number;
  /** Seconds to wait for it; 0: not at all; null, the default: for as long as it takes. */
  wait?: number | null;
  shared?: boolean;
  /** How many may hold it at a time; all who ask say the same number. */
  slots?: number;
  /** Larger goes first. */
  priority?: number;
  /** For everybody to read, while the lock is held. */
  value?: string | null;
  /** Seconds for which the lock stays blocked if its holder is lost. */
  delay?: number;
  /** Of one task that takes several locks one after the other: then deadlocks are found. */
  agent?: string;
  label?: string;
}
export interface Lock extends LockSet {
  readonly name: string;
  /** Goes with every write that the lock protects. */
  readonly fence: number;
  readonly slot: number;
  readonly resource: string;
}
export interface LockSet {
  readonly names: string[];
  /** Null if there are several names; then so are `fence`, `slot` and `resource`. */
  readonly name: string | null;
  readonly fence: number | null;
  readonly slot: number | null;
  /** The name for checkFence: of each slot another one. */
  readonly resource: string | null;
  readonly fences: Record<string, number>;
  /** True only until the deadline, also in a process that stood still. */
  readonly held: boolean;
  readonly lost: boolean;
  /** Aborted when the lock is lost, before somebody else can hold it. */
  readonly signal: AbortSignal;
  /** Throws a LockLost unless the lock is held. */
  check(): void;
  setValue(value: string | null): Promise<void>;
  /** Rejects with a LockLost if the lock was lost before. */
  release(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

// ---- fences and webhooks ----

export interface SqliteLike { exec(sql: string): unknown; prepare(sql: string): { run(...values: any[]): { changes: number | bigint } } }
export interface PostgresLike { query(sql: string, values: any[]): Promise<unknown> }
/** Inside the transaction that writes: throws a StaleFence if a later holder has written to the resource. */
export function checkFence(connection: SqliteLike, resource: string, fence: number): void;
export function checkFence(connection: PostgresLike, resource: string, fence: number): Promise<void>;

export namespace webhooks {
  /** Returns the event of a message, or throws a HoldfastError with the code `invalid_signature`. */
  function verify(body: string | Uint8Array, headers: Headers | Record<string, string | string[] | undefined>, secret: string | string[]): { type: string; timestamp: Time; data: any };
}

/** Every operation of the API by its operationId: the call, method, path, and flags. */
export const OPERATIONS: Record<string, [call: string, method: string, path: string, flags?: string]>;
