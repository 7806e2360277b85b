/* Filling in a struct api_error (bank.h).  Pure functions. */
#ifndef HF_SANDBOX_REFUSE_H
#define HF_SANDBOX_REFUSE_H

#include "sandbox/bank.h"

/* `code` and `param` may be NULL. */
__attribute__((format(printf, 6, 7))) void refuse(struct api_error *ret, int status,
                                                  const char *type, const char *code,
                                                  const char *param, const char *fmt, ...);
/* 400 for a parameter, judged before anything is done. */
__attribute__((format(printf, 4, 5))) void
refuse_parameter(struct api_error *ret, const char *code, const char *param, const char *fmt, ...);
/* 404 for an object that does not exist: `what` is "payment_intent" and so on. */
void refuse_missing(struct api_error *ret, const char *what, const char *id, const char *param);

#endif
