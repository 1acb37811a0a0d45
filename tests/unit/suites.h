/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of suites, a line each: SUITE(topic) stands for tests/unit/test_topic.c (or
 * tests/property/test_topic.c), which defines `Suite *suite_topic(void)`. main.c includes this file and
 * tests/unit/meson.build reads it. */
SUITE(base_core)
SUITE(base_file)
SUITE(base_json)
SUITE(base_linalg)
SUITE(base_text)
SUITE(csv)
SUITE(import)
SUITE(schema)
SUITE(table)
SUITE(table_rows)
SUITE(advise)
SUITE(answer)
SUITE(candidates)
SUITE(decide)
SUITE(prior)
SUITE(utility)
