/* SPDX-License-Identifier: Apache-2.0 */
/** @file omnipilot.h
 * Umbrella header of libomnipilot: the LLM inference advisor, and the planner of training runs.
 */
#ifndef OMNIPILOT_H
#define OMNIPILOT_H

#include "omnipilot/advise.h"
#include "omnipilot/catalog.h"
#include "omnipilot/model.h"
#include "omnipilot/plan.h"
#include "omnipilot/predict.h"
#include "omnipilot/table.h"
#include "omnipilot/types.h"

#endif
