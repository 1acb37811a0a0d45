/* SPDX-License-Identifier: Apache-2.0 */
/** @file types.h
 * Status codes, errors, contexts, allocators, logs and owned texts.
 *
 * Order of arguments everywhere: subject, inputs, outputs, `opi_error *err` last and nullable. A function that fails
 * returns a negative status and leaves its outputs untouched. There is no global or thread-local state.
 */
#ifndef OMNIPILOT_TYPES_H
#define OMNIPILOT_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) && !defined(OPI_STATIC)
#define OPI_API __attribute__((visibility("default")))
#else
#define OPI_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define OPI_VERSION_MAJOR 0
#define OPI_VERSION_MINOR 1
#define OPI_VERSION_PATCH 0

/** Status codes: 0 is success, errors are negative and never renumbered. Abstaining is a verdict, not an error. */
#define OPI_OK 0
#define OPI_E_INVALID (-1)     /**< an argument is malformed (NULL, wrong type, not a number …) */
#define OPI_E_NOMEM (-2)       /**< the allocator returned NULL */
#define OPI_E_IO (-3)          /**< the operating system refused a read or a write */
#define OPI_E_FORMAT (-4)      /**< bytes are not in the expected format, or damaged */
#define OPI_E_VERSION (-5)     /**< a format or struct newer than this library */
#define OPI_E_UNKNOWN (-6)     /**< a name that is in no table; the message suggests the nearest names */
#define OPI_E_AMBIGUOUS (-7)   /**< a name that fits several entries; the message lists them */
#define OPI_E_RANGE (-8)       /**< a number outside its limits; the message has both */
#define OPI_E_INFEASIBLE (-9)  /**< the configuration cannot exist (divisibility, memory, inventory) */
#define OPI_E_NODATA (-10)     /**< too few rows, or no label, for what was asked */
#define OPI_E_CANCELED (-11)   /**< the caller's progress callback asked to stop */
#define OPI_E_BUFFER (-12)     /**< the caller's buffer is too small; the needed size was written */
#define OPI_E_UNSUPPORTED (-13) /**< valid, but not built into this library */
#define OPI_E_INTERNAL (-14)   /**< a broken invariant of the library itself */
#define OPI_E_FENCED (-15)     /**< this rank was declared dead and replaced: it must leave */
#define OPI_E_LOST (-16)       /**< state is gone and neither a copy nor a checkpoint has it */

/** What went wrong, filled only on failure. Fixed layout (512 bytes), never grown. */
typedef struct opi_error {
    int32_t code;      /**< the status that was returned */
    int32_t reserved;
    int64_t index;     /**< row (0 = first), element or byte concerned; -1 when none */
    char message[496]; /**< one line, UTF-8, NUL-terminated: the value, the place and the limit */
} opi_error;

/** A library context: allocator and log. Threads: any number may share one. */
typedef struct opi_ctx opi_ctx;

/** Memory functions; all NULL = the C library's. `user` is passed back to each. */
typedef struct opi_allocator {
    void *user;
    void *(*alloc)(void *user, size_t size);
    void *(*resize)(void *user, void *memory, size_t size);
    void (*release)(void *user, void *memory);
} opi_allocator;

#define OPI_LOG_INFO 1
#define OPI_LOG_WARNING 2
/** Receives one line without its newline. Never called by predict, interval, distance or rank. */
typedef void (*opi_log_fn)(void *user, int32_t level, const char *line);

typedef struct opi_ctx_options {
    uint32_t struct_size; /**< sizeof(opi_ctx_options) */
    uint32_t reserved;
    opi_allocator allocator;
    opi_log_fn log; /**< NULL: nothing is logged */
    void *log_user;
} opi_ctx_options;

/** Creates a context. `options` NULL = defaults. Owner: the caller, opi_ctx_destroy; it must outlive what it made. */
OPI_API int32_t opi_ctx_create(const opi_ctx_options *options, opi_ctx **out, opi_error *err);
/** Frees a context; NULL is allowed. */
OPI_API void opi_ctx_destroy(opi_ctx *ctx);

/** "0.1.0"; static storage. */
OPI_API const char *opi_version(void);
/** Name of a status code ("OPI_E_RANGE"); static storage; "OPI_E_?" for an unknown one. */
OPI_API const char *opi_status_name(int32_t code);

/** An owned, immutable, NUL-terminated UTF-8 text (JSON documents, reports) or byte block. */
typedef struct opi_text opi_text;
OPI_API const char *opi_text_data(const opi_text *text);
/** Bytes without the final NUL. */
OPI_API size_t opi_text_size(const opi_text *text);
OPI_API void opi_text_free(opi_text *text);

#ifdef __cplusplus
}
#endif
#endif
