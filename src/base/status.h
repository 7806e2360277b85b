/* How a call can end, in one list: HF_OK, or the kind of failure.  A failure travels in a struct
 * hf_err with a sentence for a person; normal answers are verdicts (model/verdict.h), whose numbers
 * go on where these end.  HF_OUTCOME_UNKNOWN is neither success nor failure: the outcome could not
 * be learnt (I14).  No thread owns this file; it has no state. */
#ifndef HF_BASE_STATUS_H
#define HF_BASE_STATUS_H

#include <stddef.h>

/* name, what happened */
#define HF_STATUS_MAP(X)                                                                           \
    X(OK, "done")                                                                                  \
    X(INVALID_REQUEST, "the request is malformed")                                                 \
    X(INTERNAL, "something is wrong on our side")                                                  \
    X(OVERLOADED, "the server is busy")                                                            \
    X(DRAINING, "the server is shutting down")                                                     \
    X(UNAVAILABLE, "the other side did not answer, and nothing was done")                          \
    X(STORE_UNAVAILABLE, "the database cannot be used")                                            \
    X(OUTCOME_UNKNOWN, "the outcome is not known")                                                 \
    X(SURPRISE, "what is stored is not what was known of it")                                      \
    X(CONFLICT, "other transactions were in the way")

enum hf_status {
#define HF_STATUS_ENUM(name, text) HF_##name,
    HF_STATUS_MAP(HF_STATUS_ENUM)
#undef HF_STATUS_ENUM
        HF_STATUS_COUNT
};

/* For logs: "OUTCOME_UNKNOWN". */
const char *hf_status_name(enum hf_status status);

/* A failure, with a sentence for a person.  A zeroed struct means no failure. */
struct hf_err {
    enum hf_status code;
    char msg[256];
};

/* Fills in `err` (may be NULL) and returns `code`, so that callers can `return hf_err_set(...)`. */
__attribute__((format(printf, 3, 4))) enum hf_status
hf_err_set(struct hf_err *err, enum hf_status code, const char *fmt, ...);

#define HF_MUST_USE __attribute__((warn_unused_result))

/* Aborts, in every build, if the program itself is wrong.  Never used for input. */
#define hf_check(cond)                                                                             \
    ((__builtin_expect(!!(cond), 1)) ? (void)0 : hf_check_failed(#cond, __FILE__, __LINE__))
_Noreturn void hf_check_failed(const char *cond, const char *file, int line);

/* Prints the text that hf_check and lack of memory leave behind, just before the program aborts.
 * The default writes to stderr. */
extern void (*hf_last_words)(const char *text);

/* Allocation that cannot fail: lack of memory ends the program, which the ledger survives (I7). */
void *hf_alloc(size_t size) __attribute__((malloc, returns_nonnull)); /* zeroed */
void *hf_realloc(void *old, size_t size) __attribute__((returns_nonnull));
char *hf_strndup(const char *text, size_t len) __attribute__((returns_nonnull));

#endif
