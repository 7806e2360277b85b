/* The readers: the threads that answer what the view cannot, each on a connection of its own that
 * never writes. */
#ifndef HF_ENGINE_READ_H
#define HF_ENGINE_READ_H

void *reader_main(void *engine);

#endif
