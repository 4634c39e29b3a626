/* SPDX-License-Identifier: MIT
 *
 * record.c - see record.h.
 */
#include "record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC "zklockfs: 1\n"

void record_copy_line(char *ret_text, size_t size, const char *text, size_t len)
{
	size_t n;

	for (n = 0; n < len && n + 1 < size && text[n] != '\n' && text[n] != '\0'; n++)
		ret_text[n] = (unsigned char)text[n] < 0x20 || text[n] == 0x7f ? '?' : text[n];
	ret_text[n] = '\0';
}

/* The value of the first line with that key; stops at an empty line. */
static bool find(const char *data, size_t len, const char *key, const char **ret_value,
                 size_t *ret_len)
{
	size_t key_len = strlen(key);

	while (len > 0 && *data != '\n') {
		const char *end = memchr(data, '\n', len);
		size_t line = end ? (size_t)(end - data) : len;

		if (line >= key_len + 2 && memcmp(data, key, key_len) == 0 &&
		    memcmp(data + key_len, ": ", 2) == 0) {
			*ret_value = data + key_len + 2;
			*ret_len = line - key_len - 2;
			return true;
		}
		if (!end)
			break;
		len -= line + 1;
		data = end + 1;
	}
	return false;
}

/* Digits only, in the given base, up to a maximum. */
static bool find_number(const char *data, size_t len, const char *key, unsigned base, int64_t max,
                        int64_t *ret_number)
{
	const char *value;
	size_t value_len;
	int64_t number = 0;

	if (!find(data, len, key, &value, &value_len) || value_len == 0)
		return false;
	for (size_t i = 0; i < value_len; i++) {
		unsigned digit = (unsigned)(value[i] - '0');

		if (value[i] < '0' || digit >= base || number > (max - digit) / base)
			return false;
		number = number * base + digit;
	}
	*ret_number = number;
	return true;
}

size_t record_format_entry(char ret_data[RECORD_ENTRY_MAX], const struct record_entry *entry)
{
	char reason[LC_REASON_MAX + 1] = "", command[LC_COMMAND_MAX + 1] = "", held[48] = "";

	if (entry->command)
		record_copy_line(command, sizeof(command), entry->command, strlen(entry->command));
	if (entry->reason)
		record_copy_line(reason, sizeof(reason), entry->reason, strlen(entry->reason));
	if (entry->held_since_ms >= 0)
		snprintf(held, sizeof(held), "held_since: %" PRId64 "\n", entry->held_since_ms);
	return (size_t)snprintf(ret_data, RECORD_ENTRY_MAX,
	                        "host: %.*s\npid: %d\nuid: %" PRId64 "\ncommand: %s\n%s%s%s%s",
	                        LC_HOST_MAX, entry->host, (int)entry->pid, entry->uid, command, held,
	                        *reason ? "reason: " : "", reason, *reason ? "\n" : "");
}

size_t record_format_lock(char ret_data[RECORD_LOCK_MAX], const struct lc_attributes *attributes)
{
	return (size_t)snprintf(ret_data, RECORD_LOCK_MAX,
	                        MAGIC "uid: %u\ngid: %u\nmode: %o\ndoor_mode: %o\n\n",
	                        (unsigned)attributes->uid, (unsigned)attributes->gid,
	                        (unsigned)attributes->mode & 07777,
	                        (unsigned)attributes->door_mode & 0666);
}

void record_parse_entry(const void *data, size_t len, struct lc_entry_info *ret_info)
{
	const char *value;
	size_t value_len;
	int64_t number;

	ret_info->uid = find_number(data, len, "uid", 10, UINT32_MAX - 1, &number) ? number : -1;
	ret_info->held_since_ms =
		find_number(data, len, "held_since", 10, INT64_MAX, &number) ? number : -1;
	ret_info->command[0] = ret_info->reason[0] = '\0';
	if (find(data, len, "command", &value, &value_len))
		record_copy_line(ret_info->command, sizeof(ret_info->command), value, value_len);
	if (find(data, len, "reason", &value, &value_len))
		record_copy_line(ret_info->reason, sizeof(ret_info->reason), value, value_len);
}

bool record_parse_lock(const void *data, size_t len, struct lc_attributes *ret_attributes)
{
	int64_t uid, gid, mode, door_mode;

	if (len < strlen(MAGIC) || memcmp(data, MAGIC, strlen(MAGIC)) != 0 ||
	    !find_number(data, len, "uid", 10, UINT32_MAX - 1, &uid) ||
	    !find_number(data, len, "gid", 10, UINT32_MAX - 1, &gid) ||
	    !find_number(data, len, "mode", 8, 07777, &mode) ||
	    !find_number(data, len, "door_mode", 8, 0666, &door_mode))
		return false;
	*ret_attributes = (struct lc_attributes){
		.uid = (uid_t)uid, .gid = (gid_t)gid, .mode = (mode_t)mode,
		.door_mode = (mode_t)door_mode & 0666,
	};
	return true;
}
