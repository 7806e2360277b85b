/* See render.h. */
#include "sandbox/render.h"

#include "base/json_put.h"

static const struct expand nothing;

/* ---- members ---- */

static void put_metadata(struct buf *out, const struct metadata *m)
{
    json_open(out, "metadata", '{');
    for (size_t i = 0; i < m->pairs.n; i++) {
        json_put_text(out, NULL, m->pairs.v[i].key);
        buf_char(out, ':');
        json_put_text(out, NULL, m->pairs.v[i].value);
    }
    buf_char(out, '}');
}

/* {"id":"pi_...","object":"payment_intent" */
static void begin_object(struct buf *out, const char *prefix, const struct id *id,
                         const char *object)
{
    buf_char(out, '{');
    json_put_id(out, "id", prefix, id);
    json_put_text(out, "object", object);
}

static const char no_billing_details[] =
    ",\"billing_details\":{\"address\":{\"city\":null,\"country\":null,\"line1\":null,"
    "\"line2\":null,\"postal_code\":null,\"state\":null},\"email\":null,\"name\":null,"
    "\"phone\":null,\"tax_id\":null}";

/* ---- payment methods ---- */

static const char card_checks[] = ",\"checks\":{\"address_line1_check\":null,"
                                  "\"address_postal_code_check\":null,\"cvc_check\":\"pass\"}";

static void put_card(struct buf *out, const struct method *m)
{
    const struct card *card = m->card;
    json_put_text(out, "country", card->country);
    json_put_int(out, "exp_month", m->exp_month);
    json_put_int(out, "exp_year", m->exp_year);
    json_put_text(out, "fingerprint", card->name);
    json_put_text(out, "funding", card->funding);
    json_put_text(out, "last4", card_last4(card));
    buf_str(out, card_checks);
    buf_lit(out, ",\"regulated_status\":\"unregulated\",\"wallet\":null");
}

static void render_method(struct buf *out, const struct method *m)
{
    begin_object(out, "pm_", &m->id, "payment_method");
    buf_lit(out, ",\"allow_redisplay\":\"unspecified\"");
    buf_str(out, no_billing_details);
    buf_printf(out, ",\"card\":{\"brand\":\"%s\",\"display_brand\":\"%s\"", m->card->brand,
               m->card->brand);
    put_card(out, m);
    buf_printf(out,
               ",\"generated_from\":null,\"networks\":{\"available\":[\"%s\"],\"preferred\":null},"
               "\"three_d_secure_usage\":{\"supported\":true}}",
               m->card->brand);
    json_put_int(out, "created", m->created_s);
    buf_lit(out, ",\"customer\":null,\"customer_account\":null,\"livemode\":false,\"metadata\":{},"
                 "\"type\":\"card\"}");
}

/* ---- intents ---- */

static void put_decline(struct buf *out, const struct bank *b, const struct intent *i)
{
    const struct decline *decline = i->error;
    if (!decline) {
        json_put_text(out, "last_payment_error", NULL);
        return;
    }
    bool by_card = decline != &decline_authentication;
    json_open(out, "last_payment_error", '{');
    json_put_text(out, "type", by_card ? "card_error" : "invalid_request_error");
    json_put_text(out, "code", decline->code);
    if (decline->decline_code)
        json_put_text(out, "decline_code", decline->decline_code);
    json_put_text(out, "message", decline->message);
    if (i->error_charge)
        json_put_id(out, "charge", "ch_", &bank_charge(b, i->error_charge)->id);
    if (i->error_method.card) {
        json_put_name(out, "payment_method");
        render_method(out, &i->error_method);
    }
    buf_char(out, '}');
}

static void put_next_action(struct buf *out, const struct bank *b, const struct intent *i)
{
    if (i->status != PI_REQUIRES_ACTION) {
        json_put_text(out, "next_action", NULL);
        return;
    }
    struct buf url = {0};
    intent_action_url(b, i, &url);
    json_open(out, "next_action", '{');
    json_open(out, "redirect_to_url", '{');
    json_put_bytes(out, "url", url.data, url.len);
    json_put_text(out, "return_url", i->return_url);
    buf_lit(out, "},\"type\":\"redirect_to_url\"}");
    buf_close(&url);
}

static void put_method(struct buf *out, const struct method *m, bool whole)
{
    if (!m->card) {
        json_put_text(out, "payment_method", NULL);
    } else if (whole) {
        json_put_name(out, "payment_method");
        render_method(out, m);
    } else {
        json_put_id(out, "payment_method", "pm_", &m->id);
    }
}

static void put_latest_charge(struct buf *out, const struct bank *b, const struct intent *i,
                              const struct expand *expand)
{
    if (!i->charge) {
        json_put_text(out, "latest_charge", NULL);
    } else if (expand->latest_charge) {
        json_put_name(out, "latest_charge");
        render_charge(out, b, bank_charge(b, i->charge),
                      &(struct expand){.refunds = expand->refunds});
    } else {
        json_put_id(out, "latest_charge", "ch_", &bank_charge(b, i->charge)->id);
    }
}

void render_intent(struct buf *out, const struct bank *b, const struct intent *i,
                   const struct expand *expand)
{
    char secret[PI_SECRET_SIZE];
    begin_object(out, "pi_", &i->id, "payment_intent");
    buf_lit(out, ",\"allowed_payment_method_types\":null");
    json_put_int(out, "amount", i->amount);
    json_put_int(out, "amount_capturable", i->capturable);
    buf_lit(out, ",\"amount_details\":{\"tip\":{}}");
    json_put_int(out, "amount_received", i->received);
    buf_lit(out, ",\"application\":null,\"application_fee_amount\":null");
    buf_str(out, i->automatic_methods ? ",\"automatic_payment_methods\":{\"allow_redirects\":"
                                        "\"always\",\"enabled\":true}"
                                      : ",\"automatic_payment_methods\":null");
    json_put_int_or_null(out, "canceled_at", i->canceled_s);
    json_put_text(out, "cancellation_reason", i->cancellation_reason);
    json_put_text(out, "capture_method", i->manual_capture ? "manual" : "automatic");
    intent_client_secret(i, secret);
    json_put_text(out, "client_secret", secret);
    buf_lit(out, ",\"confirmation_method\":\"automatic\"");
    json_put_int(out, "created", i->created_s);
    json_put_text(out, "currency", i->currency);
    buf_lit(out, ",\"customer\":null,\"customer_account\":null");
    json_put_text(out, "description", i->description);
    buf_lit(out, ",\"excluded_payment_method_types\":null");
    put_decline(out, b, i);
    put_latest_charge(out, b, i, expand);
    buf_lit(out, ",\"livemode\":false,\"managed_payments\":null");
    put_metadata(out, &i->metadata);
    put_next_action(out, b, i);
    buf_lit(out, ",\"on_behalf_of\":null");
    put_method(out, &i->method, expand->payment_method);
    buf_lit(out, ",\"payment_method_configuration_details\":null,"
                 "\"payment_method_options\":{\"card\":{\"installments\":null,"
                 "\"mandate_options\":null,\"network\":null,"
                 "\"request_three_d_secure\":\"automatic\"}},"
                 "\"payment_method_types\":[\"card\"],\"processing\":null");
    json_put_text(out, "receipt_email", i->receipt_email);
    buf_lit(out, ",\"review\":null,\"setup_future_usage\":null,\"shipping\":null,\"source\":null,"
                 "\"statement_descriptor\":null,\"statement_descriptor_suffix\":null");
    json_put_text(out, "status", intent_status_names[i->status]);
    buf_lit(out, ",\"transfer_data\":null,\"transfer_group\":null}");
}

/* ---- charges ---- */

static void put_outcome(struct buf *out, const struct charge *c)
{
    if (!c->decline) {
        buf_lit(out, ",\"outcome\":{\"advice_code\":null,\"network_advice_code\":null,"
                     "\"network_decline_code\":null,\"network_status\":\"approved_by_network\","
                     "\"reason\":null,\"risk_level\":\"normal\",\"risk_score\":10,"
                     "\"seller_message\":\"Payment complete.\",\"type\":\"authorized\"}");
        return;
    }
    buf_lit(out, ",\"outcome\":{\"advice_code\":null,\"network_advice_code\":null,"
                 "\"network_decline_code\":null,\"network_status\":\"declined_by_network\"");
    json_put_text(out, "reason", c->decline->reason);
    buf_lit(out, ",\"risk_level\":\"normal\",\"risk_score\":10,\"seller_message\":\"The bank "
                 "declined the payment.\",\"type\":\"issuer_declined\"}");
}

static void put_method_details(struct buf *out, const struct charge *c)
{
    const struct method *m = &c->method;
    buf_lit(out, ",\"payment_method_details\":{\"card\":{\"amount_authorized\":");
    buf_int(out, c->decline ? 0 : c->amount);
    buf_printf(out, ",\"authorization_code\":null,\"brand\":\"%s\"", m->card->brand);
    put_card(out, m);
    json_put_text(out, "network", m->card->brand);
    buf_lit(out, ",\"installments\":null,\"mandate\":null,\"network_transaction_id\":null,"
                 "\"three_d_secure\":null,\"transaction_link_id\":null},\"type\":\"card\"}");
}

static void put_refunds(struct buf *out, const struct bank *b, const struct charge *c)
{
    char id[ID_TEXT_SIZE];
    (void)id_format(id, "ch_", &c->id);
    buf_lit(out, ",\"refunds\":{\"object\":\"list\",\"data\":[");
    for (int64_t n = c->refund; n; n = bank_refund(b, n)->previous) {
        json_put_name(out, NULL);
        render_refund(out, b, bank_refund(b, n), &nothing);
    }
    buf_printf(out, "],\"has_more\":false,\"url\":\"/v1/charges/%s/refunds\"}", id);
}

void render_charge(struct buf *out, const struct bank *b, const struct charge *c,
                   const struct expand *expand)
{
    const struct intent *i = bank_intent(b, c->intent);
    begin_object(out, "ch_", &c->id, "charge");
    json_put_int(out, "amount", c->amount);
    json_put_int(out, "amount_captured", c->captured);
    json_put_int(out, "amount_refunded", c->is_released ? c->amount : c->refunded);
    buf_lit(out, ",\"application\":null,\"application_fee\":null,\"application_fee_amount\":null,"
                 "\"balance_transaction\":null");
    buf_str(out, no_billing_details);
    buf_lit(out, ",\"calculated_statement_descriptor\":\"HOLDFAST SANDBOX\"");
    json_put_bool(out, "captured", c->is_captured);
    json_put_int(out, "created", c->created_s);
    json_put_text(out, "currency", i->currency);
    buf_lit(out, ",\"customer\":null");
    json_put_text(out, "description", i->description);
    json_put_bool(out, "disputed", c->dispute != 0);
    buf_lit(out, ",\"failure_balance_transaction\":null");
    json_put_text(out, "failure_code", c->decline ? c->decline->code : NULL);
    json_put_text(out, "failure_message", c->decline ? c->decline->message : NULL);
    buf_lit(out, ",\"fraud_details\":{},\"livemode\":false");
    put_metadata(out, &i->metadata);
    buf_lit(out, ",\"on_behalf_of\":null");
    put_outcome(out, c);
    json_put_bool(out, "paid", !c->decline);
    if (expand->payment_intent) {
        json_put_name(out, "payment_intent");
        render_intent(out, b, i, &nothing);
    } else {
        json_put_id(out, "payment_intent", "pi_", &i->id);
    }
    json_put_id(out, "payment_method", "pm_", &c->method.id);
    put_method_details(out, c);
    json_put_text(out, "receipt_email", i->receipt_email);
    buf_lit(out, ",\"receipt_number\":null,\"receipt_url\":null");
    json_put_bool(out, "refunded",
                  c->is_released || (c->is_captured && c->refunded == c->captured));
    if (expand->refunds)
        put_refunds(out, b, c);
    buf_lit(out, ",\"review\":null,\"shipping\":null,\"source\":null,\"source_transfer\":null,"
                 "\"statement_descriptor\":null,\"statement_descriptor_suffix\":null");
    json_put_text(out, "status", c->decline ? "failed" : "succeeded");
    buf_lit(out, ",\"transfer_data\":null,\"transfer_group\":null}");
}

/* ---- refunds and disputes ---- */

void render_refund(struct buf *out, const struct bank *b, const struct refund *r,
                   const struct expand *expand)
{
    const struct charge *c = bank_charge(b, r->charge);
    const struct intent *i = bank_intent(b, c->intent);
    begin_object(out, "re_", &r->id, "refund");
    json_put_int(out, "amount", r->amount);
    buf_lit(out, ",\"balance_transaction\":null");
    if (expand->charge) {
        json_put_name(out, "charge");
        render_charge(out, b, c, &nothing);
    } else {
        json_put_id(out, "charge", "ch_", &c->id);
    }
    json_put_int(out, "created", r->created_s);
    json_put_text(out, "currency", i->currency);
    buf_lit(out,
            ",\"customer\":null,\"customer_account\":null,\"destination_details\":{\"card\":{"
            "\"reference_status\":\"pending\",\"reference_type\":\"acquirer_reference_number\","
            "\"type\":\"refund\"},\"type\":\"card\"}");
    if (r->status == RE_FAILED)
        json_put_text(out, "failure_reason", "expired_or_canceled_card");
    put_metadata(out, &r->metadata);
    if (expand->payment_intent) {
        json_put_name(out, "payment_intent");
        render_intent(out, b, i, &nothing);
    } else {
        json_put_id(out, "payment_intent", "pi_", &i->id);
    }
    json_put_id(out, "payment_method", "pm_", &c->method.id);
    json_put_text(out, "reason", r->reason);
    buf_lit(out, ",\"receipt_number\":null,\"source_transfer_reversal\":null");
    json_put_text(out, "status", refund_state_names[r->status]);
    buf_lit(out, ",\"transfer_reversal\":null}");
}

static const char no_evidence[] =
    ",\"evidence\":{\"access_activity_log\":null,\"billing_address\":null,"
    "\"cancellation_policy\":null,\"cancellation_policy_disclosure\":null,"
    "\"cancellation_rebuttal\":null,\"customer_communication\":null,"
    "\"customer_email_address\":null,\"customer_name\":null,\"customer_purchase_ip\":null,"
    "\"customer_signature\":null,\"duplicate_charge_documentation\":null,"
    "\"duplicate_charge_explanation\":null,\"duplicate_charge_id\":null,\"enhanced_evidence\":{},"
    "\"product_description\":null,\"receipt\":null,\"refund_policy\":null,"
    "\"refund_policy_disclosure\":null,\"refund_refusal_explanation\":null,\"service_date\":null,"
    "\"service_documentation\":null,\"shipping_address\":null,\"shipping_carrier\":null,"
    "\"shipping_date\":null,\"shipping_documentation\":null,\"shipping_tracking_number\":null,"
    "\"uncategorized_file\":null,\"uncategorized_text\":null}";

#define EVIDENCE_S (7LL * 86400)

void render_dispute(struct buf *out, const struct bank *b, const struct dispute *d)
{
    const struct charge *c = bank_charge(b, d->charge);
    const struct intent *i = bank_intent(b, c->intent);
    begin_object(out, "dp_", &d->id, "dispute");
    json_put_int(out, "amount", d->amount);
    buf_lit(out, ",\"balance_transactions\":[]");
    json_put_id(out, "charge", "ch_", &c->id);
    json_put_int(out, "created", d->created_s);
    json_put_text(out, "currency", i->currency);
    buf_lit(out, ",\"enhanced_eligibility_types\":[]");
    buf_str(out, no_evidence);
    buf_printf(out,
               ",\"evidence_details\":{\"due_by\":%lld,\"enhanced_eligibility\":{},"
               "\"has_evidence\":false,\"past_due\":false,\"submission_count\":0}",
               (long long)d->created_s + EVIDENCE_S);
    buf_lit(out, ",\"is_charge_refundable\":false,\"livemode\":false,\"metadata\":{}");
    json_put_id(out, "payment_intent", "pi_", &i->id);
    json_put_name(out, "payment_method_details");
    buf_printf(out, "{\"card\":{\"brand\":\"%s\",\"case_type\":\"chargeback\"",
               c->method.card->brand);
    json_put_text(out, "network", c->method.card->brand);
    buf_lit(out, ",\"network_reason_code\":\"10.4\"},\"type\":\"card\"},\"reason\":\"fraudulent\","
                 "\"status\":\"needs_response\"}");
}

/* ---- events and errors ---- */

static void put_subject(struct buf *out, const struct bank *b, enum event_type type, int64_t number)
{
    if (type <= EVENT_INTENT_CANCELED)
        render_intent(out, b, bank_intent(b, number), &nothing);
    else if (type <= EVENT_CHARGE_REFUNDED)
        render_charge(out, b, bank_charge(b, number), &nothing);
    else if (type <= EVENT_REFUND_FAILED)
        render_refund(out, b, bank_refund(b, number), &nothing);
    else
        render_dispute(out, b, bank_dispute(b, number));
}

void render_stripe_event(struct buf *out, const struct bank *b, const struct stripe_event *e,
                         int64_t number)
{
    begin_object(out, "evt_", &e->id, "event");
    json_put_text(out, "api_version", b->version ? b->version : API_VERSION);
    json_put_int(out, "created", e->created_s);
    buf_lit(out, ",\"data\":{\"object\":");
    put_subject(out, b, e->type, number);
    buf_lit(out, "},\"livemode\":false");
    json_put_int(out, "pending_webhooks", e->due_ms != 0);
    json_open(out, "request", '{');
    json_put_text(out, "id", b->request_id);
    json_put_text(out, "idempotency_key", b->key);
    buf_char(out, '}');
    json_put_text(out, "type", event_type_names[e->type]);
    buf_char(out, '}');
}

void render_error(struct buf *out, const struct bank *b, const struct api_error *refusal)
{
    buf_lit(out, "{\"error\":{");
    json_put_text(out, "type", refusal->type);
    json_put_text(out, "message", refusal->message);
    if (refusal->code)
        json_put_text(out, "code", refusal->code);
    if (refusal->decline_code)
        json_put_text(out, "decline_code", refusal->decline_code);
    if (refusal->param)
        json_put_text(out, "param", refusal->param);
    if (refusal->charge)
        json_put_id(out, "charge", "ch_", &refusal->charge->id);
    if (refusal->intent) {
        json_put_name(out, "payment_intent");
        render_intent(out, b, refusal->intent, &nothing);
    }
    if (refusal->method.card) {
        json_put_name(out, "payment_method");
        render_method(out, &refusal->method);
    }
    buf_lit(out, "}}");
}
