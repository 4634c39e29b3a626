/* SPDX-License-Identifier: MIT
 *
 * resolve.c - see resolve.h. The child writes one line for each address, and one that
 * begins with a blank for each name that has none.
 */
#include "resolve.h"

#include "signals.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The size of the child's answer: more addresses than anybody has servers. */
#define TEXT_MAX 65536

/* ---- the child ---- */

/* host, host:port, [v6], [v6]:port */
static void split_server(char *server, char **ret_host, const char **ret_port)
{
	char *end;

	*ret_port = RESOLVE_DEFAULT_PORT;
	*ret_host = server;
	if (*server == '[') {
		*ret_host = server + 1;
		end = strchr(server, ']');
		assert(end); /* options.c has checked the text */
		*end++ = '\0';
	} else {
		end = server + strcspn(server, ":");
	}
	if (*end == ':') {
		*end = '\0';
		*ret_port = end + 1;
	}
}

static void print_addresses(FILE *out, char *server)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list;
	const char *port;
	char *host;
	int r;

	split_server(server, &host, &port);
	r = getaddrinfo(host, port, &hints, &list);
	if (r != 0) {
		fprintf(out, " %s: %s\n", host, gai_strerror(r));
		return;
	}
	for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		char number[NI_MAXHOST];

		if (getnameinfo(ai->ai_addr, ai->ai_addrlen, number, sizeof(number), NULL, 0,
		                NI_NUMERICHOST) == 0)
			fprintf(out, ai->ai_family == AF_INET6 ? "[%s]:%s\n" : "%s:%s\n", number,
			        port);
	}
	freeaddrinfo(list);
}

static void run_resolver(int fd, const char *servers)
{
	char *rest = strdup(servers), *server;
	FILE *out;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_DFL);
	signals_unblock_all();
	/* A copy of the mount's device, or of a connection, would keep it alive. */
	if (fd > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, (unsigned)fd - 1, 0);
	close_range((unsigned)fd + 1, ~0U, 0);
	out = fdopen(fd, "w");
	if (!out || !rest)
		_exit(1);
	while ((server = strsep(&rest, ",")) != NULL)
		print_addresses(out, server);
	_exit(fflush(out) == 0 ? 0 : 1);
}

/* ---- the daemon ---- */

void resolver_init(struct resolver *resolver)
{
	*resolver = (struct resolver){.fd = -1};
}

void resolver_stop(struct resolver *resolver)
{
	if (resolver->fd < 0)
		return;
	close(resolver->fd);
	free(resolver->text);
	resolver_init(resolver);
}

int resolver_begin(struct resolver *resolver, const char *servers)
{
	int fds[2], error;
	pid_t pid;

	resolver_stop(resolver);
	resolver->text = malloc(TEXT_MAX + 1);
	if (!resolver->text)
		return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC) < 0) {
		error = errno;
		free(resolver->text);
		return -error;
	}
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		run_resolver(fds[1], servers);
	}
	error = errno;
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		free(resolver->text);
		return -error;
	}
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	resolver->fd = fds[0];
	return 0;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines that are addresses, each once, in an order that says nothing. */
static char *join_addresses(char *text, char **ret_problem)
{
	char **lines = malloc(TEXT_MAX / 2 * sizeof(*lines)), *line;
	char *all = malloc(TEXT_MAX + 1), *end = all;
	size_t count = 0;

	while (lines && all && (line = strsep(&text, "\n")) != NULL) {
		if (*line == ' ' && !*ret_problem)
			*ret_problem = strdup(line + 1);
		else if (*line && *line != ' ')
			lines[count++] = line;
	}
	if (count > 0)
		qsort(lines, count, sizeof(*lines), compare_texts);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || strcmp(lines[i], lines[i - 1]) != 0)
			end += sprintf(end, "%s%s", end == all ? "" : ",", lines[i]);
	free(lines);
	if (end != all)
		return all;
	free(all);
	return NULL;
}

bool resolver_read(struct resolver *resolver, char **ret_addresses, char **ret_problem)
{
	ssize_t n;

	do {
		n = read(resolver->fd, resolver->text + resolver->len, TEXT_MAX - resolver->len);
		resolver->len += n > 0 ? (size_t)n : 0;
	} while (n > 0 && resolver->len < TEXT_MAX);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	resolver->text[resolver->len] = '\0';
	*ret_problem = NULL;
	*ret_addresses = join_addresses(resolver->text, ret_problem);
	resolver_stop(resolver);
	return true;
}

static bool has_address(const char *list, const char *address, size_t len)
{
	for (;;) {
		size_t n = strcspn(list, ",");

		if (n == len && memcmp(list, address, len) == 0)
			return true;
		if (list[n] == '\0')
			return false;
		list += n + 1;
	}
}

bool resolve_adds(const char *now, const char *before)
{
	for (;;) {
		size_t n = strcspn(now, ",");

		if (!has_address(before, now, n))
			return true;
		if (now[n] == '\0')
			return false;
		now += n + 1;
	}
}
