/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in host: loads the library, uses it, unloads it, several times, and forks while it is loaded. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int32_t (*create_fn)(const void *, void **, void *);
typedef int32_t (*load_fn)(void *, void **, void *);
typedef void (*free_fn)(void *);

/* ISO C has no conversion from an object pointer to a function pointer; POSIX says their representations agree. */
static int get(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static int use(void *library)
{
    create_fn create;
    load_fn load;
    free_fn free_model, destroy;
    void *ctx = NULL, *model = NULL;
    if (!get(library, "opi_ctx_create", &create) || !get(library, "opi_model_load_default", &load) ||
        !get(library, "opi_model_free", &free_model) || !get(library, "opi_ctx_destroy", &destroy))
        return 1;
    if (create(NULL, &ctx, NULL) < 0 || load(ctx, &model, NULL) < 0)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        free_model(model);
        destroy(ctx);
        _exit(0);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        return 3;
    free_model(model);
    destroy(ctx);
    return 0;
}

int main(int argc, char **argv)
{
    for (int round = 0; argc == 2 && round < 3; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        void *hidden = dlsym(library, "opi__fail");
        int bad = use(library);
        if (bad || hidden) {
            fprintf(stderr, "round %d: step %d failed%s\n", round, bad, hidden ? ", internal symbol visible" : "");
            return 1;
        }
        if (dlclose(library) != 0) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    }
    printf("loader ok\n");
    return 0;
}
