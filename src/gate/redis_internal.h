/* The inside of a gate in Redis, shared by redis.c (handles, claims and settlements) and
 * redis_scan.c (what the reconciler and `holdfast verify` read).  See gate.h. */
#ifndef HF_GATE_REDIS_INTERNAL_H
#define HF_GATE_REDIS_INTERNAL_H

#include "gate/gate.h"
#include "redis/call.h"

#define GROUP_MAX 100                       /* keys per script, so that none runs long */
#define CLAIM_LEN (2 + 2 * GATE_TOKEN_SIZE) /* "c:TOKEN" in hex */

#define HEAD_SEAT "seat:{"
#define HEAD_AREA "area:{"
#define HEAD_LEN (sizeof HEAD_SEAT - 1)

enum gate_script { SCRIPT_CLAIM, SCRIPT_SETTLE, SCRIPT_COUNTS, SCRIPT_READ, N_SCRIPTS };

/* The part of a settlement that one script does: seats, or counts, of one event. */
struct gate_group {
    size_t from, to; /* indexes of the first and behind the last */
    bool counts;
};

struct gate {
    struct redis_address address;
    struct redis_caller caller;
    VEC(struct redis_arg) args;    /* scratch: the command being made */
    struct buf text;               /* scratch: the texts that `args` point into */
    VEC(struct gate_group) groups; /* scratch: of the settlement being made */
    int64_t ahead_ms;              /* the server's clock minus ours, at most; 0: to be asked for */
    unsigned known, dials; /* bits of the scripts that the server has run; link.dials then */
    size_t n_unread;       /* answers to gate_settle_later */
    int64_t unread_ms;     /* when it was sent, by our clock */
    int64_t called_ms;     /* when the call under way began */
};

/* Every call begins here: reads what was not read yet, which takes time off the call.  If that was
 * lost with its link, the call goes on over another one. */
enum hf_result gate_begun(struct gate *g, struct hf_fault *fault);
/* Every call ends here.  A failure closes the link: a server that refuses may be the wrong one by
 * now (a replica, one that is loading), so its name is looked up and its clock is asked for again.
 * A refused command may have been executed in part, so its outcome is unknown. */
enum hf_result gate_ended(struct gate *g, enum hf_result result, struct hf_fault *fault);
/* Exchanges `n` commands that have been put; an answer of another type than `type` is a refusal. */
enum hf_result gate_exchange(struct gate *g, int type, redisReply **replies, size_t n,
                             struct hf_fault *fault);

/* Begins a command that runs `script`.  Reserves room for the texts of all its keys and further
 * arguments: they must not move once args point into them. */
void gate_command(struct gate *g, enum gate_script script, size_t n_keys, size_t n_more);
void gate_add(struct gate *g, struct redis_arg arg);
void gate_add_number(struct gate *g, int64_t number);

#endif
