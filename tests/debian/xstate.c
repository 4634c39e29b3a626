/* SPDX-License-Identifier: MIT
 *
 * xstate.c - lets a user-mode Linux of 6.1 or 6.12 run on processors with AMX. It keeps 2,696
 * bytes of a process's registers, up to PKRU; such processors have more, and the machine's Linux
 * takes all of them at once or none. The bytes behind these stay as they are: no program in there
 * uses AMX. Preloaded into the program `linux.uml`.
 */
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#define XSTATE_MOST 65536

typedef long (*ptrace_call)(int request, int pid, void *address, void *data);

static long set_all(ptrace_call next, int pid, const struct iovec *part)
{
	static unsigned char state[XSTATE_MOST];
	struct iovec all = {.iov_base = state, .iov_len = sizeof(state)};

	if (next(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &all) < 0)
		return -1;
	if (part->iov_len < all.iov_len)
		memcpy(state, part->iov_base, part->iov_len);
	else
		all = *part;
	return next(PTRACE_SETREGSET, pid, (void *)NT_X86_XSTATE, &all);
}

long ptrace(enum __ptrace_request request, ...)
{
	static ptrace_call next;
	va_list args;
	void *address, *data;
	int pid;

	va_start(args, request);
	pid = va_arg(args, int);
	address = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	if (!next)
		next = (ptrace_call)dlsym(RTLD_NEXT, "ptrace");
	if (request == PTRACE_SETREGSET && address == (void *)NT_X86_XSTATE)
		return set_all(next, pid, data);
	return next((int)request, pid, address, data);
}
