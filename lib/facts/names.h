/* SPDX-License-Identifier: Apache-2.0 */
/* Names people type, against the names of a table: normal form, token sets, nearest names, lists. No heap. */
#ifndef OPI_FACTS_NAMES_H
#define OPI_FACTS_NAMES_H
#include <stddef.h>
#include <stdint.h>

#define OPI__NAME_CAP 192

/* `words`: lower-case tokens separated by one blank ("llama 3.1 70b instruct"); `tight`: the same without blanks. */
typedef struct opi__name {
    char words[OPI__NAME_CAP];
    char tight[OPI__NAME_CAP];
} opi__name;

/* Cuts `text` into tokens: separators - _ / : and blanks, "llama3.1" = "llama 3.1", "3_3" = "3.3", "80 GB" = "80gb".
 * Tokens found in the blank-separated list `noise` are dropped. 0 when nothing is left or the name is too long. */
int opi__name_of(const char *text, size_t size, const char *noise, opi__name *out);
/* Appends the tokens of another spelling of the same thing. */
void opi__name_join(opi__name *name, const opi__name *other);
/* Next token of `words` from *at; returns its length, 0 at the end. */
size_t opi__name_token(const char *words, size_t *at, const char **token);
int opi__name_has(const char *words, const char *token, size_t size);
/* Tokens of a that b lacks, not counting those that `skip` (nullable) accepts. */
size_t opi__name_missing(const char *a, const char *b, int (*skip)(const char *token, size_t size));

/* Control characters become question marks: what a message shows stays on one line. */
void opi__name_flatten(char *text);
/* The name as an error message can show it: one line, at most 80 bytes. */
#define OPI__SHOWN_CAP 84
const char *opi__name_shown(const char *text, char *shown);

/* The nearest few names seen so far. */
#define OPI__NEAREST 4
typedef struct opi__nearest {
    size_t n, index[OPI__NEAREST], score[OPI__NEAREST];
} opi__nearest;
void opi__nearest_offer(opi__nearest *nearest, size_t index, size_t score);
/* How far two names are apart: tokens first, letters second. */
size_t opi__name_distance(const opi__name *a, const opi__name *b);

/* A list of names inside a fixed buffer: "a, b, c" or "a, b and 7 more". */
typedef struct opi__list {
    char text[360];
    size_t len, n, hidden;
} opi__list;
void opi__list_add(opi__list *list, const char *name);
const char *opi__list_text(opi__list *list);
#endif
