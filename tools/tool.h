/* SPDX-License-Identifier: Apache-2.0 */
/* What every verb shares: exit statuses, messages, and opening contexts, models, LLMs and files. */
#ifndef OMNIPILOT_TOOL_H
#define OMNIPILOT_TOOL_H
#include "args.h"
#include "omnipilot/omnipilot.h"

#define X_OK      0 /* recommended, or simply done */
#define X_FAIL    1 /* anything that is not one of the others: a full disk, no memory, canceled */
#define X_USAGE   2 /* bad usage or input */
#define X_ABSTAIN 3 /* no honest recommendation */
#define X_NONE    4 /* nothing feasible */

#if defined(__GNUC__)
#define TOOL_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define TOOL_PRINTF(f, a)
#endif

/* Messages go to stderr, one line each, control characters made harmless. Returns `status`. */
int tool_fail(int status, const char *fmt, ...) TOOL_PRINTF(2, 3);
void tool_note(const char *fmt, ...) TOOL_PRINTF(1, 2);
void tool_warn(const char *fmt, ...) TOOL_PRINTF(1, 2);
/* Reports a library error; `where` (nullable) names the option or file. Returns the exit status it deserves. */
int tool_error(const opi_error *err, const char *where);
/* The verb named in messages ("omnipilot advise: …"); NULL = none yet. */
void tool_set_verb(const char *name);

/* Memory of the tool itself: never NULL; ends the program with X_FAIL when there is none. */
void *tool_alloc(size_t count, size_t size);
char *tool_copy(const char *s, size_t n);

/* Reads a whole file (or "-" for standard input) up to `limit` bytes. 0, or an exit status after a message. */
int tool_read_file(const char *option, const char *path, size_t limit, char **bytes, size_t *size);

int tool_context(opi_ctx **ctx);
/* --model FILE, or the compiled-in model. */
int tool_model(opi_ctx *ctx, const args *a, opi_model **model);
/* --llm: a name of the table, a config.json, or a folder that holds one. `local` (nullable) gets the checkpoint's
 * folder when a file was read, else NULL; the caller frees it. */
int tool_llm(opi_ctx *ctx, const char *text, opi_llm *out, char **local);
int tool_gpu(const char *option, const char *text, opi_gpu *out);
/* The precision of the checkpoint itself: its own quantization, else "bf16". */
const char *tool_precision(const opi_llm *llm);

/* The last path component's folder ("." when there is none). Owner: the caller. */
char *tool_dirname(const char *path);
/* Progress on a terminal's stderr; stops on Ctrl-C. `user` is a tool_progress. */
typedef struct tool_progress {
    int shown;
    double last;
} tool_progress;
int32_t tool_on_progress(void *user, const char *stage, uint64_t done, uint64_t total);
void tool_progress_begin(tool_progress *p);
void tool_progress_end(tool_progress *p);

/* The verbs. */
int run_advise(const args *a);
int run_predict(const args *a);
int run_fit(const args *a);
int run_adapt(const args *a);
int run_evaluate(const args *a);
int run_gate(const args *a);
int run_inspect(const args *a);
int run_gpus(const args *a);
int run_llms(const args *a);
int run_memory(const args *a);
int run_plan(const args *a);
int run_preferences(const args *a);
extern const verb verb_advise, verb_predict, verb_fit, verb_adapt, verb_evaluate, verb_gate, verb_inspect, verb_gpus,
    verb_llms, verb_memory, verb_plan, verb_preferences;
#endif
