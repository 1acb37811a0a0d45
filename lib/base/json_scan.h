/* SPDX-License-Identifier: Apache-2.0 */
/* The lexical part of JSON (RFC 8259) for json.c: no tree, no memory. */
#ifndef OPI_BASE_JSON_SCAN_H
#define OPI_BASE_JSON_SCAN_H

/* Where the number that starts at p ends; NULL when it is none. JSON's grammar is narrower than opi__parse_double's: no
 * plus sign, no leading zero, digits on both sides of a point. */
const char *opi__json_scan_number(const char *p, const char *end);
/* Copies the text between two quotes, escapes resolved, and terminates it: `to` holds end - p + 1 bytes. NULL = done,
 * else the problem in words, with *bad at its first byte. */
const char *opi__json_unescape(const char *p, const char *end, char *to, const char **bad);
#endif
