/* The words for verdicts; see verdict.h. */
#include "model/verdict.h"

struct verdict_words {
    const char *name, *text;
};

static const struct verdict_words words[VERDICT_COUNT] = {
#define VERDICT_WORDS(name, text) [VERDICT_##name] = {#name, text},
    HF_STATUS_MAP(VERDICT_WORDS) VERDICT_MAP(VERDICT_WORDS)
#undef VERDICT_WORDS
};

static const struct verdict_words *words_of(enum verdict verdict)
{
    hf_check((unsigned)verdict < VERDICT_COUNT);
    return &words[verdict];
}

const char *verdict_name(enum verdict verdict) { return words_of(verdict)->name; }
const char *verdict_text(enum verdict verdict) { return words_of(verdict)->text; }
