/* The readers: the threads that answer what the view cannot, each on a connection of its own.  None
 * writes but the reader of jobs, which leases them where servers share the ledger. */
#ifndef HF_ENGINE_READ_H
#define HF_ENGINE_READ_H

void *reader_main(void *engine);

#endif
