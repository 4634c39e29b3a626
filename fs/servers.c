/* SPDX-License-Identifier: MIT
 *
 * servers.c - see servers.h.
 */
#include "servers.h"

#include "lockcore.h"
#include "log.h"

#include <stdlib.h>
#include <string.h>

/* At the start, between two looks at names of which none has an address. */
#define AGAIN_US 1000000

void servers_init(struct servers *servers, const char *names, int64_t patience_us)
{
	*servers = (struct servers){.names = names, .patience_us = patience_us};
	resolver_init(&servers->resolver);
}

void servers_finish(struct servers *servers)
{
	resolver_stop(&servers->resolver);
	free(servers->addresses);
	free(servers->problem);
}

int64_t servers_prepare(const struct servers *servers, int64_t now_us, struct pollfd *ret_pollfd)
{
	*ret_pollfd = (struct pollfd){.fd = servers->resolver.fd, .events = POLLIN};
	return servers->next_us == INT64_MAX ? INT64_MAX : servers->next_us - now_us;
}

static void take_addresses(struct servers *servers, char *addresses)
{
	if (!servers->addresses) {
		if (servers->problem)
			log_line(LC_WARNING, "%s", servers->problem);
	} else if (!resolve_adds(addresses, servers->addresses)) {
		free(addresses);
		return;
	} else if (servers->moved(servers->ctx, addresses) < 0) {
		free(addresses);
		return;
	} else {
		log_line(LC_NOTICE, "the servers have new addresses: %s", addresses);
	}
	free(servers->addresses);
	servers->addresses = addresses;
}

static void look_up_names(struct servers *servers)
{
	char *addresses;

	free(servers->problem);
	servers->problem = NULL;
	if (!resolver_read(&servers->resolver, &addresses, &servers->problem))
		return;
	if (addresses)
		take_addresses(servers, addresses);
	else
		servers->failures++;
}

void servers_process(struct servers *servers, const struct lc *lc, int64_t now_us, short revents)
{
	if (revents)
		look_up_names(servers);
	if (lc && lc_ready(lc)) {
		resolver_stop(&servers->resolver);
		servers->next_us = INT64_MAX;
		return;
	}
	if (servers->next_us == INT64_MAX)
		servers->next_us = now_us + servers->patience_us;
	if (now_us < servers->next_us)
		return;
	servers->next_us = now_us + (servers->addresses ? servers->patience_us : AGAIN_US);
	if (servers->resolver.fd < 0 && resolver_begin(&servers->resolver, servers->names) < 0)
		servers->failures++;
}

void servers_carry(struct carry *carry, struct servers *servers)
{
	const char *addresses = carry_text(carry, servers->addresses);

	if (!carry->loads)
		return;
	servers->addresses = addresses ? strdup(addresses) : NULL;
	if (!servers->addresses)
		carry->refuse("the state has no servers");
	servers->next_us = INT64_MAX;
}
