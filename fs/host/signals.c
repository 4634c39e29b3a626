/* SPDX-License-Identifier: MIT */
#include "host/signals.h"

#include <stddef.h>
#include <sys/signalfd.h>

static sigset_t signal_set(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGCHLD);
	return set;
}

void signals_ignore_others(void)
{
	static const int others[] = {SIGUSR1, SIGQUIT, SIGALRM,   SIGVTALRM, SIGPROF,
	                             SIGIO,   SIGPWR,  SIGSTKFLT, SIGXCPU,   SIGXFSZ};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		signal(others[i], SIG_IGN);
	/* A process inherits what its parent ignores. While SIGCHLD is ignored, the kernel tells
	 * nobody that a child has ended. */
	signal(SIGCHLD, SIG_DFL);
}

void signals_ignore_leaving(void)
{
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

void signals_block(sigset_t *ret_before)
{
	sigset_t set = signal_set();

	(void)sigprocmask(SIG_BLOCK, &set, ret_before);
}

int signals_open(void)
{
	sigset_t set = signal_set();

	signals_block(NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void signals_unblock_all(void)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}
