/* What our parser makes of requests, for http_parse.test.mjs.  Reads inputs from the standard
 * input, each a connection's bytes after their length (32 bits, little-endian), and prints the
 * transcript of each (support/transcript.h), followed by a line with a dot and the place where the
 * last request begins that is not complete. */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "support/transcript.h"

int main(void)
{
    uint32_t size;
    while (fread(&size, sizeof size, 1, stdin) == 1) {
        size_t len = le32toh(size);
        char *data = hf_alloc(len + 1);
        hf_check(fread(data, 1, len, stdin) == len);
        struct transcript t;
        transcript_begin(&t);
        transcript_feed(&t, data, len);
        transcript_end(&t);
        printf("%s. %zu\n", t.out.data, t.begun);
        transcript_close(&t);
        free(data);
    }
    return ferror(stdin) || fflush(stdout) != 0;
}
