/* The two readers of a POST /v1/holds.  If the quick reader accepts a body, the thorough one
 * accepts it too and reads the same.  Every refusal of the thorough reader has a reason. */
#include "fuzz.h"

#include "api/hold_parse.h"

static void same_text(struct text a, struct text b)
{
    hf_check(a.len == b.len && (a.data == NULL) == (b.data == NULL));
    hf_check(a.len == 0 || (a.data && b.data && memcmp(a.data, b.data, a.len) == 0));
}

static void same_body(const struct hold_body *quick, const struct hold_body *thorough)
{
    same_text(quick->event, thorough->event);
    same_text(quick->owner, thorough->owner);
    same_text(quick->metadata, thorough->metadata);
    hf_check(quick->ttl_ms == thorough->ttl_ms && quick->n_seats == thorough->n_seats);
    hf_check(thorough->best_quantity == 0 &&
             thorough->n_areas == 0); /* hold_scan never reads them */
    for (size_t i = 0; i < quick->n_seats; i++)
        same_text(quick->seats[i], thorough->seats[i]);
}

/* The metadata is stored and sent back as it is, so it must be JSON by itself. */
static void metadata_is_json(const struct hold_body *body)
{
    if (!body->metadata.data)
        return;
    json_t *json =
        json_loadb(body->metadata.data, body->metadata.len, JSON_REJECT_DUPLICATES, NULL);
    hf_check(json_is_object(json));
    json_decref(json);
}

static void places_are_bounded(const struct hold_body *body)
{
    hf_check(body->n_seats + body->n_areas > 0 || body->best_quantity > 0);
    hf_check(body->n_seats == 0 || body->best_quantity == 0);
    hf_check(body->best_quantity >= 0);
    uint64_t n_places = body->n_seats + (uint64_t)body->best_quantity, n_typed = 0;
    for (size_t i = 0; i < body->n_areas; i++) {
        hf_check(body->areas[i].quantity > 0);
        n_places += body->areas[i].quantity;
    }
    for (size_t i = 0; i < body->types.runs.n; i++) {
        hf_check(body->types.runs.v[i].n > 0);
        n_typed += body->types.runs.v[i].n;
    }
    hf_check(!body->types.runs.n || n_typed == n_places); /* a type for every place, or none */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf body = {.data = size ? hf_alloc(size) : NULL, .len = size, .cap = size};
    struct hold_body quick = {0}, thorough = {0};
    json_t *json = NULL;
    struct hf_err err = {0};
    if (size)
        memcpy(body.data, data, size);
    bool scanned = hold_scan(&body, &quick);
    bool parsed = hold_parse(&body, &thorough, &json, &err);
    hf_check(parsed || (err.code != HF_OK && err.msg[0]));
    hf_check(!scanned || parsed);
    if (scanned)
        same_body(&quick, &thorough);
    if (parsed) {
        metadata_is_json(&thorough);
        places_are_bounded(&thorough);
    }
    hold_body_close(&quick);
    hold_body_close(&thorough);
    json_decref(json);
    buf_close(&body);
    return 0;
}
