/* SPDX-License-Identifier: Apache-2.0 */
#include "swap/signals.h"
#include "omnipilot/swap.h"
#include <signal.h>
#include <string.h>

/* Only when the program asks for it: a library changes no handler behind its host's back. */
void opi_swap_ignore_sigpipe(void)
{
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &a, NULL);
}

/* A process that hangs keeps its devices and its memory, and the launcher waits for it. */
void opi__end_process(int64_t pid)
{
    if (pid > 1)
        kill((pid_t)pid, SIGKILL);
}
