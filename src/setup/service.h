/* What the service manager is told (setup/notify.h): that the server has started, whether the ledger
 * answers, that it reloads and stops, and signs of life for its watchdog.  On the main thread. */
#ifndef HF_SETUP_SERVICE_H
#define HF_SETUP_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "setup/notify.h"

/* Zeroed, there is no service manager. */
struct setup_service {
    struct notifier notifier;
    int64_t watchdog_us; /* it expects a sign of life this often; 0: it does not */
    bool told_ready;     /* it knows that the server has started */
    bool told_well;      /* and that the ledger answers */
};

/* Finds the service manager by the variables that it has set.  Warns if it cannot be told. */
void service_open(struct setup_service *s);
void service_close(struct setup_service *s);

/* How long the main thread may wait before it says something; -1: for ever. */
int64_t service_tick_us(const struct setup_service *s);

/* Says what has changed: that the server at `url` serves, or why it does not. */
void service_say_state(struct setup_service *s, bool is_well, const char *why, const char *url);
/* Feeds the watchdog.  Not to be called while a worker hangs. */
void service_say_alive(const struct setup_service *s);
/* Around a reload, and when draining begins. */
void service_say_reloading(const struct setup_service *s, int64_t monotonic_us);
void service_say_reloaded(const struct setup_service *s);
void service_say_stopping(const struct setup_service *s);

#endif
