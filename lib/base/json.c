/* SPDX-License-Identifier: Apache-2.0 */
/* cJSON holds the tree, escapes and prints it. Two things are not left to it:
 *  - reading: cJSON 1.7 writes a global on every parse (a data race between threads), cuts number texts at 63 bytes and
 *    converts them with strtod and the locale's decimal point, and takes duplicate keys;
 *  - numbers: its printer loses the last bit of many doubles. Here a number is a cJSON_Raw item that carries its text
 *    and, in valuedouble, its value. */
#include "base/json.h"

#include "base/json_scan.h"
#include "base/status.h"
#include "base/text.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *what, *start, *p, *end;
    opi_error *err;
} reader;

static int32_t fail_at(reader *r, const char *at, const char *problem)
{
    size_t line = 1, column = 1;
    for (const char *c = r->start; c < at; c++) {
        line += *c == '\n';
        column = *c == '\n' ? 1 : column + 1;
    }
    return opi__fail(r->err, OPI_E_FORMAT, (int64_t)(at - r->start), "%s: line %zu, column %zu: %s", r->what, line,
                     column, problem);
}

static void skip_space(reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

/* r->p at the opening quote. *out: cJSON's memory. */
static int32_t read_string(reader *r, char **out)
{
    const char *open = r->p++, *close = r->p;
    while (close < r->end && *close != '"')
        close += *close == '\\' && r->end - close > 1 ? 2 : 1;
    if (close >= r->end)
        return fail_at(r, open, "a text without its closing quote");
    char *text = cJSON_malloc((size_t)(close - open)); /* an escape is never shorter than what it stands for */
    if (!text)
        return opi__fail_memory(r->err, (size_t)(close - open));
    const char *bad = NULL;
    const char *problem = opi__json_unescape(r->p, close, text, &bad);
    if (problem) {
        cJSON_free(text);
        return fail_at(r, bad, problem);
    }
    r->p = close + 1;
    *out = text;
    return OPI_OK;
}

/* ---- values ---- */

static int32_t read_number(reader *r, cJSON **out)
{
    const char *stop = opi__json_scan_number(r->p, r->end);
    double v;
    if (!stop)
        return fail_at(r, r->p, "not a number in JSON's notation");
    size_t n = (size_t)(stop - r->p);
    if (!opi__parse_double(r->p, n, &v))
        return fail_at(r, r->p, "a number too large for a double (limit 1.797e308)");
    cJSON *item = cJSON_CreateNull();
    char *text = cJSON_malloc(n + 1);
    if (!item || !text) {
        cJSON_Delete(item);
        cJSON_free(text);
        return opi__fail_memory(r->err, n + 1);
    }
    memcpy(text, r->p, n);
    text[n] = '\0';
    item->type = cJSON_Raw;
    item->valuestring = text;
    item->valuedouble = v;
    r->p = stop;
    *out = item;
    return OPI_OK;
}

static int take_word(reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
        return 0;
    r->p += n;
    return 1;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, so that an object of a million keys costs no million squared. */
static int32_t check_keys(reader *r, const char *open, const cJSON *object, size_t n)
{
    if (n < 2)
        return OPI_OK;
    const char **keys = cJSON_malloc(n * sizeof *keys);
    if (!keys)
        return opi__fail_memory(r->err, n * sizeof *keys);
    size_t i = 0;
    for (const cJSON *c = object->child; c; c = c->next)
        keys[i++] = c->string;
    qsort(keys, n, sizeof *keys, compare_keys);
    int32_t status = OPI_OK;
    for (i = 1; i < n && !status; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0) {
            char problem[160];
            opi__format(problem, sizeof problem, "the object that starts here has the key \"%.80s\" twice", keys[i]);
            status = fail_at(r, open, problem);
        }
    cJSON_free(keys);
    return status;
}

static int32_t read_value(reader *r, int depth, cJSON **out);

/* One `"key":` of an object; *key is cJSON's memory. */
static int32_t read_key(reader *r, char **key)
{
    skip_space(r);
    if (r->p >= r->end || *r->p != '"')
        return fail_at(r, r->p, "expected a key in quotes");
    int32_t status = read_string(r, key);
    if (status)
        return status;
    skip_space(r);
    if (r->p >= r->end || *r->p != ':') {
        cJSON_free(*key);
        return fail_at(r, r->p, "expected a colon behind the key");
    }
    r->p++;
    return OPI_OK;
}

/* r->p behind the opening bracket. The children are appended to `into`. */
static int32_t read_children(reader *r, int depth, cJSON *into, int is_object, size_t *count)
{
    char close = is_object ? '}' : ']';
    skip_space(r);
    if (r->p < r->end && *r->p == close) {
        r->p++;
        return OPI_OK;
    }
    for (;;) {
        char *key = NULL;
        cJSON *child = NULL;
        int32_t status = is_object ? read_key(r, &key) : OPI_OK;
        if (status)
            return status;
        status = read_value(r, depth + 1, &child);
        if (status) {
            cJSON_free(key);
            return status;
        }
        child->string = key;
        cJSON_AddItemToArray(into, child);
        ++*count;
        skip_space(r);
        if (r->p >= r->end || (*r->p != ',' && *r->p != close))
            return fail_at(r, r->p, is_object ? "expected a comma or a closing brace"
                                              : "expected a comma or a closing bracket");
        if (*r->p++ == close)
            return OPI_OK;
    }
}

static int32_t read_container(reader *r, int depth, cJSON **out)
{
    const char *open = r->p++;
    int is_object = *open == '{';
    if (depth > OPI__JSON_DEPTH) {
        char problem[80];
        opi__format(problem, sizeof problem, "nested more than %d levels deep", OPI__JSON_DEPTH);
        return fail_at(r, open, problem);
    }
    cJSON *made = is_object ? cJSON_CreateObject() : cJSON_CreateArray();
    if (!made)
        return opi__fail_memory(r->err, sizeof *made);
    size_t count = 0;
    int32_t status = read_children(r, depth, made, is_object, &count);
    if (!status && is_object)
        status = check_keys(r, open, made, count);
    if (status) {
        cJSON_Delete(made);
        return status;
    }
    *out = made;
    return OPI_OK;
}

static int32_t read_value(reader *r, int depth, cJSON **out)
{
    skip_space(r);
    if (r->p >= r->end)
        return fail_at(r, r->p, "the text ends where a value is expected");
    char c = *r->p;
    if (c == '{' || c == '[')
        return read_container(r, depth, out);
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(r, out);
    char *text = NULL;
    int32_t status = c == '"' ? read_string(r, &text) : OPI_OK;
    if (status)
        return status;
    int type = text                     ? cJSON_String
               : take_word(r, "true")  ? cJSON_True
               : take_word(r, "false") ? cJSON_False
               : take_word(r, "null")  ? cJSON_NULL
                                       : cJSON_Invalid;
    if (type == cJSON_Invalid)
        return fail_at(r, r->p, "not a JSON value");
    cJSON *item = cJSON_CreateNull();
    if (!item) {
        cJSON_free(text);
        return opi__fail_memory(r->err, sizeof *item);
    }
    item->type = type;
    item->valuestring = text;
    *out = item;
    return OPI_OK;
}

int32_t opi__json_parse(const char *bytes, size_t n, const char *what, opi__json **out, opi_error *err)
{
    if (!bytes)
        return opi__fail(err, OPI_E_INVALID, -1, "%s: the JSON text is NULL", what);
    if (n > OPI__JSON_BYTES)
        return opi__fail(err, OPI_E_RANGE, -1, "%s: %zu bytes of JSON, the limit is %d", what, n, OPI__JSON_BYTES);
    reader r = {what, bytes, bytes, bytes + n, err};
    take_word(&r, "\xef\xbb\xbf"); /* a byte order mark, as some editors put it */
    opi__json *made = NULL;
    int32_t status = read_value(&r, 1, &made);
    if (status)
        return status;
    skip_space(&r);
    if (r.p < r.end) {
        status = fail_at(&r, r.p, "bytes behind the end of the JSON value");
        cJSON_Delete(made);
        return status;
    }
    *out = made;
    return OPI_OK;
}

void opi__json_free(opi__json *v)
{
    cJSON_Delete(v);
}

/* ---- readers ---- */

static int is_container(const cJSON *v)
{
    return cJSON_IsObject(v) || cJSON_IsArray(v);
}

const opi__json *opi__json_get(const opi__json *object, const char *key)
{
    return cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
}

const opi__json *opi__json_first(const opi__json *array_or_object)
{
    return is_container(array_or_object) ? array_or_object->child : NULL;
}

const opi__json *opi__json_next(const opi__json *v)
{
    return v ? v->next : NULL;
}

size_t opi__json_size(const opi__json *array_or_object)
{
    size_t n = 0;
    for (const opi__json *c = opi__json_first(array_or_object); c; c = c->next)
        n++;
    return n;
}

const opi__json *opi__json_at(const opi__json *array_or_object, size_t i)
{
    const opi__json *c = opi__json_first(array_or_object);
    while (c && i-- > 0)
        c = c->next;
    return c;
}

const char *opi__json_key(const opi__json *v)
{
    return v ? v->string : NULL;
}

int opi__json_is_object(const opi__json *v)
{
    return cJSON_IsObject(v) != 0;
}

int opi__json_is_array(const opi__json *v)
{
    return cJSON_IsArray(v) != 0;
}

int opi__json_is_null(const opi__json *v)
{
    return cJSON_IsNull(v) != 0;
}

int opi__json_number(const opi__json *v, double *out)
{
    if (!cJSON_IsRaw(v))
        return 0;
    *out = v->valuedouble;
    return 1;
}

int opi__json_bool(const opi__json *v, int *out)
{
    if (!cJSON_IsBool(v))
        return 0;
    *out = cJSON_IsTrue(v) != 0;
    return 1;
}

const char *opi__json_string(const opi__json *v)
{
    return cJSON_GetStringValue(v);
}

/* ---- builders ---- */

opi__json *opi__json_new_object(void)
{
    return cJSON_CreateObject();
}

opi__json *opi__json_new_array(void)
{
    return cJSON_CreateArray();
}

/* Owns item. A child that could not be made is noted in the parent (valueint means nothing in a container) and found
 * again at print time. */
static cJSON *attach(cJSON *parent, const char *key, cJSON *item)
{
    int added = parent && item &&
                (key ? cJSON_AddItemToObject(parent, key, item) : cJSON_AddItemToArray(parent, item));
    if (added)
        return item;
    cJSON_Delete(item);
    if (parent)
        parent->valueint = 1;
    return NULL;
}

opi__json *opi__json_add_object(opi__json *parent, const char *key)
{
    return parent ? attach(parent, key, cJSON_CreateObject()) : NULL;
}

opi__json *opi__json_add_array(opi__json *parent, const char *key)
{
    return parent ? attach(parent, key, cJSON_CreateArray()) : NULL;
}

static void add_raw(opi__json *parent, const char *key, const char *text, double v)
{
    cJSON *item = parent ? cJSON_CreateRaw(text) : NULL;
    if (item)
        item->valuedouble = v;
    attach(parent, key, item);
}

void opi__json_add_number(opi__json *parent, const char *key, double v)
{
    char text[32];
    if (!isfinite(v)) {
        opi__json_add_null(parent, key);
        return;
    }
    opi__format_double(text, v);
    add_raw(parent, key, text, v);
}

void opi__json_add_int(opi__json *parent, const char *key, int64_t v)
{
    char text[32];
    opi__format(text, sizeof text, "%lld", (long long)v);
    add_raw(parent, key, text, (double)v);
}

void opi__json_add_string(opi__json *parent, const char *key, const char *v)
{
    if (!parent)
        return;
    cJSON *item = v ? cJSON_CreateString(v) : cJSON_CreateNull();
    /* Cells of a table may hold any bytes; a JSON document may not. */
    for (char *p = v && item ? item->valuestring : NULL; p && *p;) {
        size_t n = opi__utf8_sequence(p, 4); /* the final NUL ends any sequence */
        if (n == 0)
            *p = '?';
        p += n ? n : 1;
    }
    attach(parent, key, item);
}

void opi__json_add_bool(opi__json *parent, const char *key, int v)
{
    if (parent)
        attach(parent, key, cJSON_CreateBool(v));
}

void opi__json_add_null(opi__json *parent, const char *key)
{
    if (parent)
        attach(parent, key, cJSON_CreateNull());
}

static int complete(const cJSON *v)
{
    if (!is_container(v))
        return 1;
    if (v->valueint)
        return 0;
    for (const cJSON *c = v->child; c; c = c->next)
        if (!complete(c))
            return 0;
    return 1;
}

int32_t opi__json_text(opi_ctx *ctx, opi__json *v, opi_text **out, opi_error *err)
{
    char *printed = v && complete(v) ? cJSON_Print(v) : NULL;
    cJSON_Delete(v);
    if (!printed)
        return opi__fail_memory(err, 0);
    opi__buf b;
    opi__buf_init(&b, ctx);
    opi__buf_puts(&b, printed);
    cJSON_free(printed);
    return opi__buf_text(&b, out, err);
}
