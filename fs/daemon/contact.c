/* SPDX-License-Identifier: MIT */
#include "daemon/contact.h"

#include "guard/guardian.h"
#include "hold/audit.h"
#include "hold/hold.h"
#include "host/clock.h"
#include "host/log.h"
#include "host/memory.h"
#include "setup/ready.h"
#include "setup/servers.h"
#include "store/store.h"
#include "tree/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A shorter time without contact is a change to another server, or to another program here. */
#define SHORT_MS 1000
/* The time between two looks while nothing changes: systemd gets a line no more often. */
#define LOOK_US 1000000

static const char *plural(unsigned long count)
{
	return count == 1 ? "" : "s";
}

/* Locks that were lost, and those whose holders on_lost has stopped before. */
static unsigned long count_losses(const struct frontend *front, const struct lc_status *status)
{
	return status->counters.losses + front->holds->audit_log.stopped;
}

/* ---- the log ---- */

static int64_t away_ms(const struct contact *contact, const struct frontend *front)
{
	return contact->away_us < 0 ? 0 : (front->clock_us() - contact->away_us) / 1000;
}

static void say_back(const struct contact *contact, const struct frontend *front)
{
	int64_t ms = away_ms(contact, front);

	if (ms >= SHORT_MS)
		log_line(LC_NOTICE, "contact is back after %" PRId64 ".%d s", ms / 1000,
		         (int)(ms % 1000 / 100));
}

static void say_contact(struct contact *contact, const struct frontend *front,
                        const struct options *options, const struct lc_status *status)
{
	unsigned long losses = count_losses(front, status), lost = losses - contact->losses;

	if (contact->sessions == 0)
		log_line(LC_NOTICE,
		         "serves %s%s as %s: server %s, session 0x%" PRIx64 " of %" PRId64 " ms",
		         options->servers, options->root, lc_host(front->lc), status->server,
		         (uint64_t)status->session, status->session_timeout_us / 1000);
	else
		say_back(contact, front);
	if (contact->sessions != 0 && contact->sessions != status->sessions)
		log_line(LC_NOTICE, "a new session: %lu lock%s %s lost, %u waiter%s queue%s again",
		         lost, plural(lost), lost == 1 ? "was" : "were", status->waiters,
		         plural(status->waiters), status->waiters == 1 ? "s" : "");
	contact->sessions = status->sessions;
	contact->losses = losses;
}

static void say_over(struct contact *contact, const struct frontend *front)
{
	int64_t ms = away_ms(contact, front);

	contact->told_over = true;
	log_line(LC_WARNING,
	         "no contact for %" PRId64 ".%d s: the lease is over, and no lock is granted until "
	         "contact is back%s%s",
	         ms / 1000, (int)(ms % 1000 / 100), front->facts.servers->tried ? ": " : "",
	         front->facts.servers->tried ? front->facts.servers->tried : "");
}

static void follow(struct contact *contact, const struct frontend *front,
                   const struct options *options, const struct lc_status *status)
{
	bool is = status->state == LC_READY;

	/* The engine may have been ready since, for less than a turn: in a session that it left. */
	if (!is && contact->away_us < 0)
		contact->away_us = status->away_us;
	if (!is && status->lease_left_us == 0 && away_ms(contact, front) >= SHORT_MS &&
	    !contact->told_over && status->state != LC_UNUSABLE)
		say_over(contact, front);
	if (is && !contact->is) {
		say_contact(contact, front, options, status);
		contact->told_over = false;
		if (contact->since_ms == 0 || away_ms(contact, front) >= SHORT_MS)
			contact->since_ms = clock_read_ns(CLOCK_REALTIME) / 1000000;
	}
	if (is || status->elsewhere) /* after a reload it is not known at first */
		store_head(front->records.store)->elsewhere = status->elsewhere;
	contact->is = is;
	if (is)
		contact->away_us = -1;
}

/* ---- the line for systemd ---- */

static int write_contact(char text[CONTACT_MAX], const struct contact *contact,
                         const struct frontend *front, const struct lc_status *status)
{
	int64_t now_ms = clock_read_ns(CLOCK_REALTIME) / 1000000;
	char since[VIEW_TIME_MAX];

	if (guardian_fd(front->guardian) < 0 && front->guardian)
		return snprintf(text, CONTACT_MAX,
		                "NO LOCK IS GRANTED: on_lost has no guardian, see the log; restart "
		                "the mount");
	if (status->state == LC_UNUSABLE)
		return snprintf(text, CONTACT_MAX, "UNUSABLE: the log says why");
	if (status->state == LC_READY)
		return snprintf(text, CONTACT_MAX, "In contact with %s since %s", status->server,
		                view_time(since, contact->since_ms));
	return snprintf(text, CONTACT_MAX, "NO CONTACT since %s, %s",
	                view_time(since, now_ms - away_ms(contact, front)),
	                status->elsewhere   ? "the servers are of another ensemble: see the log"
	                : status->leaseless ? "and no lock is held"
	                : status->lease_left_us > 0 ? "locks are kept while the lease lasts"
	                                            : "and the lease is over");
}

static void write_line(char text[CONTACT_MAX], const struct contact *contact,
                       const struct frontend *front, const struct lc_status *status)
{
	int len = front->draining
	                  ? snprintf(text, CONTACT_MAX, "Shutting down, waiting for holders")
	                  : write_contact(text, contact, front, status);
	unsigned long losses = count_losses(front, status);

	snprintf(text + len, CONTACT_MAX - (size_t)len,
	         "; %u holder%s, %u waiter%s; %lu loss%s since the start", status->holders,
	         plural(status->holders), status->waiters, plural(status->waiters), losses,
	         losses == 1 ? "" : "es");
}

static void tell_systemd(struct contact *contact, const struct frontend *front,
                         const struct lc_status *status)
{
	char line[CONTACT_MAX];

	write_line(line, contact, front, status);
	if (strcmp(line, contact->told) == 0)
		return;
	strcpy(contact->told, line);
	ready_status(line);
}

void contact_tend(struct contact *contact, struct frontend *front, const struct options *options)
{
	bool looks = front->clock_us() - contact->looked_us >= LOOK_US;
	struct lc_status status;

	if (!looks && contact->is && lc_ready(front->lc))
		return;
	lc_status(front->lc, &status);
	follow(contact, front, options, &status);
	if (!looks)
		return;
	contact->looked_us = front->clock_us();
	memory_tend(status.waiters + status.leaving, &contact->waiters);
	/* Without contact, or a lease, this outage may have caused losses. */
	if (contact->is && status.lease_left_us > 0)
		contact->losses = count_losses(front, &status);
	if (ready_tells())
		tell_systemd(contact, front, &status);
}

/* ---- the end ---- */

/* Warns of lost locks whose files are still open. */
static void say_lost(const struct frontend *front, const struct lc_status *status)
{
	const struct hold *first = NULL;
	unsigned lost = holds_lost(front, &first);

	if (lost > 0)
		audit_left_open(&first->audit, lost, status->losing > 0);
}

void contact_leaves(struct frontend *front)
{
	struct lc_status status;

	lc_status(front->lc, &status);
	log_line(LC_NOTICE,
	         "shutting down: no new requests; waiting for %u holder%s, %u waiter%s refused",
	         status.holders, status.holders == 1 ? "" : "s", status.waiters,
	         status.waiters == 1 ? " is" : "s are");
	say_lost(front, &status);
}

/* ---- why there is no mount ---- */

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

void contact_log_obstacle(const struct options *options, const char *obstacle)
{
	log_line(LC_ERROR, "not mounted within %" PRId64 " ms: %s",
	         options_start_timeout_us(options) / 1000, obstacle);
}

void contact_log_error(const struct options *options, const struct servers *servers, int error)
{
	const char *root = options->root;

	switch (-error) {
	case EADDRNOTAVAIL:
	case ETIMEDOUT:
		log_unreachable(options, servers);
		return;
	case ENOENT:
		log_line(
			LC_ERROR,
			"there is no %s in the ensemble: is it misspelt? For a new tree: -o mkroot",
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

/* ---- over a reload ---- */

void contact_save_load(struct codec *codec, struct contact *contact)
{
	CODEC_64(codec, contact->sessions);
	CODEC_64(codec, contact->losses);
}
