/* SPDX-License-Identifier: Apache-2.0 */
/* Persistent checkpoints beside the training: a worker writes this rank's shards from a snapshot that is complete
 * everywhere, then two nonblocking agreements: all shards are there (slot 0 then writes the mark), the mark is there. */
#include "swap/persist.h"
#include "base/rng.h"
#include "base/status.h"
#include "swap/restore.h"
#include <string.h>

#define MARKS 32 /* most checkpoints looked at when one is loaded */

enum { IDLE, WRITING, ALL_WRITTEN, MARKING, ALL_MARKED, DRAINING };

struct opi__persist {
    opi__worker worker;
    const char *dir[2];
    int32_t dirs, at, tries, phase;
    int32_t left; /* folder of the last failed try */
    opi__snap *snap;
    opi__shard_id id;
    opi__store_mark mark;
    int32_t mine, all; /* of an agreement */
    int32_t keep, marker;
    opi_ctx *ctx;
    MPI_Request request;
    opi_error err;
};

int32_t opi__persist_open(opi_swap *s, opi_error *err)
{
    if (!s->options.checkpoint_dir)
        return OPI_OK;
    struct opi__persist *p = opi__zalloc(s->ctx, 1, sizeof *p);
    if (!p)
        return opi__fail_memory(err, sizeof *p);
    p->ctx = s->ctx;
    p->dir[p->dirs++] = s->options.checkpoint_dir;
    if (s->options.checkpoint_fallback_dir)
        p->dir[p->dirs++] = s->options.checkpoint_fallback_dir;
    p->keep = s->options.checkpoint_keep ? s->options.checkpoint_keep : OPI__STORE_KEEP_DEFAULT;
    p->request = MPI_REQUEST_NULL;
    int why = opi__worker_start(&p->worker);
    if (why) {
        opi__free(s->ctx, p);
        return opi__fail(err, OPI_E_NOMEM, -1, "cannot start a thread for checkpoints: error %d of the system", why);
    }
    s->persist = p;
    return OPI_OK;
}

void opi__persist_close(opi_swap *s)
{
    if (!s->persist)
        return;
    opi__worker_stop(&s->persist->worker);
    opi__free(s->ctx, s->persist);
    s->persist = NULL;
}

int32_t opi__persist_busy(const opi_swap *s)
{
    return s->persist && s->persist->phase != IDLE;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* What a failed save left would fill a disk that is full already. */
static void discard_job(void *user)
{
    struct opi__persist *p = user;
    opi_error ignored;
    opi__store_discard(p->dir[p->left], p->id.step, p->id.save, &ignored);
}

static void write_job(void *user)
{
    struct opi__persist *p = user;
    p->mine = 1;
    if (p->id.slot == 0 && p->tries)
        discard_job(p);
    for (int32_t part = 0; part < 2 && p->mine; part++) {
        int32_t wanted =
            part == OPI__UNIQUE || (p->mark.common_row >= 0 && p->id.slot < p->mark.grid.tp * p->mark.grid.pp);
        if (!wanted)
            continue;
        p->id.part = part;
        p->mine = opi__store_write(p->dir[p->at], &p->id, p->snap->blob[part], p->snap->bytes[part], &p->err) == OPI_OK;
    }
}

static void mark_job(void *user)
{
    struct opi__persist *p = user;
    p->mine = opi__store_complete(p->dir[p->at], &p->mark, &p->err) == OPI_OK;
}

static void prune_job(void *user)
{
    struct opi__persist *p = user;
    opi_error ignored; /* what cannot be removed now is tried again after the next checkpoint */
    opi__store_prune(p->ctx, p->dir[p->at], p->keep, &ignored);
}

static void tell(opi_swap *s, int32_t kind, const char *text)
{
    struct opi__persist *p = s->persist;
    opi_swap_event e = {
        .kind = kind, .epoch = s->view.epoch, .rank = -1, .slot = -1, .step = p->id.step, .time_s = opi__now()};
    opi__journal_event(&s->journal, &e, "checkpoint of step %lld: %s", (long long)p->id.step, text);
}

static void start_writing(opi_swap *s)
{
    struct opi__persist *p = s->persist;
    p->phase = WRITING;
    p->err.message[0] = 0;
    opi__worker_give(&p->worker, write_job, p);
}

void opi__persist_begin(opi_swap *s, opi__snap *snap)
{
    struct opi__persist *p = s->persist;
    if (!p)
        return;
    snap->want_file = 0;
    if (p->phase != IDLE)
        return;
    opi__shard_id id = {snap->step,
                        opi__mix64(s->job ^ opi__mix64((uint64_t)snap->step * 64 + (uint64_t)s->view.epoch)),
                        snap->slot, 0};
    opi__store_mark mark = {snap->step, id.save, s->grid, s->grid.dp > 1 ? 0 : -1};
    p->id = id;
    p->mark = mark;
    p->snap = snap;
    snap->pinned = 1;
    p->tries = 0;
    start_writing(s);
}

static void end(opi_swap *s)
{
    struct opi__persist *p = s->persist;
    if (p->snap)
        p->snap->pinned = 0;
    p->snap = NULL;
    p->phase = IDLE;
}

static void agree(opi_swap *s, int32_t phase)
{
    struct opi__persist *p = s->persist;
    p->phase = phase;
    if (MPI_Iallreduce(&p->mine, &p->all, 1, MPI_INT32_T, MPI_MIN, s->files, &p->request) == MPI_SUCCESS)
        return;
    p->request = MPI_REQUEST_NULL;
    opi__fault(s);
}

/* Training goes on whatever the disk does: the other folder is tried, else this checkpoint is given up. */
static void failed(opi_swap *s)
{
    struct opi__persist *p = s->persist;
    int32_t again = ++p->tries < p->dirs;
    char text[420];
    opi__format(text, sizeof text, "%s; %s", p->err.message[0] ? p->err.message : "another rank could not write it",
                again ? "trying the other folder" : "given up, training goes on");
    tell(s, OPI_SWAP_STORAGE_FAULT, text);
    p->left = p->at;
    p->at = (p->at + 1) % p->dirs; /* the next checkpoint starts there too */
    if (!again) {
        p->snap->pinned = 0;
        p->snap = NULL;
        p->phase = DRAINING;
        if (p->id.slot == 0)
            opi__worker_give(&p->worker, discard_job, p);
        return;
    }
    start_writing(s);
}

static void all_marked(opi_swap *s)
{
    struct opi__persist *p = s->persist;
    s->journal.counters.checkpoints++;
    tell(s, OPI_SWAP_CHECKPOINTED, p->dir[p->at]);
    if (p->snap)
        p->snap->pinned = 0;
    p->snap = NULL;
    p->phase = DRAINING;
    if (p->id.slot == 0)
        opi__worker_give(&p->worker, prune_job, p);
}

void opi__persist_progress(opi_swap *s)
{
    struct opi__persist *p = s->persist;
    if (!p || p->phase == IDLE || opi__worker_busy(&p->worker))
        return;
    switch (p->phase) {
    case WRITING:
        if (p->mine)
            s->journal.counters.checkpoint_bytes +=
                p->snap->bytes[0] +
                (p->mark.common_row >= 0 && p->id.slot < opi__grid_row(&s->grid) ? p->snap->bytes[1] : 0);
        agree(s, ALL_WRITTEN);
        break;
    case MARKING:
        agree(s, ALL_MARKED);
        break;
    case DRAINING:
        end(s);
        break;
    default: {
        int state = opi__engine_test(&p->request, NULL);
        if (state < 0)
            opi__fault(s);
        if (state <= 0)
            break;
        if (!p->all) {
            failed(s);
        } else if (p->phase == ALL_MARKED) {
            all_marked(s);
        } else {
            p->phase = MARKING;
            p->mine = 1;
            if (p->id.slot == 0)
                opi__worker_give(&p->worker, mark_job, p);
        }
    }
    }
}

/* A recovery: what is under way is given up, and its snapshot stays pinned until the worker has left it. */
void opi__persist_halt(opi_swap *s)
{
    struct opi__persist *p = s->persist;
    if (!p || p->phase == IDLE)
        return;
    if (p->request != MPI_REQUEST_NULL)
        opi__engine_drain(&p->request, 1);
    p->request = MPI_REQUEST_NULL;
    p->phase = DRAINING;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct offer {
    opi__store_mark mark;
    int32_t dir, used;
} offer;

static void skipped(void *user, const char *text)
{
    opi_swap *s = user;
    opi_swap_event e = {.kind = OPI_SWAP_CHECKPOINT_SKIPPED,
                        .epoch = s->view.epoch,
                        .rank = -1,
                        .slot = -1,
                        .step = OPI__NO_STEP,
                        .time_s = opi__now()};
    opi__journal_event(&s->journal, &e, "%s", text);
}

/* Newest first over both folders. */
static void list(opi_swap *s, offer *all)
{
    struct opi__persist *p = s->persist;
    int32_t n = 0;
    for (int32_t d = 0; d < p->dirs; d++) {
        opi__store_mark *marks = NULL;
        size_t count = 0;
        opi_error err;
        if (opi__store_list(s->ctx, p->dir[d], skipped, s, &marks, &count, &err)) {
            skipped(s, err.message);
            continue;
        }
        for (size_t i = 0; i < count && n < MARKS; i++) {
            int32_t at = n++;
            while (at > 0 && all[at - 1].mark.step < marks[i].step) {
                all[at] = all[at - 1];
                at--;
            }
            offer one = {marks[i], d, 1};
            all[at] = one;
        }
        opi__free(s->ctx, marks);
    }
}

static int32_t read_block(opi_swap *s, const offer *o, int32_t slot, int32_t part, void **block, opi_error *err)
{
    size_t bytes = 0;
    opi__shard_id id = {o->mark.step, o->mark.save, slot, part};
    int32_t rc = opi__store_read(s->ctx, s->persist->dir[o->dir], &id, block, &bytes, err);
    if (rc)
        return rc;
    int32_t row = opi__grid_row(&o->mark.grid);
    opi__blob_id want = {o->mark.step, o->mark.grid.dp, part == OPI__COMMON ? slot % row : slot, part};
    if (opi__blob_valid(*block, bytes, &want))
        return OPI_OK;
    opi__free(s->ctx, *block);
    *block = NULL;
    return opi__fail(err, OPI_E_FORMAT, slot, "the block of slot %d is not one of this program's", (int)slot);
}

/* This slot's state from the files of one checkpoint. */
static int32_t read_slot(opi_swap *s, const opi__attempt *a, const offer *o, opi_error *err)
{
    int32_t row = opi__grid_row(&a->grid), d = a->slot / row, from = o->mark.grid.dp, first, last, rc = OPI_OK;
    int32_t home = d % from;
    if (!opi__blob_rows(s->state, s->states, from, a->grid.dp, d, &first, &last))
        return opi__fail(err, OPI_E_INVALID, -1,
                         "it has data-parallel width %d, and a sharded state here has no total to "
                         "be divided by %d",
                         (int)from, (int)a->grid.dp);
    void **block = opi__zalloc(s->ctx, (size_t)from, sizeof *block);
    if (!block)
        return opi__fail_memory(err, (size_t)from * sizeof *block);
    for (int32_t r = 0; r < from && !rc; r++)
        if ((r >= first && r <= last) || r == home)
            rc = read_block(s, o, r * row + a->slot % row, 0, &block[r], err);
    opi__blob_source source = {(const void *const *)block,
                               from,
                               home,
                               a->grid.dp,
                               d,
                               OPI__UNIQUE,
                               0,
                               s->options.callbacks.copy,
                               s->options.callbacks.resize,
                               s->options.callbacks.user};
    if (!rc)
        rc = opi__blob_restore(&source, s->state, s->states, err);
    if (!rc && o->mark.common_row >= 0) {
        opi__free(s->ctx, block[home]);
        block[home] = NULL;
        source.part = OPI__COMMON;
        rc = read_block(s, o, o->mark.common_row * row + a->slot % row, OPI__COMMON, &block[home], err);
        if (!rc)
            rc = opi__blob_restore(&source, s->state, s->states, err);
    }
    for (int32_t r = 0; r < from; r++)
        opi__free(s->ctx, block[r]);
    opi__free(s->ctx, block);
    return rc;
}

/* Checkpoints of later steps are of a course that is left here; they would push out the new ones. */
static void leave_later(opi_swap *s, const opi__attempt *a, int64_t step)
{
    opi_error ignored;
    for (int32_t d = 0; d < s->persist->dirs && a->me == a->owner[0]; d++)
        opi__store_resume(s->ctx, s->persist->dir[d], step, &ignored);
}

int opi__persist_load(opi_swap *s, opi__attempt *a)
{
    offer all[MARKS];
    memset(all, 0, sizeof all);
    if (!s->persist)
        return 1;
    opi__worker_wait(&s->persist->worker); /* a mark may be on its way */
    if (a->me == a->owner[0])
        list(s, all);
    if (MPI_Bcast(all, (int)sizeof all, MPI_BYTE, a->owner[0], a->now) != MPI_SUCCESS)
        return 0;
    for (int32_t i = 0; i < MARKS && all[i].used; i++) {
        const offer *o = &all[i];
        opi_error err = {0};
        int32_t fine = 1, everyone = 0;
        if (!s->established && (o->mark.grid.tp != a->grid.tp || o->mark.grid.pp != a->grid.pp)) {
            /* Starting anew beside it would push a good checkpoint out: the user is to say what is meant. */
            a->fatal =
                opi__fail(&a->err, OPI_E_INVALID, o->mark.step,
                          "checkpoint of step %lld in %s is of tensor-parallel width %d and pipeline width %d, here "
                          "they are %d and %d: use another folder or those widths",
                          (long long)o->mark.step, s->persist->dir[o->dir], (int)o->mark.grid.tp, (int)o->mark.grid.pp,
                          (int)a->grid.tp, (int)a->grid.pp);
            return 1;
        }
        if (o->mark.grid.tp != a->grid.tp || o->mark.grid.pp != a->grid.pp) {
            opi__fail(&err, OPI_E_INVALID, -1,
                      "it is of tensor-parallel width %d and pipeline width %d, here they are %d "
                      "and %d",
                      (int)o->mark.grid.tp, (int)o->mark.grid.pp, (int)a->grid.tp, (int)a->grid.pp);
            fine = 0;
        } else if (a->slot >= 0) {
            s->dirty = 1;
            fine = read_slot(s, a, o, &err) == OPI_OK;
        }
        char text[560];
        opi__format(text, sizeof text, "checkpoint of step %lld in %s: %s", (long long)o->mark.step,
                    s->persist->dir[o->dir], err.message);
        if (!fine)
            skipped(s, text);
        if (MPI_Allreduce(&fine, &everyone, 1, MPI_INT32_T, MPI_MIN, a->now) != MPI_SUCCESS)
            return 0;
        if (!everyone)
            continue;
        leave_later(s, a, o->mark.step);
        a->step = o->mark.step;
        a->from = OPI__FROM_FILES;
        a->from_dp = o->mark.grid.dp;
        s->committed = a->step;
        s->dirty = 0;
        return 1;
    }
    leave_later(s, a, -1);
    return 1;
}

/* ---- before a stop ----------------------------------------------------------------------------------------------- */

int opi__persist_last(opi_swap *s, opi__attempt *a, int32_t *written)
{
    struct opi__persist *p = s->persist;
    *written = 0;
    if (!p || a->from != OPI__FROM_MEMORY)
        return 1;
    opi__worker_wait(&p->worker);
    opi__grid grid = a->old;
    grid.dp = a->from_dp;
    uint64_t save = opi__mix64(s->job ^ opi__mix64((uint64_t)a->step * 64 + 63));
    opi__store_mark mark = {a->step, save, grid, grid.dp > 1 ? 0 : -1};
    for (int32_t d = 0; d < p->dirs && !*written; d++) {
        int32_t fine = 1, everyone = 0;
        opi_error err = {0};
        for (int32_t slot = 0; slot < opi__grid_slots(&grid) && fine; slot++)
            for (int32_t part = 0; part < 2 && fine; part++) {
                size_t bytes = 0;
                if (part == OPI__COMMON && (grid.dp == 1 || slot >= opi__grid_row(&grid)))
                    continue;
                if (opi__restore_source(a, part, slot) != a->me)
                    continue;
                opi__shard_id id = {a->step, save, slot, part};
                const void *block = opi__restore_block(s, a, part, slot, &bytes);
                fine = block && opi__store_write(p->dir[d], &id, block, bytes, &err) == OPI_OK;
                s->journal.counters.checkpoint_bytes += fine ? bytes : 0;
            }
        if (MPI_Allreduce(&fine, &everyone, 1, MPI_INT32_T, MPI_MIN, a->now) != MPI_SUCCESS)
            return 0;
        if (everyone && a->me == 0)
            fine = opi__store_complete(p->dir[d], &mark, &err) == OPI_OK;
        if (everyone && MPI_Bcast(&fine, 1, MPI_INT32_T, 0, a->now) != MPI_SUCCESS)
            return 0;
        p->id.step = a->step;
        *written = everyone && fine;
        s->journal.counters.checkpoints += (uint64_t)*written;
        if (*written)
            tell(s, OPI_SWAP_CHECKPOINTED, p->dir[d]);
        else
            tell(s, OPI_SWAP_STORAGE_FAULT, err.message[0] ? err.message : "another rank could not write it");
    }
    return 1;
}
