/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar.h"

#include <string.h>

#include "random.h"

/* A capital letter stands for a rule, '|' separates its alternatives; everything else is text.
 * S sentence, N noun phrase, V verb phrase, D determiner, A adjective, O noun, T verb with an object, I one without. */
static const struct {
    char name;
    const char *alternatives;
} rules[] = {
    {'S', "N V. |N V while N V. |when N V N V. "},
    {'N', "D O|D A O|D O near D O"},
    {'V', "T N|I|T N and I"},
    {'D', "the|a|every|this"},
    {'A', "small|old|quiet|golden"},
    {'O', "fox|owl|river|sailor|lantern|garden"},
    {'T', "follows|watches|finds|paints"},
    {'I', "sleeps|wanders|sings|waits"},
};

typedef struct writer {
    uint64_t random;
    int32_t *tokens;
    int length, at;
} writer;

static const char *alternatives_of(char name)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].name == name)
            return rules[i].alternatives;
    return "";
}

static void put(writer *w, char c)
{
    if (w->at < w->length)
        w->tokens[w->at++] = c == ' ' ? 0 : c == '.' ? 1 : c - 'a' + 2;
}

static void expand(writer *w, char name)
{
    const char *text = alternatives_of(name);
    int count = 1;
    for (const char *s = text; *s; s++)
        count += *s == '|';
    w->random = random_mix(w->random, (uint64_t)name);
    for (int skip = (int)(w->random % (uint64_t)count); skip > 0; text++)
        skip -= *text == '|';
    for (; *text && *text != '|' && w->at < w->length; text++) {
        if (*text >= 'A' && *text <= 'Z')
            expand(w, *text);
        else
            put(w, *text);
    }
}

void grammar_sample(uint64_t stream, int64_t sample, int length, int32_t *tokens)
{
    writer w = {random_mix(stream, (uint64_t)sample), tokens, length, 0};
    while (w.at < length)
        expand(&w, 'S');
}

char grammar_character(int32_t token)
{
    return token == 0 ? ' ' : token == 1 ? '.' : (char)('a' + token - 2);
}
