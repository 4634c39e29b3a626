/* SPDX-License-Identifier: MIT
 *
 * report.c - see report.h.
 */
#include "report.h"

#include "clean.h"
#include "entry.h"
#include "span.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TROUBLE '!' /* begins a line that says what could not be read */

/* ---- writing ---- */

/* The value of a line of `status`, "-" without one. */
static void find_value(const char *status, const char *key, char *value, size_t size)
{
	const char *at = status ? strstr(status, key) : NULL;

	snprintf(value, size, "-");
	if (at)
		snprintf(value, size, "%.*s", (int)strcspn(at + strlen(key), "\n"),
		         at + strlen(key));
}

static const char *name_error(int error)
{
	if (error == ENOTCONN || error == ECONNABORTED)
		return "the daemon of the mount is dead";
	if (error == EHOSTUNREACH)
		return "the ensemble does not answer";
	if (error == ENOENT)
		return "there is no such lock any more";
	return strerror(error);
}

void report_locks(FILE *out, const void *context)
{
	const struct question *question = context;
	char *status = mount_read(question->mount, ".zklockfs", "status");
	char state[40], lease[40];
	char *text = mount_read(question->mount, ".zklockfs", "locks");
	int error = errno;

	find_value(status, "state: ", state, sizeof(state));
	find_value(status, "lease_left: ", lease, sizeof(lease));
	fprintf(out, "%s, lease %.1fs\n", state, strtod(lease, NULL) / 1000);
	if (text)
		fputs(text, out);
	else if (error == ENOENT)
		fprintf(out, "%cthe mount has no .zklockfs/locks\n", TROUBLE);
	else
		fprintf(out, "%c.zklockfs/locks: %s\n", TROUBLE, name_error(error));
	free(text);
	free(status);
}

static void report_entry(FILE *out, const struct entry *entry)
{
	const char *const fields[] = {entry->host, entry->pid, entry->command, entry->token,
	                              entry->reason};
	char shown[CLEAN_MAX];
	int64_t since = span_since(entry->held ? entry->held_since : entry->queued_since);

	fprintf(out, "%s\t%c\t%c\t%" PRId64, entry->name, entry->held ? 'h' : 'w',
	        entry->shared ? 's' : 'e', since);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		fprintf(out, "\t%s", clean(shown, sizeof(shown), fields[i]));
	putc('\n', out);
}

void report_queue(FILE *out, const void *context)
{
	const struct question *question = context;
	size_t count, holders = 0;
	struct entry *entries;

	if (!entries_list(question->mount, question->lock, &entries, &count)) {
		fprintf(out, "-\n%c%s\n", TROUBLE, name_error(errno));
		return;
	}
	for (size_t i = 0; i < count; i++)
		holders += entries[i].held;
	fprintf(out, "%zu held, %zu waiting\n", holders, count - holders);
	for (size_t i = 0; i < count; i++) {
		if (i >= question->first && i - question->first < question->count)
			entry_read(question->mount, question->lock, &entries[i]);
		report_entry(out, &entries[i]);
	}
	entries_free(entries, count);
}

void report_eviction(FILE *out, const void *context)
{
	const struct eviction *eviction = context;
	char shown[CLEAN_MAX];

	clean(shown, sizeof(shown), eviction->entry);
	if (mount_evict(eviction->mount, eviction->lock, eviction->entry) == 0)
		fprintf(out, "%s: evicted", shown);
	else if (errno == ENOENT)
		fprintf(out, "%s: is gone already", shown);
	else if (errno == EPERM)
		fprintf(out, "%s: only its user, the lock's owner and root may evict it", shown);
	else
		fprintf(out, "%s: %s", shown, name_error(errno));
}

/* ---- parsing ---- */

static char *cut_line(char **rest)
{
	char *line = *rest;

	*rest += strcspn(line, "\n");
	if (**rest)
		*(*rest)++ = '\0';
	return line;
}

static const char *cut_field(char **rest)
{
	char *field = *rest;

	*rest += strcspn(field, "\t");
	if (**rest)
		*(*rest)++ = '\0';
	return field;
}

bool report_parse_locks(char *text, struct report *ret_report)
{
	char *rest = text;

	*ret_report = (struct report){.text = text};
	ret_report->headline = cut_line(&rest);
	if (*rest == TROUBLE)
		ret_report->trouble = cut_line(&rest) + 1;
	else if (!table_parse(rest, &ret_report->table) && errno != EINVAL)
		return false;
	else if (!ret_report->table.rows)
		ret_report->trouble = ".zklockfs/locks is not as expected";
	ret_report->count = ret_report->table.count;
	return true;
}

bool report_parse_queue(char *text, struct report *ret_report)
{
	size_t lines = 0;
	char *rest = text;

	*ret_report = (struct report){.text = text};
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	ret_report->places = calloc(lines + 1, sizeof(*ret_report->places));
	if (!ret_report->places)
		return false;
	ret_report->headline = cut_line(&rest);
	if (*rest == TROUBLE)
		ret_report->trouble = cut_line(&rest) + 1;
	while (*rest) {
		char *line = cut_line(&rest);
		struct place_in_queue *place = &ret_report->places[ret_report->count++];

		place->name = cut_field(&line);
		place->held = *cut_field(&line) == 'h';
		place->shared = *cut_field(&line) == 's';
		place->since_ms = strtoll(cut_field(&line), NULL, 10);
		place->host = cut_field(&line);
		place->pid = cut_field(&line);
		place->command = cut_field(&line);
		place->token = cut_field(&line);
		place->reason = cut_field(&line);
	}
	return true;
}

void report_free(struct report *report)
{
	free(report->table.rows);
	free(report->places);
	free(report->text);
	*report = (struct report){.text = NULL};
}
