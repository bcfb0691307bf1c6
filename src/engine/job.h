/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes of a model that is split over several: process 0 leads, and tells the others what
 * each step is; they have the weights and caches of their ranks, and nothing else of their own.
 */
#ifndef OCTAVO_ENGINE_JOB_H
#define OCTAVO_ENGINE_JOB_H

#include "program/run.h"
#include "sharding/link.h"

#include "octavo/model.h"

/* The arrays of a step one behind the other. */
typedef struct octavo_job {
    int32_t *words; /* [capacity] */
    size_t capacity;
    float *rows;  /* of results, on processes that follow: nothing is written there */
    bool is_over; /* nothing is told any more */
    octavo_log log;
    octavo_link link; /* measured where the log wants to know; else 0 */
} octavo_job;

/* Room for the largest step. All processes, with the same level of the log: from INFO on the link
 * between them is measured, and what exchanges took is told at the end beside what it says. */
OCTAVO_MUST_CHECK octavo_status octavo_job_init(octavo_model *model, const octavo_log *log,
                                                octavo_error *error);
/* All processes, once they have agreed that the model is open. */
OCTAVO_MUST_CHECK octavo_status octavo_job_measure(octavo_model *model, octavo_error *error);
/* Process 0: tells the others a step that all are to run. What fails in it ends the job. */
void octavo_job_tell(octavo_model *model, const octavo_step *step);
/* Whether what the last step moved between processes arrived. */
OCTAVO_MUST_CHECK octavo_status octavo_job_result(const octavo_model *model, octavo_error *error);
/* Process 0 tells the others that there are no more steps; frees the room. Also without a job. */
void octavo_job_end(octavo_model *model);

#endif
