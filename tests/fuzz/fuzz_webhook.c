/* Events of the payment provider: whatever the bytes are, a good event names an intent and says
 * something, and nothing else says anything. */
#include "fuzz.h"

#include "checkout/webhook.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct webhook w;
    char *text = fuzz_text(data, size);
    enum webhook_verdict verdict = webhook_read(text, size, size % 2 == 0, &w);
    const struct fact *fact = &w.fact;
    bool says = fact->asks || fact->state != INTENT_UNSAID || fact->refunds.n || fact->disputed;
    hf_check((verdict == WEBHOOK_MALFORMED) == (w.event.id[0] == '\0'));
    hf_check(says ? verdict == WEBHOOK_GOOD : true);
    if (verdict == WEBHOOK_GOOD) {
        hf_check(fact->intent[0] && !fact->is_current && !fact->client_secret[0]);
        hf_check(fact->amount >= 0 && fact->received >= 0 && fact->disputed >= 0);
        hf_check(fact->refunds.n <= 1);
    }
    hf_check(w.payment.key >= 0);
    webhook_close(&w);
    free(text);
    return 0;
}
