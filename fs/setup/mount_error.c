/* SPDX-License-Identifier: MIT */
#include "setup/mount_error.h"

#include "host/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* With what each name and each server has answered. */
static void log_unreachable(const struct options *options, const struct servers *servers)
{
	char problems[1024];

	servers_problems(servers, problems, sizeof(problems));
	if (!servers->addresses && servers->error)
		log_line(LC_ERROR, "the servers cannot be looked up: %s", strerror(servers->error));
	else if (!servers->addresses)
		log_line(LC_ERROR, "none of the servers in '%s' has an address%s%s",
		         options->servers, *problems ? ": " : "", problems);
	else
		log_line(LC_ERROR,
		         "no ZooKeeper server answered at %s within %" PRId64 " ms%s%s%s%s",
		         options->servers, options_start_timeout_us(options) / 1000,
		         servers->tried ? ": " : "", servers->tried ? servers->tried : "",
		         *problems ? "; " : "", problems);
}

void mount_error_log_obstacle(const struct options *options, const char *obstacle)
{
	log_line(LC_ERROR, "not mounted within %" PRId64 " ms: %s",
	         options_start_timeout_us(options) / 1000, obstacle);
}

void mount_error_log(const struct options *options, const struct servers *servers, int error)
{
	const char *root = options->root;

	switch (-error) {
	case EADDRNOTAVAIL:
	case ETIMEDOUT:
		log_unreachable(options, servers);
		return;
	case ENOENT:
		log_line(LC_ERROR, "there is no %s in the ensemble; with -o mkroot it is made",
		         root);
		return;
	case ENOTDIR:
		log_line(LC_ERROR, "%s is an ephemeral node: it cannot hold locks", root);
		return;
	case EACCES:
		log_line(LC_ERROR, "the ensemble does not let us write below %s%s", root,
		         options->credentials ? " with these credentials"
		                              : ", and no credentials are given");
		return;
	case EKEYREJECTED:
		log_line(LC_ERROR, options->credentials
		                           ? "the ensemble does not accept these credentials"
		                           : "the ensemble wants credentials, and none are given");
		return;
	case EINTR:
		log_line(LC_ERROR, "stopped before there was a session");
		return;
	case ERANGE:
		return; /* reported with its numbers */
	default:
		log_line(LC_ERROR, "cannot connect: %s", strerror(-error));
	}
}
