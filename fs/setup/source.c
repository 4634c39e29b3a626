/* SPDX-License-Identifier: MIT */
#include "setup/source.h"

#include "lockcore.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- SERVERS ---- */

static bool valid_port(const char *text, size_t len)
{
	size_t digits = strspn(text, "0123456789");
	long port = digits == len && len > 0 && len <= 5 ? strtol(text, NULL, 10) : 0;

	return port >= 1 && port <= 65535;
}

static bool valid_host(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] <= ' ' || strchr("[]@\\\x7f", text[i]))
			return false;
	return len > 0;
}

/* One of SERVERS: host, host:port, [v6], [v6]:port. */
static bool valid_server(const char *text, size_t len)
{
	bool v6 = len > 0 && text[0] == '[';
	const char *end = memchr(text, v6 ? ']' : ':', len);
	size_t rest;

	if (!end)
		return !v6 && valid_host(text, len);
	if (!valid_host(text + v6, (size_t)(end - text) - v6))
		return false;
	end += v6;
	rest = len - (size_t)(end - text);
	return (v6 && rest == 0) || (*end == ':' && valid_port(end + 1, rest - 1));
}

static bool valid_servers(const char *text)
{
	for (;;) {
		size_t len = strcspn(text, ",");

		if (!valid_server(text, len))
			return false;
		if (text[len] == '\0')
			return true;
		text += len + 1;
	}
}

/* One of them is an IPv6 address that stands bare. */
static bool has_bare_v6(const char *servers)
{
	while (*servers) {
		size_t len = strcspn(servers, ",");
		const char *colon = memchr(servers, ':', len);

		if (strspn(servers, "0123456789abcdefABCDEF:.") == len && colon &&
		    memchr(colon + 1, ':', len - (size_t)(colon + 1 - servers)))
			return true;
		servers += len + (servers[len] != '\0');
	}
	return false;
}

/* The source begins with a scheme, such as zk://zk1:2181. */
static bool has_scheme(const char *servers, const char *source)
{
	size_t n = strlen(servers);

	return n > 0 && servers[n - 1] == ':' && strncmp(source + n, "//", 2) == 0;
}

const char *servers_wrong(const char *servers, const char *source, const char *mountpoint)
{
	if (*servers && valid_servers(servers))
		return NULL;
	if (!*source)
		return "it is empty";
	if (!*servers && mountpoint && *mountpoint != '/')
		return "SERVERS[/ROOT] comes first, then MOUNTPOINT";
	if (!*servers)
		return "ROOT stands behind the servers, such as zk1:2181/locks";
	if (has_bare_v6(servers))
		return "write IPv6 in brackets, such as [::1]:2181";
	if (has_scheme(servers, source))
		return "nothing like zk:// stands in front";
	if (strstr(servers, ", "))
		return "no blank stands behind a comma";
	return "must be host[:port][,host[:port]...]";
}

/* ---- ROOT ---- */

const char *root_wrong(const char *root)
{
	if (root[strlen(root) - 1] == ' ')
		return "it ends with a blank";
	/* ZooKeeper allows commas. But hosts that write the root behind each server would get a
	 * tree for each order of the servers. */
	if (strchr(root, ','))
		return "ROOT stands once, behind the last server, such as zk1:2181,zk2:2181/locks";
	return lc_check_root(root);
}
