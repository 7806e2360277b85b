/* scene.c's other database. */
#ifndef HF_LAB_SCENE_SQLITE_H
#define HF_LAB_SCENE_SQLITE_H

#include "lab/scene.h"

/* Runs one statement; its answer in the words that PostgreSQL's have, for free(). */
char *scene_sqlite_answer(sqlite3 *db, const char *sql);
/* Gives a connection now_ms(), the clock that locks are judged by: SQLite's own has no name that
 * could be read on a wall. */
void scene_sqlite_now(struct scene *s, sqlite3 *db);

#endif
