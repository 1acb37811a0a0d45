/* SPDX-License-Identifier: Apache-2.0 */
/* One spelling for what is one thing: aliases people type become the names the measurements use. A new alias is a line in
 * spelling.c. */
#ifndef OPI_FACTS_SPELLING_H
#define OPI_FACTS_SPELLING_H

/* The canonical name (static), whatever the case; `name` itself when it is not known. NULL gives NULL. */
const char *opi__spell_engine(const char *name);
const char *opi__spell_precision(const char *name);
const char *opi__spell_load(const char *name);
#endif
