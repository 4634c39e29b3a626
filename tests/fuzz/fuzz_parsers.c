/* SPDX-License-Identifier: MIT
 *
 * All readers of texts that others wrote: node names, node data, names and
 * durations that users typed. The first byte chooses the reader, the rest is its
 * input. A sanitizer sees reads and writes beyond an end; the properties
 * asserted here hold for any input.
 */
#include "fuzz.h"

#include "host/duration.h"
#include "host/row.h"
#include "pure/letters.h"
#include "pure/node_data.h"
#include "pure/queue.h"
#include "tree/lock_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The characters of a host in an entry: none that begins a field or a line. */
#define HOST "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

/* A copy of exactly that size, so that a read beyond its end is seen. */
static char *exact(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	MUST(text);
	memcpy(text, data, size);
	text[size] = '\0';
	return realloc(text, strlen(text) + 1);
}

static bool same(const struct entry_name *a, const struct entry_name *b)
{
	return a->number == b->number && a->mode == b->mode && a->of_mount == b->of_mount &&
	       a->session_half == b->session_half && a->taker_half == b->taker_half &&
	       strcmp(a->host, b->host) == 0 && a->pid == b->pid;
}

static void fuzz_name(const uint8_t *data, size_t size)
{
	char *name = exact(data, size), prefix[NAME_PREFIX_MAX], again[NAME_PREFIX_MAX + 16];
	struct entry_name parsed, other;

	if (name_parse(name, &parsed)) {
		MUST(name_is_numbered(name));
		MUST(strlen(parsed.host) > 0 && strlen(parsed.host) <= LC_HOST_MAX);
		MUST(parsed.number >= INT64_C(-9999999999) && parsed.number <= INT64_C(9999999999));
		if (parsed.of_mount) {
			MUST(parsed.pid >= 0 && strspn(parsed.host, HOST) == strlen(parsed.host));
			name_format(prefix, &clients_all[0], parsed.session_half, parsed.taker_half,
			            parsed.host, parsed.pid, parsed.mode);
			snprintf(again, sizeof(again), "%s%s%s", prefix,
			         parsed.number < 0 ? "-" : "", name + strlen(name) - 10);
			/* No server counts further; behind a '-' that is a negative number. */
			MUST(parsed.number > INT32_MAX ||
			     (name_parse(again, &other) && same(&parsed, &other)));
		} else {
			MUST(strcmp(parsed.host, "-") == 0 && parsed.pid == 0);
			MUST(parsed.session_half == 0 && parsed.taker_half == 0);
		}
	} else {
		MUST(!name_is_numbered(name));
	}
	free(name);
}

/* Any text becomes a host that can be read back from the name made with it. */
static void fuzz_host(const uint8_t *data, size_t size)
{
	uint64_t halves[2] = {0, 0};
	char host[LC_HOST_MAX + 1], prefix[NAME_PREFIX_MAX], name[NAME_PREFIX_MAX + 10], *given;
	struct entry_name parsed, wanted;
	enum lc_mode mode;
	uint32_t pid = 0;

	if (size < 21)
		return;
	memcpy(halves, data, 16);
	memcpy(&pid, data + 16, 4);
	pid &= INT32_MAX;
	mode = data[20] & 1 ? LC_SHARED : LC_EXCLUSIVE;
	given = exact(data + 21, size - 21);
	name_host(host, given);
	MUST(*host && strspn(host, HOST) == strlen(host));
	name_format(prefix, &clients_all[data[20] / 2 % CLIENTS_COUNT], halves[0], halves[1], host,
	            (pid_t)pid, mode);
	snprintf(name, sizeof(name), "%s%010d", prefix, data[20]);
	MUST(name_parse(name, &parsed));
	wanted = (struct entry_name){
		.number = data[20],
		.mode = mode,
		.of_mount = true,
		.session_half = halves[0],
		.taker_half = halves[1],
		.pid = (pid_t)pid,
	};
	strcpy(wanted.host, host);
	MUST(same(&parsed, &wanted));
	free(given);
}

#define NAMES_MAX 64

static void check_queue(const struct queue *queue)
{
	bool in_zone = false;

	for (size_t i = 0; i < queue->count; i++) {
		const struct queue_entry *entry = &queue->entries[i];
		ssize_t blocker = entry->blocker;
		struct entry_name name;

		MUST(name_parse(entry->znode, &name) && same(&name, &entry->name));
		in_zone |= name.number < 0 || name.number >= NAME_NUMBER_ZONE;
		MUST(blocker >= -1 && blocker < (ssize_t)i);
		if (name.mode == LC_EXCLUSIVE)
			MUST(blocker == (ssize_t)i - 1);
		/* No entry between an entry and its blocker excludes it. */
		for (size_t k = (size_t)(blocker + 1); k < i; k++)
			MUST(queue->entries[k].name.mode == LC_SHARED);
		if (blocker >= 0 && name.mode == LC_SHARED)
			MUST(queue->entries[blocker].name.mode == LC_EXCLUSIVE);
		if (i > 0) {
			const struct queue_entry *before = entry - 1;

			MUST(before->name.number <= name.number);
			MUST(before->name.number < name.number ||
			     strcmp(before->znode, entry->znode) <= 0);
		}
	}
	MUST(queue->in_zone == in_zone);
}

static void fuzz_queue(const uint8_t *data, size_t size)
{
	const char *names[NAMES_MAX], *turned[NAMES_MAX];
	char *text = exact(data, size), *rest = text, *name;
	size_t count = 0, entries = 0;
	struct queue queue, other;

	while (count < NAMES_MAX && (name = strsep(&rest, "\n")) != NULL)
		names[count++] = name;
	for (size_t i = 0; i < count; i++) {
		turned[i] = names[count - 1 - i];
		entries += name_is_numbered(names[i]);
	}
	MUST(queue_build(&clients_all[0], names, count, &queue) == 0 &&
	     queue_build(&clients_all[0], turned, count, &other) == 0);
	MUST(queue.count == entries && other.count == entries);
	check_queue(&queue);
	/* The order depends on the names alone. */
	for (size_t i = 0; i < queue.count; i++)
		MUST(strcmp(queue.entries[i].znode, other.entries[i].znode) == 0);
	queue_finish(&queue);
	queue_finish(&other);
	free(text);
}

static void check_line(const char *text, size_t size)
{
	MUST(strlen(text) < size);
	for (; *text; text++)
		MUST((unsigned char)*text >= 0x20 && *text != 0x7f);
}

static void *exact_bytes(const uint8_t *data, size_t size)
{
	void *copy = malloc(size ? size : 1);

	MUST(copy);
	memcpy(copy, data, size);
	return copy;
}

static void fuzz_node_data_entry(const uint8_t *data, size_t size)
{
	static struct lc_entry_info info, other;
	char text[NODE_DATA_ENTRY_MAX];
	void *copy = exact_bytes(data, size);
	size_t len;

	node_data_parse_entry(copy, size, &info);
	free(copy);
	check_line(info.command, sizeof(info.command));
	check_line(info.reason, sizeof(info.reason));
	MUST(info.uid >= -1 && info.uid < UINT32_MAX && info.held_since_ms >= -1);
	len = node_data_format_entry(text,
	                             &(struct node_data_entry){.host = "h",
	                                                       .pid = 1,
	                                                       .uid = info.uid,
	                                                       .command = info.command,
	                                                       .held_since_ms = info.held_since_ms,
	                                                       .reason = info.reason});
	MUST(len == strlen(text) && len < sizeof(text));
	node_data_parse_entry(text, len, &other);
	MUST(other.uid == info.uid && other.held_since_ms == info.held_since_ms);
	MUST(strcmp(other.command, info.command) == 0 && strcmp(other.reason, info.reason) == 0);
}

static void fuzz_node_data_lock(const uint8_t *data, size_t size)
{
	const struct lc_attributes untouched = {.uid = 1, .gid = 2, .mode = 3, .lock_file_mode = 4};
	struct lc_attributes out = untouched, other;
	char text[NODE_DATA_LOCK_MAX];
	void *copy = exact_bytes(data, size);
	size_t len;

	if (node_data_parse_lock(copy, size, &out)) {
		MUST((out.mode & ~02777u) == 0 && (out.lock_file_mode & ~0666u) == 0);
		MUST(out.uid != (uid_t)-1 && out.gid != (gid_t)-1);
		len = node_data_format_lock(text, &out);
		MUST(len == strlen(text) && len < sizeof(text));
		MUST(node_data_parse_lock(text, len, &other));
		MUST(out.uid == other.uid && out.gid == other.gid && out.mode == other.mode &&
		     out.lock_file_mode == other.lock_file_mode);
	} else {
		MUST(memcmp(&out, &untouched, sizeof(out)) == 0);
	}
	free(copy);
}

/* A lock's data as others left it is rewritten: it has the new attributes and the new value, and
 * rewriting it again changes nothing. */
static void fuzz_node_data_rewrite(const uint8_t *data, size_t size)
{
	const struct lc_attributes attributes = {
		.uid = 1, .gid = 2, .mode = 02755, .lock_file_mode = 0644};
	void *copy = exact_bytes(data, size);
	char *text, *again;
	struct lc_attributes out;
	const char *value, *back;
	size_t value_len, back_len, len, again_len;
	unsigned slots = node_data_slots(copy, size);
	struct node_data_lock lock;

	MUST(slots >= 1 && slots <= LC_SLOTS_MAX);
	node_data_value(copy, size, &value, &value_len);
	MUST(value_len <= size && value + value_len == (char *)copy + size);
	if (size == 0 || node_data_is_foreign(copy, size)) {
		MUST(value_len == size || size > NODE_DATA_MAX);
		MUST(slots == 1 || size > NODE_DATA_MAX);
		MUST(!node_data_parse_lock(copy, size, &out) || size > NODE_DATA_MAX);
	}
	lock = (struct node_data_lock){&attributes, slots, value, value_len};
	if (node_data_rewrite_lock(copy, size, &lock, &text, &len) == 0) {
		MUST(len > 0 && !node_data_is_foreign(text, len));
		MUST(node_data_parse_lock(text, len, &out));
		MUST(memcmp(&out, &attributes, sizeof(out)) == 0 &&
		     node_data_slots(text, len) == slots);
		node_data_value(text, len, &back, &back_len);
		MUST(back_len == value_len && memcmp(back, value, value_len) == 0);
		lock.value = back;
		MUST(node_data_rewrite_lock(text, len, &lock, &again, &again_len) == 0);
		MUST(again_len == len && memcmp(again, text, len) == 0);
		free(again);
		free(text);
	}
	free(copy);
}

static void fuzz_node_data_evicted(const uint8_t *data, size_t size)
{
	static struct lc_entry_info before, after;
	char text[NODE_DATA_ENTRY_MAX], by[NODE_DATA_BY_MAX + 1], again[NODE_DATA_BY_MAX + 1];
	void *copy = exact_bytes(data, size);
	size_t len;

	if (!node_data_is_evicted(copy, size, by))
		strcpy(by, "uid 0 pid 1 (sh) on h");
	check_line(by, sizeof(by));
	len = node_data_format_evicted(text, copy, size, by);
	MUST(len <= sizeof(text));
	MUST(node_data_is_evicted(text, len, again) && strcmp(by, again) == 0);
	if (len < sizeof(text)) {
		node_data_parse_entry(copy, size, &before);
		node_data_parse_entry(text, len, &after);
		MUST(before.uid == after.uid && before.held_since_ms == after.held_since_ms);
		MUST(strcmp(before.command, after.command) == 0 &&
		     strcmp(before.reason, after.reason) == 0);
	}
	free(copy);
}

/* The characters of a name, decoded bit by bit: another way than name.c's. */
static bool zookeeper_takes(const char *name)
{
	static const uint32_t smallest[] = {0, 0x80, 0x800, 0x10000};

	while (*name) {
		unsigned char first = (unsigned char)*name++;
		int more = first < 0x80       ? 0
		           : first >> 5 == 6  ? 1
		           : first >> 4 == 14 ? 2
		           : first >> 3 == 30 ? 3
		                              : -1;
		uint32_t c;

		if (more < 0)
			return false;
		c = more == 0 ? first : first & (0x3fu >> more);
		for (int i = 0; i < more; i++) {
			if (((unsigned char)*name & 0xc0) != 0x80)
				return false;
			c = c << 6 | ((unsigned char)*name++ & 0x3f);
		}
		if (c < smallest[more] || c < 0x20 || (c >= 0x7f && c <= 0x9f) ||
		    (c >= 0xd800 && c <= 0xf8ff) || c >= 0xfff0 || c == '/')
			return false;
	}
	return true;
}

static void fuzz_lock_name(const uint8_t *data, size_t size)
{
	char *name = exact(data, size);
	const char *why = NULL;
	int r = name_check(name, &why);

	MUST(r == 0 || r == -EINVAL || r == -ENAMETOOLONG);
	MUST((r != 0) == (why != NULL));
	if (r == 0) {
		MUST(zookeeper_takes(name) && !name_is_numbered(name));
		MUST(*name && *name != '.' && strlen(name) <= LC_NAME_MAX);
	} else if (r == -EINVAL && *name && *name != '.' && !name_is_numbered(name)) {
		MUST(!zookeeper_takes(name));
	}
	free(name);
}

static void fuzz_duration(const uint8_t *data, size_t size)
{
	char *text = exact(data, size), again[32];
	int64_t us = -1, same_us;

	if (duration_parse(text, &us)) {
		MUST(us >= 0 && us % 1000 == 0);
		MUST(*text >= '0' && *text <= '9');
		snprintf(again, sizeof(again), "%" PRId64 "ms", us / 1000);
		MUST(duration_parse(again, &same_us) && same_us == us);
	} else {
		MUST(us == -1);
	}
	free(text);
}

static void fuzz_lock_file(const uint8_t *data, size_t size)
{
	char *name = exact(data, size);
	struct lock_file lock_file = {.wait_us = -1};
	int r = lock_file_parse(name, &lock_file);

	MUST(r == 0 || r == -ENOENT || r == -EINVAL);
	if (r == 0) {
		MUST(lock_file.wait_us >= 0);
		MUST(lock_file.crowd <= LC_CROWD_MAX);
		MUST(lock_file.most_us > 0 && lock_file.least_us >= 0 &&
		     lock_file.least_us <= lock_file.most_us);
	}
	free(name);
}

/* A word of a line in the log, in `locks` and in `history`: it stays one word, and ends no line. */
/* A letter among what strangers have left is found, and costs no older one. Mounts of the former
 * version read lines of the same length from the end. */
static void fuzz_letters(const uint8_t *data, size_t size)
{
	char text[LETTERS_SIZE], digits[LETTER_LEN] = "";
	void *copy = exact_bytes(data, size);
	uint64_t id = UINT64_C(0xfedcba9876543210), before, after;
	size_t len = letters_add(text, copy, size, id), from = 0, at = 0,
	       skipped = size / LETTER_LEN;

	MUST(len <= sizeof(text) && len % LETTER_LEN == 0);
	memcpy(digits, text + len - LETTER_LEN, LETTER_LEN - 1);
	MUST(strtoull(digits, NULL, 16) == id);
	skipped = skipped >= LETTERS_MAX ? skipped - (LETTERS_MAX - 1) : 0;
	from = skipped * LETTER_LEN;
	while (letters_next(copy, size, &from, &before))
		MUST(letters_next(text, len, &at, &after) && before == after);
	MUST(letters_next(text, len, &at, &after) && after == id);
	MUST(at == len && !letters_next(text, len, &at, &after));
	MUST(skipped == 0 || letters_are_full(len));
	free(copy);
}

static void fuzz_row(const uint8_t *data, size_t size)
{
	char *text = exact(data, size), *word = malloc(ROW_WORD_MAX(size) + 1);
	struct row row = {.text = word, .room = ROW_WORD_MAX(size) + 1};

	MUST(word);
	row_word(&row, text);
	MUST(!row.short_of_room && row.len > 0 && row.len <= ROW_WORD_MAX(size) + 1);
	MUST((row.len == 1 && word[0] == '-') == (*text == '\0'));
	for (size_t i = 0; i < row.len; i++) {
		MUST((unsigned char)word[i] > ' ' && word[i] != 0x7f);
		MUST(memchr("\xe2\x80\xa8", word[i], 1) == NULL || i + 2 >= row.len ||
		     memcmp(word + i, "\xe2\x80\xa8", 3) != 0);
	}
	free(word);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const readers[])(const uint8_t *data, size_t size) = {
		fuzz_name,
		fuzz_host,
		fuzz_queue,
		fuzz_node_data_entry,
		fuzz_node_data_lock,
		fuzz_lock_name,
		fuzz_duration,
		fuzz_lock_file,
		fuzz_node_data_rewrite,
		fuzz_node_data_evicted,
		fuzz_row,
		fuzz_letters,
	};

	if (size > 0)
		readers[data[0] % (sizeof(readers) / sizeof(readers[0]))](data + 1, size - 1);
	return 0;
}
