/* The sandbox's schema and statements, in the language of db/db.h.  Used by store.c alone.
 *
 * `number` is the object's number and `secret` the other half of its id.  Methods and metadata are
 * form-encoded texts. */
#ifndef HF_SANDBOX_STATEMENTS_H
#define HF_SANDBOX_STATEMENTS_H

/* Migration n leads to version n.  Never edit one that has been released; add another. */
static const char *const sandbox_migrations[] = {
    "CREATE TABLE intents ("
    "  number {key}, secret {bytes} NOT NULL, client_secret {bytes} NOT NULL,"
    "  account bigint NOT NULL, created bigint NOT NULL, amount bigint NOT NULL,"
    "  received bigint NOT NULL, capturable bigint NOT NULL, currency text NOT NULL,"
    "  status text NOT NULL, flags bigint NOT NULL, description text, receipt_email text,"
    "  return_url text, metadata text NOT NULL, method text, error text, error_method text,"
    "  error_charge bigint NOT NULL, charge bigint NOT NULL, canceled bigint NOT NULL,"
    "  cancellation_reason text, action {bytes} NOT NULL, settles_at bigint NOT NULL);"
    "CREATE TABLE charges ("
    "  number {key}, secret {bytes} NOT NULL, intent bigint NOT NULL, previous bigint NOT NULL,"
    "  refund bigint NOT NULL, dispute bigint NOT NULL, created bigint NOT NULL,"
    "  amount bigint NOT NULL, captured bigint NOT NULL, refunded bigint NOT NULL,"
    "  dispute_at bigint NOT NULL, decline text, method text NOT NULL, flags bigint NOT NULL);"
    "CREATE TABLE refunds ("
    "  number {key}, secret {bytes} NOT NULL, charge bigint NOT NULL, previous bigint NOT NULL,"
    "  created bigint NOT NULL, amount bigint NOT NULL, settles_at bigint NOT NULL,"
    "  status text NOT NULL, reason text, metadata text NOT NULL);"
    "CREATE TABLE disputes ("
    "  number {key}, secret {bytes} NOT NULL, charge bigint NOT NULL, created bigint NOT NULL,"
    "  amount bigint NOT NULL);"
    "CREATE TABLE events ("
    "  number {key}, secret {bytes} NOT NULL, account bigint NOT NULL, created bigint NOT NULL,"
    "  type text NOT NULL, body text NOT NULL, attempts bigint NOT NULL, due bigint NOT NULL);"
    "CREATE TABLE answers ("
    "  account bigint NOT NULL, key text NOT NULL, digest {bytes} NOT NULL,"
    "  status bigint NOT NULL, body text NOT NULL, stored bigint NOT NULL,"
    "  request text NOT NULL, PRIMARY KEY (account, key)) {clustered};",
};

#define SANDBOX_STATEMENTS(X)                                                                      \
    X(PUT_INTENT, "INSERT OR REPLACE INTO intents {values(number bigint, secret bytes,"            \
                  " client_secret bytes, account bigint, created bigint, amount bigint,"           \
                  " received bigint, capturable bigint, currency text, status text,"               \
                  " flags bigint, description text, receipt_email text, return_url text,"          \
                  " metadata text, method text, error text, error_method text,"                    \
                  " error_charge bigint, charge bigint, canceled bigint,"                          \
                  " cancellation_reason text, action bytes, settles_at bigint)}")                  \
    X(PUT_CHARGE, "INSERT OR REPLACE INTO charges {values(number bigint, secret bytes,"            \
                  " intent bigint, previous bigint, refund bigint, dispute bigint,"                \
                  " created bigint, amount bigint, captured bigint, refunded bigint,"              \
                  " dispute_at bigint, decline text, method text, flags bigint)}")                 \
    X(PUT_REFUND, "INSERT OR REPLACE INTO refunds {values(number bigint, secret bytes,"            \
                  " charge bigint, previous bigint, created bigint, amount bigint,"                \
                  " settles_at bigint, status text, reason text, metadata text)}")                 \
    X(PUT_DISPUTE, "INSERT OR REPLACE INTO disputes {values(number bigint, secret bytes,"          \
                   " charge bigint, created bigint, amount bigint)}")                              \
    X(PUT_EVENT, "INSERT OR REPLACE INTO events {values(number bigint, secret bytes,"              \
                 " account bigint, created bigint, type text, body text, attempts bigint,"         \
                 " due bigint)}")                                                                  \
    X(DROP_EVENTS, "DELETE FROM events WHERE number <= r.number{args(number bigint)}")             \
    X(PUT_ANSWER, "INSERT OR REPLACE INTO answers {values(account bigint, key text,"               \
                  " digest bytes, status bigint, body text, stored bigint, request text)}")        \
    X(DROP_ANSWER, "DELETE FROM answers WHERE account = r.account AND key = r.key"                 \
                   "{args(account bigint, key text)}")                                             \
    X(ALL_INTENTS, "SELECT * FROM intents ORDER BY number")                                        \
    X(ALL_CHARGES, "SELECT * FROM charges ORDER BY number")                                        \
    X(ALL_REFUNDS, "SELECT * FROM refunds ORDER BY number")                                        \
    X(ALL_DISPUTES, "SELECT * FROM disputes ORDER BY number")                                      \
    X(ALL_EVENTS, "SELECT * FROM events ORDER BY number")                                          \
    X(ALL_ANSWERS, "SELECT * FROM answers ORDER BY stored")

#endif
