/* SPDX-License-Identifier: Apache-2.0
 *
 * The tester's program: options, the climb over levels, which functions are new, faults, the
 * verdicts' count.
 */
#include "tester.h"

#include "base/clock.h"
#include "tester_state.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_PASSED = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SKIPPED = 77 };

static tester *running; /* for the fault handler; set by tester_main */

/* --- faults --- */

static const struct {
    int number;
    const char *name;
} faults[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"}, {SIGFPE, "SIGFPE"}};

static const char *fault_name(int number) {
    for (size_t i = 0; i < OCTAVO_COUNT(faults); i++)
        if (faults[i].number == number) return faults[i].name;
    return "signal";
}

static void on_fault(int number, siginfo_t *info, void *machine) {
    (void)machine;
    tester *t = running;
    if (!t || !t->is_guarded) { /* the tester's own fault: die of it */
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    t->is_guarded = false;
    char where[TESTER_NAME * 2] = "";
    if (number == SIGSEGV || number == SIGBUS)
        tester_describe_address(t, info->si_addr, where, sizeof where);
    snprintf(t->message, sizeof t->message, "%s%s", fault_name(number), where);
    siglongjmp(t->escape, 1);
}

static void catch_faults(void) {
    static uint8_t stack[64 * 1024]; /* a kernel may have ruined the ordinary one */
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < OCTAVO_COUNT(faults); i++)
        sigaction(faults[i].number, &action, NULL);
}

/* --- verdicts --- */

void tester_context(tester *t, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(t->context, sizeof t->context, format, list);
    va_end(list);
}

void tester_fail(tester *t, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(t->message, sizeof t->message, format, list);
    va_end(list);
    if (!t->is_guarded) { /* a client called this outside its check */
        fprintf(stderr, "check_kernels: %s: %s\n", t->client, t->message);
        exit(EXIT_FAILED);
    }
    t->is_guarded = false;
    siglongjmp(t->escape, 1);
}

octavo_cpu_flags tester_flags(const tester *t) {
    return t->level->flags;
}

/* Remembers the function; false if it was there already. */
static bool is_new(tester *t, tester_function *function) {
    for (int i = 0; i < t->n_seen; i++) {
        if (function && t->seen[i].function == function && strcmp(t->seen[i].name, t->name) == 0)
            return false;
    }
    if (t->n_seen == TESTER_MAX_FUNCTIONS) {
        fprintf(stderr, "check_kernels: too many functions; raise TESTER_MAX_FUNCTIONS\n");
        exit(EXIT_FAILED);
    }
    tester_seen *seen = &t->seen[t->n_seen++];
    memcpy(seen->name, t->name, sizeof seen->name);
    seen->function = function;
    return true;
}

/* One run of a check; true if it passed. A function of its own since its frame is jumped back to.
 */
static bool run_once(tester *t, void (*check)(tester *t, const void *arg), const void *arg) {
    t->context[0] = '\0';
    t->message[0] = '\0';
    t->timing.is_running = false;
    tester_seed(t);
    if (sigsetjmp(t->escape, 1) != 0) {
        tester_drop(t);
        return false;
    }
    t->is_guarded = true;
    check(t, arg);
    tester_release(t);
    t->is_guarded = false;
    return true;
}

static bool run_both(tester *t, void (*check)(tester *t, const void *arg), const void *arg) {
    t->is_at_start = false;
    if (!run_once(t, check, arg)) return false;
    t->is_at_start = true;
    return run_once(t, check, arg);
}

void tester_check(tester *t, const char *name, tester_function *function,
                  void (*check)(tester *t, const void *arg), const void *arg) {
    snprintf(t->name, sizeof t->name, "%s/%s", t->client, name);
    if (t->filter && fnmatch(t->filter, t->name, 0) != 0) return;
    if (!is_new(t, function)) return;
    /* A benchmark needs the scalar times even where only a higher level was asked for. */
    bool is_baseline = t->is_bench && t->level->flags == 0;
    if (!t->is_reporting && !is_baseline) return;
    if (t->is_listing) {
        printf("%-12s %s\n", t->level->name, t->name);
        t->n_passed++;
        return;
    }
    bool passed = run_both(t, check, arg);
    if (!t->is_reporting && passed) return;
    if (passed) {
        t->n_passed++;
        if (!t->is_bench)
            printf("ok    %-12s %-32s seed %" PRIu64 "\n", t->level->name, t->name, t->seed);
        return;
    }
    t->n_failed++;
    printf("FAIL  %-12s %-32s %s%s%s%s\n", t->level->name, t->name, t->message,
           t->context[0] ? " (" : "", t->context, t->context[0] ? ")" : "");
    printf("      again: --isa %s --filter '%s' --seed %" PRIu64 "\n", t->level->name, t->name,
           t->seed);
    fflush(stdout);
}

/* --- program --- */

static const char usage[] =
    "usage: check_kernels [--isa LEVEL] [--filter GLOB] [--seed N] [--list] [--bench] [--csv "
    "FILE]\n"
    "  --isa LEVEL    only functions that are new at this level; exit 77 if the machine lacks it\n"
    "  --filter GLOB  only functions whose name (family/function) matches\n"
    "  --seed N       repeat a run's random data\n"
    "  --list         names, nothing is run\n"
    "  --bench        time every version after testing it\n"
    "  --csv FILE     write the times there too\n";

static int complain(const char *what, const char *which) {
    fprintf(stderr, "check_kernels: %s: %s\n%s", what, which, usage);
    return EXIT_USAGE;
}

/* 0 to go on, else an exit status plus one. */
static int parse_options(tester *t, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(option, "--list") == 0) {
            t->is_listing = true;
        } else if (strcmp(option, "--bench") == 0) {
            t->is_bench = true;
        } else if (strcmp(option, "--help") == 0) {
            fputs(usage, stdout);
            return EXIT_PASSED + 1;
        } else if (!value) {
            return complain("an option that does not exist or lacks its value", option) + 1;
        } else if (strcmp(option, "--isa") == 0) {
            t->isa = argv[++i];
        } else if (strcmp(option, "--filter") == 0) {
            t->filter = argv[++i];
        } else if (strcmp(option, "--seed") == 0) {
            char *end = NULL;
            t->seed = strtoull(argv[++i], &end, 0);
            if (*end != '\0') return complain("not a number", value) + 1;
        } else if (strcmp(option, "--csv") == 0) {
            t->csv = fopen(argv[++i], "w");
            if (!t->csv) return complain("cannot write", value) + 1;
            fprintf(t->csv, "name,level,label,ns,ratio,bytes_per_s,ops_per_s,roofline_share\n");
        } else {
            return complain("no such option", option) + 1;
        }
    }
    return 0;
}

/* What this program can run here: the processor's flags, or with them what it emulates. */
static octavo_cpu_flags usable_flags(void) {
    octavo_cpu_flags flags = octavo_cpu_detect();
#ifdef OCTAVO_EMULATE_AVX512
    if (flags & OCTAVO_CPU_AVX2)
        flags |= OCTAVO_CPU_AVX512 | OCTAVO_CPU_AVX512_VNNI | OCTAVO_CPU_AVX512_VBMI |
                 OCTAVO_CPU_AVX512_BF16;
#endif
    return flags;
}

static void climb(tester *t, octavo_cpu_flags usable, const tester_client *clients, int n_clients) {
    size_t n_levels = 0;
    const octavo_cpu_level *levels = octavo_cpu_levels(&n_levels);
    for (size_t l = 0; l < n_levels; l++) {
        bool is_wanted = !t->isa || strcmp(t->isa, levels[l].name) == 0;
        if ((levels[l].flags & usable) != levels[l].flags) {
            if (is_wanted) {
                printf("skip  %-12s not on this machine\n", levels[l].name);
                t->n_skipped++;
            }
            continue;
        }
        t->level = &levels[l];
        t->is_reporting = is_wanted;
        for (int c = 0; c < n_clients; c++) {
            t->client = clients[c].name;
            clients[c].run(t);
        }
        if (t->isa && is_wanted) return;
    }
}

static bool is_level(const char *name) {
    size_t n_levels = 0;
    const octavo_cpu_level *levels = octavo_cpu_levels(&n_levels);
    for (size_t l = 0; l < n_levels; l++)
        if (strcmp(levels[l].name, name) == 0) return true;
    return false;
}

int tester_main(int argc, char **argv, const tester_client *clients, int n_clients) {
    static tester state; /* too large for the stack */
    tester *t = &state;
    *t = (tester){0};
    t->seed = (uint64_t)octavo_clock_ns() % 1000000007u;
    int stop = parse_options(t, argc, argv);
    if (stop) return stop - 1;
    if (t->isa && !is_level(t->isa)) return complain("no such level", t->isa);

    setvbuf(stdout, NULL, _IOLBF, 0); /* what was running when something hangs */
    running = t;
    catch_faults();
    octavo_cpu_flags usable = usable_flags();
    if (t->is_bench && !t->is_listing) tester_measure_roofline(t, usable);
    climb(t, usable, clients, n_clients);
    if (t->csv) fclose(t->csv);
    if (!t->is_listing)
        printf("%d passed, %d failed, %d skipped\n", t->n_passed, t->n_failed, t->n_skipped);
    if (t->n_failed > 0) return EXIT_FAILED;
    return t->n_passed > 0 ? EXIT_PASSED : EXIT_SKIPPED;
}
