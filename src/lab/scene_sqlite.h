/* The SQLite half of scene.h, called by scene.c. */
#ifndef HF_LAB_SCENE_SQLITE_H
#define HF_LAB_SCENE_SQLITE_H

#include "lab/scene.h"

/* Runs one statement and returns its answer in PostgreSQL's words, for free(). */
char *scene_sqlite_answer(sqlite3 *db, const char *sql);
/* Gives a connection the function now_ms(), by which locks expire.  SQLite's own functions for the
 * time would make the statements too long to be read on a screen. */
void scene_sqlite_now(struct scene *s, sqlite3 *db);

#endif
