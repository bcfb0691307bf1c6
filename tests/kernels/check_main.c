/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel tester's clients, one a family. See tester.h for how to add one.
 */
#include "base/compiler.h"
#include "tester.h"

void check_attention(tester *t);
void check_machine(tester *t);
void check_matmul(tester *t);
void check_vector(tester *t);
void check_weight(tester *t);

static const tester_client clients[] = {
    {"machine", check_machine}, {"vector", check_vector},       {"weight", check_weight},
    {"matmul", check_matmul},   {"attention", check_attention},
};

int main(int argc, char **argv) {
    return tester_main(argc, argv, clients, (int)OCTAVO_COUNT(clients));
}
