/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CHECK_H
#define TRAIN_CHECK_H
#include "options.h"

/* The gradient of the whole model against finite differences, and that of the model split over all processes of the
 * launch (--tp of them) against the whole model's. 1 = right. */
int check_gradients(const options *o);
#endif
