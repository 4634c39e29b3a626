/* SPDX-License-Identifier: MIT
 *
 * audit.c - see audit.h.
 *
 * Each text of a user is one word in these lines (row.h), so that no name of a lock or of a program
 * can look like another part of the line; the reason comes last.
 */
#include "hold/audit.h"

#include "host/clock.h"
#include "host/log.h"
#include "host/proc.h"
#include "host/process.h"
#include "host/row.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether the process of a shorter hold was about to end is not looked at: it would cost more
 * than the hold. */
#define LOOK_US 20000

/* A word, with a byte 0 behind it. */
struct word {
	char text[ROW_WORD_MAX(LC_PATH_MAX) + 1];
};

static const char *make_word(struct word *word, const char *text)
{
	return row_only(word->text, sizeof(word->text), text);
}

/* "pid 42 (deploy.sh) uid 0" */
struct who_text {
	char text[ROW_WORD_MAX(LC_COMMAND_MAX) + 64];
};

static const char *name_taker(struct who_text *who, const struct process *caller, uid_t uid)
{
	struct word command;

	if (caller->pid > 0)
		snprintf(who->text, sizeof(who->text), "pid %d (%.64s) uid %u", (int)caller->pid,
		         make_word(&command, caller->command), (unsigned)uid);
	else
		snprintf(who->text, sizeof(who->text), "a process that is not visible, uid %u",
		         (unsigned)uid);
	return who->text;
}

static const char *token_text(char buffer[24], int64_t token)
{
	if (token == 0)
		return "-";
	snprintf(buffer, 24, "%" PRId64, token);
	return buffer;
}

/* Rounded: when the time of `most=` is over, some microseconds are missing here. */
static int64_t tenths(int64_t us)
{
	return us > 0 ? (us + 50000) / 100000 : 0;
}

/* Seconds with one digit, as two arguments of a format. */
#define SECONDS_FORMAT "%" PRId64 ".%d s"
#define SECONDS(us) tenths(us) / 10, (int)(tenths(us) % 10)

void audit_begin(struct audit *audit, struct audit_log *log, const char *lock, enum lc_mode mode,
                 const struct process *caller, uid_t uid)
{
	*audit = (struct audit){
		.log = log,
		.lock = lock,
		.caller = *caller,
		.uid = uid,
		.mode = mode,
		.asked_us = log->clock_us(),
	};
}

void audit_evicted(struct audit *audit, const char *by)
{
	free(audit->by);
	audit->by = strdup(by);
}

/* ---- refused ---- */

/* Whether the log tells such an answer on request only. */
static bool is_everyday(int error)
{
	return error == -EAGAIN || error == -ETIMEDOUT || error == -EINTR;
}

/* Why a lock is not to be had: a phrase without a capital letter or a full stop. `error`: negative,
 * as of lc_taken_fn and of open(2) of a lock file. */
static const char *refusal_text(int error)
{
	switch (-error) {
	case EAGAIN:
		return "somebody else has the lock or waits for it";
	case ETIMEDOUT:
		return "somebody else had the lock until the time limit was over";
	case EINTR:
		return "a signal ended the wait";
	case ENOENT:
		return "the lock was removed";
	case ECANCELED:
		return "its place in the queue was taken away";
	case EDEADLK:
		return "deadlock: somebody else waits for the shared lock that this one has";
	case EHOSTUNREACH:
		return "the ensemble did not answer in time";
	case ESHUTDOWN:
		return "this mount is shutting down, or unusable";
	case ENOLCK:
		return "too many requests on this mount, more holders than on_lost could stop, or "
		       "a quota of the ensemble";
	case EACCES:
		return "the ensemble does not let this mount make entries there";
	case EPROTO:
		return "the queue has an entry of a client that does not wait for "
		       "zklockfs";
	case EBUSY:
		return "this user has too many requests at a time";
	case ENFILE:
		return "this user, or all users together, have too many files open here";
	case ENOMEM:
		return "the daemon has no memory";
	case ENAMETOOLONG:
		return "the path of the lock is too long";
	default:
		return strerror(-error);
	}
}

static void log_refusal(const struct audit_log *log, const char *lock, const struct process *caller,
                        uid_t uid, int error, int64_t waited_us, const char *why, const char *by)
{
	struct who_text who;
	struct word word;
	char line[sizeof(word) + 512];

	make_word(&word, lock);
	name_taker(&who, caller, uid);
	snprintf(line, sizeof(line), "%s: refused to %s after " SECONDS_FORMAT ": %s%s%s (%s)",
	         word.text, who.text, SECONDS(waited_us), why ? why : refusal_text(error),
	         by ? " by " : "", by ? by : "", strerrorname_np(-error));
	if (log->log_takes)
		log_wanted("%s", line);
	else
		log_line_of(uid, is_everyday(error) ? LC_INFO : LC_NOTICE, "%s", line);
}

void audit_refused(const struct audit *audit, int error)
{
	log_refusal(audit->log, audit->lock, &audit->caller, audit->uid, error,
	            audit->log->clock_us() - audit->asked_us, NULL,
	            error == -ECANCELED ? audit->by : NULL);
}

void audit_refuse(const struct audit_log *log, const char *lock, const struct process *caller,
                  uid_t uid, int error, const char *why)
{
	log_refusal(log, lock, caller, uid, error, 0, why, NULL);
}

/* ---- granted ---- */

void audit_granted(struct audit *audit, const struct lc_taker *taker)
{
	struct audit_log *log = audit->log;
	struct who_text who;
	struct word word;
	char token[24];

	audit->granted_us = log->clock_us();
	audit->since_ms = clock_read_ns(CLOCK_REALTIME) / 1000000;
	audit->end = HISTORY_CLOSED;
	if (!log->log_takes)
		return;
	log_wanted("%s: granted to %s after " SECONDS_FORMAT ", token %s",
	           make_word(&word, audit->lock), name_taker(&who, &audit->caller, audit->uid),
	           SECONDS(audit->granted_us - audit->asked_us),
	           token_text(token, lc_token(taker)));
}

void audit_after(struct audit *audit, const struct lc_ahead *ahead)
{
	struct who_text who;
	struct word lock, command, host;
	char waited[32];

	make_word(&command, ahead->command);
	make_word(&host, ahead->host);
	free(audit->after);
	if (asprintf(&audit->after,
	             "granted after the session of pid %d (%.64s) on %.64s had ended",
	             (int)ahead->pid, command.text, host.text) < 0)
		audit->after = NULL;
	snprintf(waited, sizeof(waited), SECONDS_FORMAT,
	         SECONDS(audit->granted_us - audit->asked_us));
	log_line_of(
		audit->uid, LC_NOTICE,
		"%s: granted to %s after %s, when the session of %s, pid %d (%.64s), had ended; "
		"its reason: %s",
		make_word(&lock, audit->lock), name_taker(&who, &audit->caller, audit->uid), waited,
		host.text, (int)ahead->pid, command.text, *ahead->reason ? ahead->reason : "-");
}

/* ---- the end of a hold ---- */

static void log_end(const struct audit *audit, const struct history_hold *hold)
{
	const struct audit_log *log = audit->log;
	struct who_text who;
	struct word word;
	char buffer[24];
	const char *token = token_text(buffer, hold->token);

	if (!log->log_takes && !log->audit)
		return;
	make_word(&word, audit->lock);
	name_taker(&who, &audit->caller, audit->uid);
	if (log->log_takes && (hold->end == HISTORY_CLOSED || hold->end == HISTORY_EXITED ||
	                       hold->end == HISTORY_STOPPED))
		log_wanted("%s: released by %s after " SECONDS_FORMAT ", token %s: %s", word.text,
		           who.text, SECONDS(hold->held_ms * 1000), token,
		           history_end_name(hold->end));
	if (log->audit)
		log_wanted("audit: %s %s %s waited " SECONDS_FORMAT " held " SECONDS_FORMAT
		           " token %s %s%s%s; reason: %s",
		           word.text, hold->mode == LC_SHARED ? "shared" : "exclusive", who.text,
		           SECONDS(hold->waited_ms * 1000), SECONDS(hold->held_ms * 1000), token,
		           history_end_name(hold->end),
		           hold->end == HISTORY_EVICTED ? " by "
		           : *hold->by                  ? ": "
		                                        : "",
		           hold->by, *hold->reason ? hold->reason : "-");
}

static void end_hold(struct audit *audit, const struct lc_taker *taker)
{
	struct audit_log *log = audit->log;
	int64_t held_us = log->clock_us() - audit->granted_us;
	struct history_hold hold = {
		.end = audit->end,
		.mode = audit->mode,
		.pid = audit->caller.pid,
		.uid = audit->uid,
		.since_ms = audit->since_ms,
		.ended_ms = clock_read_ns(CLOCK_REALTIME) / 1000000,
		.waited_ms = (audit->granted_us - audit->asked_us) / 1000,
		.held_ms = held_us / 1000,
		.token = taker ? lc_token(taker) : 0,
		.lock = audit->lock,
		.by = audit->by      ? audit->by
	              : audit->cause ? audit->cause
	              : audit->after ? audit->after
	                             : "",
		.reason = taker ? lc_reason(taker) : "",
	};

	strcpy(hold.command, audit->caller.command);
	log_end(audit, &hold);
	history_add(&log->history, &hold, held_us);
	audit->granted_us = 0;
}

/* ---- lost ---- */

/* The cause of a loss, in words, as far as this mount knows it. */
static const char *cause_of_loss(const struct audit_log *log)
{
	struct lc_status status;

	if (log->leaves)
		return "the mount is shutting down";
	lc_status(log->lc, &status);
	if (status.state == LC_UNUSABLE)
		return "the mount is unusable";
	if (status.state == LC_CONNECTING)
		return "the ensemble has ended the session";
	if (status.lease_left_us == 0)
		return "no contact with the ensemble, the lease has expired";
	return "its entry was deleted in the ensemble";
}

void audit_lost(struct audit *audit, const struct lc_taker *taker, const char *cause)
{
	struct who_text who;
	struct word word;
	char token[24], held[32];

	if (audit->granted_us == 0)
		return; /* nobody was told of the grant */
	audit->end = audit->by ? HISTORY_EVICTED : HISTORY_LOST;
	audit->cause = cause ? cause : cause_of_loss(audit->log);
	snprintf(held, sizeof(held), SECONDS_FORMAT,
	         SECONDS(audit->log->clock_us() - audit->granted_us));
	log_line_of(audit->uid, LC_WARNING,
	            "%s: the lock is lost by %s, token %s, held for %s: %s%s; reason: %s",
	            make_word(&word, audit->lock), name_taker(&who, &audit->caller, audit->uid),
	            token_text(token, lc_token(taker)), held, audit->by ? "evicted by " : "",
	            audit->by ? audit->by : audit->cause,
	            *lc_reason(taker) ? lc_reason(taker) : "-");
	end_hold(audit, taker);
}

void audit_left_open(const struct audit *audit, unsigned count, bool waits)
{
	struct who_text who;
	struct word word;

	log_line(LC_NOTICE, "lost locks that are still open: %u, %s by %s%s; the mount %s", count,
	         make_word(&word, audit->lock), name_taker(&who, &audit->caller, audit->uid),
	         count > 1 ? ", and others" : "",
	         waits ? "waits until on_lost has stopped them" : "does not wait for them");
}

/* ---- given back ---- */

void audit_stopped(struct audit *audit, int signal)
{
	if (signal != 0)
		audit->stopped = signal;
}

/* A process that ends gives up its memory before its files. statm waits for nothing. */
static bool is_ending(pid_t pid, int life)
{
	char text[3];

	if (life < 0)
		return false;
	if (!process_lives(life))
		return true;
	if (!proc_read_of(pid, "statm", text, sizeof(text)))
		return false;
	return strcmp(text, "0 ") == 0 || !process_lives(life);
}

void audit_parted(struct audit *audit, pid_t pid, int life)
{
	if (audit->granted_us == 0)
		return;
	if (audit->stopped != 0) {
		audit->end = HISTORY_STOPPED;
		audit->cause = audit->stopped == SIGKILL ? "SIGKILL before the lease's end"
		                                         : "SIGTERM before the lease's end";
		audit->log->stopped++;
	} else if (audit->log->clock_us() - audit->granted_us >= LOOK_US && is_ending(pid, life)) {
		audit->end = HISTORY_EXITED;
	}
}

void audit_end(struct audit *audit, const struct lc_taker *taker)
{
	if (audit->granted_us > 0)
		end_hold(audit, taker);
	free(audit->by);
	free(audit->after);
	*audit = (struct audit){0};
}

void audit_save_load(struct codec *codec, struct audit *audit, struct audit_log *log,
                     const char *lock)
{
	const char *by, *after;

	audit->log = log;
	audit->lock = lock;
	process_save_load(codec, &audit->caller);
	CODEC_U32(codec, audit->uid);
	CODEC_ENUM(codec, audit->mode, LC_SHARED);
	CODEC_64(codec, audit->asked_us);
	CODEC_64(codec, audit->granted_us);
	CODEC_64(codec, audit->since_ms);
	CODEC_ENUM(codec, audit->end, HISTORY_EVICTED);
	by = codec_text(codec, audit->by);
	if (codec->loads && by)
		audit->by = strdup(by);
	after = codec_text(codec, audit->after);
	if (codec->loads && after)
		audit->after = strdup(after);
}
