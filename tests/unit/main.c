/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every suite of suites.h, or those named on the command line. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUITE(topic) Suite *suite_##topic(void);
#include "suites.h"
#undef SUITE

typedef struct entry {
    const char *name;
    Suite *(*make)(void);
} entry;

static const entry suites[] = {
#define SUITE(topic) {#topic, suite_##topic},
#include "suites.h"
#undef SUITE
    {NULL, NULL},
};

static int asked(int argc, char **argv, const char *name)
{
    if (argc < 2)
        return 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    SRunner *runner = srunner_create(NULL);
    int added = 0;
    for (const entry *e = suites; e->name; e++) {
        if (asked(argc, argv, e->name)) {
            srunner_add_suite(runner, e->make());
            added++;
        }
    }
    if (added == 0) {
        fprintf(stderr, "no such suite; the suites are:");
        for (const entry *e = suites; e->name; e++)
            fprintf(stderr, " %s", e->name);
        fprintf(stderr, "\n");
        srunner_free(runner);
        return 2;
    }
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
