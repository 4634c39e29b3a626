/* SPDX-License-Identifier: MIT */
#include "report.h"

#include "clean.h"
#include "entry.h"
#include "health.h"
#include "span.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TROUBLE '!' /* begins a line that says what could not be read */

/* ---- writing ---- */

void report_locks(FILE *out, const void *context)
{
	const struct question *question = context;
	char state[40], lease[40], resting[40], why[HEALTH_MAX];
	struct health health;
	char *text;
	int error;

	health_read(question->mount, &health);
	text = mount_read(question->mount, ".zklockfs", "locks");
	error = errno;
	health_value(&health, "lease_left", lease, sizeof(lease));
	health_value(&health, "state", state, sizeof(state));
	if (strcmp(health_value(&health, "resting", resting, sizeof(resting)), "1") == 0)
		fprintf(out, "%s, resting\n", state);
	else
		fprintf(out, "%s, lease %.1fs\n", state, strtod(lease, NULL) / 1000);
	if (text)
		fputs(text, out);
	else if (error == ENOENT)
		fprintf(out, "%cthe mount has no .zklockfs/locks\n", TROUBLE);
	else
		fprintf(out, "%c%s\n", TROUBLE, health_explain(question->mount, error, why));
	free(text);
	health_free(&health);
}

static void report_entry(FILE *out, const struct entry *entry, const struct health *health)
{
	const char *const fields[] = {entry->host, entry->pid, entry->command, entry->token,
	                              entry->reason};
	char shown[CLEAN_MAX];
	int64_t since = entry_age(entry, health);

	fprintf(out, "%s\t%c\t%c\t%" PRId64, entry->name, entry->held ? 'h' : 'w',
	        entry->shared ? 's' : 'e', since);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		fprintf(out, "\t%s", clean(shown, sizeof(shown), fields[i]));
	putc('\n', out);
}

static void report_counts(FILE *out, const struct question *question, size_t holders,
                          size_t waiters)
{
	char *text = mount_read(question->mount, question->lock, "slots");
	unsigned long slots = text ? strtoul(text, NULL, 10) : 1;

	if (slots > 1)
		fprintf(out, "%zu of %lu held, %zu waiting\n", holders, slots, waiters);
	else
		fprintf(out, "%zu held, %zu waiting\n", holders, waiters);
	free(text);
}

void report_queue(FILE *out, const void *context)
{
	const struct question *question = context;
	size_t count, holders = 0;
	struct entry *entries;
	struct health health;
	char why[HEALTH_MAX];

	if (!entries_list(question->mount, question->lock, &entries, &count)) {
		int error = errno;

		fprintf(out, "\n%c%s\n", TROUBLE,
		        error == ENOENT ? "there is no such lock any more"
		                        : health_explain(question->mount, error, why));
		return;
	}
	health_read(question->mount, &health);
	for (size_t i = 0; i < count; i++)
		holders += entries[i].held;
	report_counts(out, question, holders, count - holders);
	for (size_t i = 0; i < count; i++) {
		if (i >= question->first && i - question->first < question->count)
			entry_read(question->mount, question->lock, &entries[i]);
		report_entry(out, &entries[i], &health);
	}
	entries_free(entries, count);
	health_free(&health);
}

void report_eviction(FILE *out, const void *context)
{
	const struct eviction *eviction = context;
	char shown[CLEAN_MAX], why[HEALTH_MAX];

	clean(shown, sizeof(shown), eviction->entry);
	if (mount_evict(eviction->mount, eviction->lock, eviction->entry) == 0)
		fprintf(out, "%s: evicted", shown);
	else if (errno == ENOENT)
		fprintf(out, "%s: is gone already", shown);
	else if (errno == EPERM)
		fprintf(out, "%s: only its user, the lock's owner and root may evict it", shown);
	else
		fprintf(out, "%s: %s", shown, health_explain(eviction->mount, errno, why));
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
