/* SPDX-License-Identifier: Apache-2.0
 *
 * The measuring loops in portable C.
 */
#ifndef OCTAVO_KERNELS_SCALAR_MACHINE_SCALAR_H
#define OCTAVO_KERNELS_SCALAR_MACHINE_SCALAR_H

#include "kernels/machine.h"

void octavo_machine_kernels_scalar(octavo_machine_kernels *kernels);

#endif
