/* SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"

#include "out.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- messages ---- */
static const char *current_verb;

void tool_set_verb(const char *name)
{
    current_verb = name;
}

static void say(const char *kind, const char *fmt, va_list ap)
{
    char line[2048], safe[2048];
    vsnprintf(line, sizeof line, fmt, ap);
    out_clean(safe, sizeof safe, line);
    fflush(stdout); /* where both go to one terminal, results stand before the message about them */
    fprintf(stderr, "omnipilot%s%s: %s%s\n", current_verb ? " " : "", current_verb ? current_verb : "", kind, safe);
}

int tool_fail(int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("", fmt, ap);
    va_end(ap);
    return status;
}

void tool_note(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("", fmt, ap);
    va_end(ap);
}

void tool_warn(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("warning: ", fmt, ap);
    va_end(ap);
}

int tool_error(const opi_error *err, const char *where)
{
    int status;
    switch (err->code) {
    case OPI_E_INVALID:
    case OPI_E_FORMAT:
    case OPI_E_VERSION:
    case OPI_E_UNKNOWN:
    case OPI_E_AMBIGUOUS:
    case OPI_E_RANGE:
    case OPI_E_NODATA:
    case OPI_E_UNSUPPORTED:
    case OPI_E_IO: /* reading; the one verb that writes a file says so itself */
        status = X_USAGE;
        break;
    case OPI_E_INFEASIBLE:
        status = X_NONE;
        break;
    default:
        status = X_FAIL;
    }
    return where ? tool_fail(status, "--%s: %s", where, err->message) : tool_fail(status, "%s", err->message);
}

/* ---- memory ---- */
void *tool_alloc(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size ? size : 1);
    if (!p) {
        fprintf(stderr, "omnipilot: out of memory (%zu times %zu bytes)\n", count, size);
        exit(X_FAIL);
    }
    return p;
}

char *tool_copy(const char *s, size_t n)
{
    char *copy = tool_alloc(n + 1, 1);
    memcpy(copy, s, n);
    return copy;
}

/* ---- files ---- */
int tool_read_file(const char *option, const char *path, size_t limit, char **bytes, size_t *size)
{
    struct stat st;
    int standard = strcmp(path, "-") == 0;
    /* Without O_NONBLOCK the open of a named pipe nobody writes to would wait for ever. */
    int fd = standard ? -1 : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    FILE *f = standard ? stdin : fd >= 0 ? fdopen(fd, "rb") : NULL;
    size_t cap = 1 << 16, n = 0;
    if (!f) {
        return tool_fail(X_USAGE, "--%s: cannot open '%s': %s", option, path, strerror(errno));
    }
    if (!standard && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        fclose(f);
        return tool_fail(X_USAGE, "--%s: '%s' is not a regular file", option, path);
    }
    char *buf = tool_alloc(cap + 1, 1);
    for (;;) {
        size_t got = fread(buf + n, 1, cap - n, f);
        n += got;
        if (n < cap) {
            break;
        }
        if (n > limit) {
            break;
        }
        cap *= 2;
        char *grown = realloc(buf, cap + 1);
        if (!grown) {
            free(buf);
            grown = tool_alloc(cap + 1, 1); /* reports and ends */
        }
        buf = grown;
    }
    int status = 0;
    if (ferror(f)) {
        status = tool_fail(X_USAGE, "--%s: cannot read '%s': %s", option, path, strerror(errno));
    } else if (n > limit) {
        status = tool_fail(X_USAGE, "--%s: '%s' is larger than the limit of %zu bytes", option, path, limit);
    }
    if (!standard) {
        fclose(f);
    }
    if (status) {
        free(buf);
        return status;
    }
    buf[n] = 0;
    *bytes = buf;
    *size = n;
    return 0;
}

char *tool_dirname(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return tool_copy(".", 1);
    }
    return tool_copy(path, slash == path ? 1 : (size_t)(slash - path));
}

/* ---- the library's objects ---- */
static void on_log(void *user, int32_t level, const char *line)
{
    (void)user;
    if (level >= OPI_LOG_WARNING) {
        tool_warn("%s", line);
    }
}

int tool_context(opi_ctx **ctx)
{
    opi_ctx_options options = {.struct_size = sizeof options, .log = on_log};
    opi_error err;
    return opi_ctx_create(&options, ctx, &err) ? tool_error(&err, NULL) : 0;
}

int tool_model(opi_ctx *ctx, const args *a, opi_model **model)
{
    const char *path = args_get(a, "model");
    opi_error err;
    if (path) {
        return opi_model_load_file(ctx, path, model, &err) ? tool_error(&err, "model") : 0;
    }
    return opi_model_load_default(ctx, model, &err) ? tool_error(&err, NULL) : 0;
}

static int is_kind(const char *path, int folder)
{
    struct stat st;
    return stat(path, &st) == 0 && (folder ? S_ISDIR(st.st_mode) : !S_ISDIR(st.st_mode));
}

static int llm_from_file(opi_ctx *ctx, const char *path, opi_llm *out)
{
    char *bytes;
    size_t size;
    opi_error err;
    int status = tool_read_file("llm", path, 64u << 20, &bytes, &size);
    if (status) {
        return status;
    }
    status = opi_llm_from_config(ctx, bytes, size, NULL, out, &err) ? tool_error(&err, "llm") : 0;
    free(bytes);
    return status;
}

int tool_llm(opi_ctx *ctx, const char *text, opi_llm *out, char **local)
{
    size_t n = strlen(text);
    int json = n > 5 && strcmp(text + n - 5, ".json") == 0;
    opi_error err;
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    if (local) {
        *local = NULL;
    }
    if (!json) {
        if (!opi_llm_find(text, out, &err)) {
            return 0;
        }
        if (!is_kind(text, 0) && !is_kind(text, 1)) {
            return tool_error(&err, "llm"); /* the library's message has the nearest names */
        }
    }
    char *path = tool_copy(text, n), *folder = NULL;
    if (is_kind(text, 1)) {
        folder = tool_copy(text, n);
        free(path);
        path = tool_alloc(n + 16, 1);
        snprintf(path, n + 16, "%s/config.json", text);
    } else {
        folder = tool_dirname(text);
    }
    int status = llm_from_file(ctx, path, out);
    free(path);
    if (local && !status) {
        *local = folder;
    } else {
        free(folder);
    }
    return status;
}

int tool_gpu(const char *option, const char *text, opi_gpu *out)
{
    opi_error err;
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    return opi_gpu_find(text, out, &err) ? tool_error(&err, option) : 0;
}

const char *tool_precision(const opi_llm *llm)
{
    if (*llm->quant) {
        return llm->quant;
    }
    if (isnan(llm->weight_bits) || llm->weight_bits <= 0 || llm->weight_bits > 8) {
        return "bf16";
    }
    return llm->weight_bits > 6 ? "fp8" : "fp4";
}

/* ---- progress ---- */
static volatile sig_atomic_t stop_asked;

static void on_interrupt(int number)
{
    (void)number;
    stop_asked = 1;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void tool_progress_begin(tool_progress *p)
{
    struct sigaction act;
    memset(p, 0, sizeof *p);
    memset(&act, 0, sizeof act);
    act.sa_handler = on_interrupt;
    act.sa_flags = SA_RESTART | (int)SA_RESETHAND; /* a second Ctrl-C ends the program at once */
    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, NULL);
}

int32_t tool_on_progress(void *user, const char *stage, uint64_t done, uint64_t total)
{
    tool_progress *p = user;
    double now = seconds_now();
    if (stop_asked) {
        return 1;
    }
    if (isatty(2) && now - p->last > 0.1) {
        p->last = now;
        p->shown = 1;
        fprintf(stderr, "\r\033[K%s: %llu of %llu", stage ? stage : "working", (unsigned long long)done,
                (unsigned long long)total);
        fflush(stderr);
    }
    return 0;
}

void tool_progress_end(tool_progress *p)
{
    if (p->shown) {
        fputs("\r\033[K", stderr);
    }
    signal(SIGINT, SIG_DFL);
}
