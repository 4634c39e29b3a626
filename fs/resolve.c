/* SPDX-License-Identifier: MIT
 *
 * resolve.c - see resolve.h.
 */
#include "resolve.h"

#include "log.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* host, host:port, [v6], [v6]:port: the text was checked by options.c. */
static void split(char *server, char **ret_host, const char **ret_port)
{
	char *end;

	*ret_port = RESOLVE_DEFAULT_PORT;
	*ret_host = server;
	if (*server == '[') {
		*ret_host = server + 1;
		end = strchr(server, ']');
		*end++ = '\0';
	} else {
		end = server + strcspn(server, ":");
	}
	if (*end == ':') {
		*end = '\0';
		*ret_port = end + 1;
	}
}

static void add_addresses(FILE *out, const char *server, bool *any)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list;
	char *copy = strdup(server), *host;
	const char *port;
	int r;

	if (!copy)
		return;
	split(copy, &host, &port);
	r = getaddrinfo(host, port, &hints, &list);
	if (r != 0) {
		log_line(LC_WARNING, "%s: %s", host, gai_strerror(r));
		free(copy);
		return;
	}
	for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		char number[NI_MAXHOST];

		if (getnameinfo(ai->ai_addr, ai->ai_addrlen, number, sizeof(number), NULL, 0,
		                NI_NUMERICHOST) != 0)
			continue;
		fprintf(out, ai->ai_family == AF_INET6 ? "%s[%s]:%s" : "%s%s:%s", *any ? "," : "",
		        number, port);
		*any = true;
	}
	freeaddrinfo(list);
	free(copy);
}

char *resolve_servers(const char *servers)
{
	char *addresses = NULL, *copy = strdup(servers), *rest = copy, *server;
	bool any = false;
	size_t len;
	FILE *out = open_memstream(&addresses, &len);

	if (!copy || !out) {
		log_line(LC_ERROR, "no memory");
		free(copy);
		return NULL;
	}
	while ((server = strsep(&rest, ",")) != NULL)
		add_addresses(out, server, &any);
	fclose(out);
	free(copy);
	if (any)
		return addresses;
	log_line(LC_ERROR, "none of the servers in '%s' has an address", servers);
	free(addresses);
	return NULL;
}
