/* SPDX-License-Identifier: Apache-2.0 */
/* The training text: sentences of a small grammar, as characters. Sample number i of a stream is a function of
 * (stream, i) alone: whoever computes it, whenever, gets the same text. */
#ifndef TRAIN_GRAMMAR_H
#define TRAIN_GRAMMAR_H
#include <stdint.h>

#define GRAMMAR_VOCAB 28 /* space, full stop, a to z */

/* Writes `length` token numbers below GRAMMAR_VOCAB. */
void grammar_sample(uint64_t stream, int64_t sample, int length, int32_t *tokens);
char grammar_character(int32_t token);
#endif
