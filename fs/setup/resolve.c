/* SPDX-License-Identifier: MIT
 *
 * resolve.c - see resolve.h. For each name a process writes one line: the kind of the answer, the
 * number of the name, a blank, a text.
 */
#include "setup/resolve.h"

#include "host/helper.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static_assert(RESOLVER_LINE <= PIPE_BUF, "lines of several processes would mix");

/* ---- the children ---- */

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

/* A pipe takes it as a whole, whoever else writes. */
static void tell_line(int fd, enum resolver_answer answer, size_t name, const char *text)
{
	char line[RESOLVER_LINE];
	int len = snprintf(line, sizeof(line) - 1, "%c%zu %s", answer, name, text);

	if ((size_t)len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len] = '\n';
	(void)!write(fd, line, (size_t)len + 1);
}

/* More addresses than a line has room for are more than anybody has servers. */
static void list_addresses(const struct addrinfo *ai, const char *port, char *ret_list, size_t size)
{
	size_t len = 0;

	*ret_list = '\0';
	for (; ai; ai = ai->ai_next) {
		char number[NI_MAXHOST];
		int n;

		if (getnameinfo(ai->ai_addr, ai->ai_addrlen, number, sizeof(number), NULL, 0,
		                NI_NUMERICHOST) != 0)
			continue;
		n = snprintf(ret_list + len, size - len,
		             ai->ai_family == AF_INET6 ? "%s[%s]:%s" : "%s%s:%s", len ? "," : "",
		             number, port);
		if (n < 0 || (size_t)n >= size - len) {
			ret_list[len] = '\0';
			return;
		}
		len += (size_t)n;
	}
}

/* Whether that is an answer; otherwise the name service may know an address later. */
static bool is_final(int error)
{
	return error == EAI_NONAME || error == EAI_NODATA || error == EAI_ADDRFAMILY;
}

static void look_up(int fd, size_t name, char *server, const void *ctx)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list;
	char text[RESOLVER_LINE - 32];
	const char *port;
	char *host;
	int r;

	(void)ctx;
	split_server(server, &host, &port);
	r = getaddrinfo(host, port, &hints, &list);
	if (r != 0) {
		snprintf(text, sizeof(text), "%s: %s", host, gai_strerror(r));
		tell_line(fd, is_final(r) ? RESOLVER_NONE : RESOLVER_UNKNOWN, name, text);
		return;
	}
	list_addresses(list, port, text, sizeof(text));
	freeaddrinfo(list);
	tell_line(fd, RESOLVER_FOUND, name, text);
}

/* ---- the daemon ---- */

void resolver_init(struct resolver *resolver)
{
	resolver->fd = -1;
	resolver->len = 0;
}

void resolver_stop(struct resolver *resolver)
{
	if (resolver->fd >= 0)
		close(resolver->fd);
	resolver_init(resolver);
}

int resolver_begin(struct resolver *resolver, const char *names)
{
	resolver_stop(resolver);
	return helper_start(NULL, names, look_up, NULL, &resolver->fd);
}

static void hear_line(char *line, resolver_heard_fn *heard, void *ctx)
{
	char *text;
	size_t name = strtoul(line + (*line != '\0'), &text, 10);

	if (*text == ' ')
		heard(ctx, (enum resolver_answer) * line, name, text + 1);
}

/* The lines that are complete. */
static void hear_lines(struct resolver *resolver, resolver_heard_fn *heard, void *ctx)
{
	char *line = resolver->text, *end;

	resolver->text[resolver->len] = '\0';
	while ((end = strchr(line, '\n')) != NULL) {
		*end = '\0';
		hear_line(line, heard, ctx);
		line = end + 1;
	}
	resolver->len -= (size_t)(line - resolver->text);
	memmove(resolver->text, line, resolver->len);
}

bool resolver_read(struct resolver *resolver, resolver_heard_fn *heard, void *ctx)
{
	ssize_t n;

	do {
		n = read(resolver->fd, resolver->text + resolver->len,
		         RESOLVER_LINE - resolver->len);
		resolver->len += n > 0 ? (size_t)n : 0;
		hear_lines(resolver, heard, ctx);
	} while (n > 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	resolver_stop(resolver);
	return true;
}

bool resolve_are_numbers(const char *names)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *list;
	char *own = strdup(names), *rest = own, *server;
	bool numbers = own;

	while (numbers && (server = strsep(&rest, ",")) != NULL) {
		const char *port;
		char *host;

		split_server(server, &host, &port);
		numbers = getaddrinfo(host, port, &hints, &list) == 0;
		if (numbers)
			freeaddrinfo(list);
	}
	free(own);
	return numbers;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "a,b,,c," and so on: to the addresses in it; returns how many. */
static size_t split_list(char *list, char **ret_addresses)
{
	size_t count = 0;
	char *address;

	while ((address = strsep(&list, ",")) != NULL)
		if (*address)
			ret_addresses[count++] = address;
	return count;
}

size_t resolve_count(const char *list)
{
	size_t count = 1;

	for (; *list; list++)
		count += *list == ',';
	return count;
}

char *resolve_join(const char *const *lists, size_t count)
{
	size_t len = 1, found = 0;
	char *text, *all, *end, **each;

	for (size_t i = 0; i < count; i++)
		len += lists[i] ? strlen(lists[i]) + 1 : 0;
	text = malloc(len);
	all = malloc(len);
	each = calloc(len, sizeof(*each));
	if (text && all && each) {
		end = text;
		for (size_t i = 0; i < count; i++)
			end += lists[i] ? sprintf(end, "%s,", lists[i]) : 0;
		*end = '\0';
		found = split_list(text, each);
		qsort(each, found, sizeof(*each), compare_texts);
		end = all;
		for (size_t i = 0; i < found; i++)
			if (i == 0 || strcmp(each[i], each[i - 1]) != 0)
				end += sprintf(end, "%s%s", i ? "," : "", each[i]);
	}
	free(each);
	free(text);
	if (found > 0)
		return all;
	free(all);
	return NULL;
}
