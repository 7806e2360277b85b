/* The version, and what results are called: for messages of programs. */
#include "holdfast.h"

int hf_version(void) { return HF_VERSION; }
const char *hf_version_text(void) { return HF_VERSION_TEXT; }

const char *hf_result_text(enum hf_result result)
{
    switch (result) {
    case HF_DONE:
        return "done";
    case HF_TAKEN:
        return "taken";
    case HF_LOST:
        return "lost";
    case HF_UNKNOWN:
        return "unknown";
    case HF_BAD_REQUEST:
        return "bad request";
    case HF_UNREACHABLE:
        return "unreachable";
    case HF_UNSUPPORTED:
        return "unsupported";
    case HF_FAILED:
        return "failed";
    case HF_DEADLOCK:
        return "deadlock";
    }
    return "no such result";
}
