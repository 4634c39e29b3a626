/* SPDX-License-Identifier: MIT
 *
 * state.c - see state.h.
 */
#include "pure/state.h"

#include "pure/name.h"
#include "pure/table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct state_head {
	char magic[8];
	uint32_t version, least;
	uint64_t len;
	uint64_t checksum; /* of all, with 0 in its own place */
};

struct state_record_head {
	uint32_t kind;
	uint32_t len; /* with this head; a multiple of ALIGN */
	uint32_t fixed_len;
	uint32_t text_len; /* of all texts, each with its end */
};

#define ALIGN 8

static const char magic[8] = "zklockfs";

/* By kind: the size of the fixed part, and how many texts. */
struct shape {
	uint32_t fixed_len, texts;
};

static const struct shape shapes[] = {
	[STATE_SESSION] = {sizeof(struct state_session), 1},
	[STATE_COUNTERS] = {sizeof(struct state_counters), 0},
	[STATE_TAKER] = {sizeof(struct state_taker), 3},
	[STATE_EVICTION] = {sizeof(struct state_eviction), 1},
};

#define KINDS (sizeof(shapes) / sizeof(shapes[0]))

/* Without holes: they would carry what stood in memory before. */
static_assert(sizeof(struct state_head) % ALIGN == 0, "");
static_assert(sizeof(struct state_session) == 200, "");
static_assert(sizeof(struct state_taker) == 144, "");

/* FNV-1a, of ALIGN bytes at a time, since all of a mount waits for it: each byte changes it, for
 * certain. */
static uint64_t add_to_checksum(uint64_t sum, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i += ALIGN) {
		uint64_t part;

		static_assert(sizeof(part) == ALIGN, "");
		memcpy(&part, (const char *)bytes + i, sizeof(part));
		sum = (sum ^ part) * UINT64_C(0x100000001b3);
	}
	return sum;
}

static uint64_t checksum_of(const void *state, struct state_head head)
{
	uint64_t sum;

	head.checksum = 0;
	sum = add_to_checksum(UINT64_C(0xcbf29ce484222325), &head, sizeof(head));
	return add_to_checksum(sum, (const char *)state + sizeof(head),
	                       (size_t)head.len - sizeof(head));
}

/* ---- writing ---- */

static void put(struct state_writer *writer, const void *bytes, size_t len)
{
	size_t room = writer->room ? writer->room : 4096;
	char *larger;

	while (room < writer->len + len)
		room *= 2;
	if (room > writer->room && !writer->failed) {
		larger = realloc(writer->bytes, room);
		writer->failed = !larger;
		if (larger) {
			writer->bytes = larger;
			writer->room = room;
		}
	}
	if (writer->failed)
		return;
	if (bytes)
		memcpy(writer->bytes + writer->len, bytes, len);
	else
		memset(writer->bytes + writer->len, 0, len);
	writer->len += len;
}

void state_begin(struct state_writer *writer)
{
	*writer = (struct state_writer){0};
	put(writer, NULL, sizeof(struct state_head));
}

void state_write(struct state_writer *writer, const struct state_record *record)
{
	const struct shape *shape = &shapes[record->kind];
	struct state_record_head head = {.kind = record->kind, .fixed_len = shape->fixed_len};
	uint32_t len;

	for (uint32_t i = 0; i < shape->texts; i++)
		head.text_len += (record->texts[i] ? (uint32_t)strlen(record->texts[i]) : 0) + 1;
	len = (uint32_t)sizeof(head) + head.fixed_len + head.text_len;
	head.len = (len + ALIGN - 1) / ALIGN * ALIGN;
	put(writer, &head, sizeof(head));
	put(writer, &record->fixed, head.fixed_len);
	for (uint32_t i = 0; i < shape->texts; i++) {
		const char *text = record->texts[i] ? record->texts[i] : "";

		put(writer, text, strlen(text) + 1);
	}
	put(writer, NULL, head.len - len);
}

const void *state_write_alone(struct state_writer *writer, const struct state_record *record,
                              size_t *ret_len)
{
	writer->len = 0;
	writer->failed = false;
	state_write(writer, record);
	*ret_len = writer->len;
	return writer->failed ? NULL : writer->bytes;
}

void state_append(struct state_writer *writer, const void *bytes, size_t len)
{
	put(writer, bytes, len);
}

static int finish_state(struct state_writer *writer, struct state_head head, void **ret_state,
                        size_t *ret_len)
{
	if (writer->failed) {
		free(writer->bytes);
		return -ENOMEM;
	}
	memcpy(head.magic, magic, sizeof(magic));
	head.len = writer->len;
	head.checksum = checksum_of(writer->bytes, head);
	memcpy(writer->bytes, &head, sizeof(head));
	*ret_state = writer->bytes;
	*ret_len = writer->len;
	return 0;
}

int state_end(struct state_writer *writer, void **ret_state, size_t *ret_len)
{
	struct state_head head = {.version = STATE_VERSION, .least = STATE_LEAST};

	return finish_state(writer, head, ret_state, ret_len);
}

/* ---- reading ---- */

/* The texts that the kind has, of those that are there. */
static void find_texts(struct state_record *record, const char *text, size_t len)
{
	const char *end = text + len;

	for (uint32_t i = 0; i < shapes[record->kind].texts; i++) {
		record->texts[i] = text < end ? text : "";
		if (text < end)
			text += strlen(text) + 1;
	}
}

static void understand_record(const struct state_record_head *head, const char *fixed,
                              struct state_record *ret_record)
{
	size_t known = shapes[head->kind].fixed_len;

	memset(ret_record, 0, sizeof(*ret_record));
	ret_record->kind = (enum state_kind)head->kind;
	memcpy(&ret_record->fixed, fixed, head->fixed_len < known ? head->fixed_len : known);
	find_texts(ret_record, fixed + head->fixed_len, head->text_len);
}

bool state_read(const void *state, size_t len, size_t *offset, struct state_record *ret_record)
{
	struct state_record_head head;
	const char *bytes = state;

	*offset = *offset ? *offset : sizeof(struct state_head);
	for (; *offset < len; *offset += head.len) {
		memcpy(&head, bytes + *offset, sizeof(head));
		if (head.kind == 0 || head.kind >= KINDS)
			continue;
		understand_record(&head, bytes + *offset + sizeof(head), ret_record);
		*offset += head.len;
		return true;
	}
	return false;
}

/* ---- checking: the frame ---- */

static bool is_framed(const char *bytes, size_t len)
{
	struct state_record_head head;
	size_t offset;

	for (offset = sizeof(struct state_head); offset < len; offset += head.len) {
		const char *texts;

		if (len - offset < sizeof(head))
			return false;
		memcpy(&head, bytes + offset, sizeof(head));
		if (head.len > len - offset || head.len < sizeof(head) || head.len % ALIGN != 0 ||
		    head.fixed_len > head.len - sizeof(head) ||
		    head.text_len > head.len - sizeof(head) - head.fixed_len)
			return false;
		texts = bytes + offset + sizeof(head) + head.fixed_len;
		if (head.text_len > 0 && texts[head.text_len - 1] != '\0')
			return false;
	}
	return offset == len;
}

/* ---- joining records ---- */

/* A record, and nothing else. */
static bool is_record(const struct lc_record *record)
{
	struct state_record_head head;

	if (record->len < sizeof(head) || record->len > UINT32_MAX)
		return false;
	memcpy(&head, record->bytes, sizeof(head));
	return head.len == record->len;
}

/* The key that the record itself says: nobody else has it. */
static bool has_its_key(const struct state_record *record, uint64_t key)
{
	switch (record->kind) {
	case STATE_SESSION:
		return key == STATE_KEY_SESSION;
	case STATE_COUNTERS:
		return key == STATE_KEY_COUNTERS;
	case STATE_TAKER:
		return key == record->fixed.taker.key && key > STATE_KEY_TAKERS &&
		       key < STATE_KEY_EVICTIONS;
	case STATE_EVICTION:
		return key == record->fixed.eviction.key && key > STATE_KEY_EVICTIONS;
	}
	return false;
}

static int64_t latest_moment(const struct state_record *record)
{
	switch (record->kind) {
	case STATE_SESSION:
		return record->fixed.session.saved_us;
	case STATE_TAKER:
		return record->fixed.taker.asked_us;
	case STATE_COUNTERS:
	case STATE_EVICTION:
		break;
	}
	return 0;
}

/* All frames are good. Each record was written when it had changed. So others may know of later
 * moments than the session's, which says what was past when the state was saved. */
static bool put_right(char *state, size_t len, int64_t latest_us, struct state_head *ret_head)
{
	size_t place = sizeof(struct state_head) + sizeof(struct state_record_head), offset = 0;
	struct state_record first;

	if (!state_read(state, len, &offset, &first) || first.kind != STATE_SESSION ||
	    offset < place + sizeof(latest_us))
		return false;
	memcpy(state + place, &latest_us, sizeof(latest_us));
	*ret_head = (struct state_head){.version = first.fixed.session.version,
	                                .least = first.fixed.session.least};
	return true;
}

/* All frames are good. False: a record does not have its key. */
static bool read_keys(const void *state, const struct lc_record *records, size_t count,
                      int64_t *ret_latest_us)
{
	struct state_record record;

	*ret_latest_us = 0;
	for (size_t i = 0, at = sizeof(struct state_head); i < count; i++) {
		size_t offset = at, end = at + records[i].len;

		if (i > 0 && records[i].key <= records[i - 1].key)
			return false;
		at = end;
		/* A kind that is not known is passed over, by its bytes. */
		if (!state_read(state, end, &offset, &record))
			continue;
		if (!has_its_key(&record, records[i].key))
			return false;
		if (latest_moment(&record) > *ret_latest_us)
			*ret_latest_us = latest_moment(&record);
	}
	return true;
}

int state_join(const struct lc_record *records, size_t count, void **ret_state, size_t *ret_len)
{
	struct state_writer writer;
	struct state_head head = {.version = 0};
	int64_t latest_us;
	bool good = true;

	state_begin(&writer);
	for (size_t i = 0; i < count && good; i++) {
		good = is_record(&records[i]);
		if (good)
			state_append(&writer, records[i].bytes, records[i].len);
	}
	if (!writer.failed)
		good = good && is_framed(writer.bytes, writer.len) &&
		       read_keys(writer.bytes, records, count, &latest_us) &&
		       put_right(writer.bytes, writer.len, latest_us, &head);
	if (good || writer.failed)
		return finish_state(&writer, head, ret_state, ret_len);
	free(writer.bytes);
	return -EPROTO;
}

/* ---- checking: what it says ---- */

static bool is_time(int64_t time_us)
{
	return time_us >= 0 && time_us <= STATE_TIME_MAX;
}

static bool is_past(int64_t time_us, const struct state_session *session)
{
	return time_us >= 0 && time_us <= session->saved_us;
}

/* A path of names, such as the root without its slash: nothing that leads elsewhere. */
static bool is_path(const char *path)
{
	if (strlen(path) > LC_PATH_MAX)
		return false;
	for (const char *name = path;; name = strchr(name, '/') + 1) {
		size_t len = strcspn(name, "/");

		if (len == 0 || strncmp(name, ".", len) == 0 || strncmp(name, "..", len) == 0)
			return false;
		if (name[len] == '\0')
			return true;
	}
}

static bool is_good_lease(const struct state_session *session)
{
	const struct state_lease *lease = &session->lease;

	if (lease->timeout_us < 0 || lease->timeout_us > INT32_MAX * INT64_C(1000) ||
	    lease->steps < 0 || lease->steps > 3 || !is_past(lease->answered_us, session))
		return false;
	for (int i = 0; i < 3; i++)
		if (!is_past(lease->sent_us[i], session))
			return false;
	if (lease->deadline_us != INT64_MIN &&
	    (lease->timeout_us == 0 || lease->deadline_us > session->saved_us + lease->timeout_us ||
	     lease->deadline_us < -STATE_TIME_MAX))
		return false;
	return (lease->void_us == INT64_MIN || is_past(lease->void_us, session)) &&
	       (lease->doubt_us == INT64_MAX || is_time(lease->doubt_us));
}

static bool is_good_session(const struct state_record *record)
{
	const struct state_session *session = &record->fixed.session;

	return is_time(session->saved_us) && is_past(session->away_us, session) &&
	       session->granted_us >= 0 && session->granted_us <= INT32_MAX * INT64_C(1000) &&
	       session->tick_us >= 0 && session->tick_us <= INT32_MAX * INT64_C(1000) &&
	       session->home_czxid >= 0 && is_good_lease(session) && record->texts[0][0] == '/' &&
	       is_path(record->texts[0] + 1);
}

/* Of this session and this taker; digits only where the node is known. */
static bool is_good_name(const struct state_record *record, const struct state_session *session)
{
	const struct state_taker *taker = &record->fixed.taker;
	const char *text = record->texts[1];
	char whole[NAME_PREFIX_MAX + 10];
	bool numbered = taker->entry == STATE_PRESENT;
	struct entry_name name;

	if (taker->entry == STATE_ABSENT)
		return text[0] == '\0';
	if (strlen(text) >= sizeof(whole) - (numbered ? 0 : 10) || strchr(text, '/'))
		return false;
	strcpy(stpcpy(whole, text), numbered ? "" : "0000000000");
	return session->id != 0 && name_parse(whole, &name) && name.of_mount &&
	       name.session_half == session->half && name.taker_half == taker->id &&
	       (name.mode == LC_SHARED) == ((taker->flags & STATE_TAKER_SHARED) != 0);
}

static bool is_limit(int64_t time_us)
{
	return is_time(time_us) || time_us == LC_FOREVER;
}

static bool has_good_times(const struct state_taker *taker, const struct state_session *session)
{
	return is_past(taker->asked_us, session) && is_limit(taker->wait_until_us) &&
	       is_limit(taker->hold_until_us) && is_limit(taker->limit_at_us) &&
	       is_limit(taker->recheck_at_us) && taker->held_since_ms >= -1 &&
	       taker->held_since_ms <= STATE_TIME_MAX;
}

/* The engine's assertions on its takers. */
static bool has_good_state(const struct state_taker *taker, const struct state_session *session)
{
	bool due = taker->flags & STATE_TAKER_DUE, unseen = taker->flags & STATE_TAKER_UNSEEN;
	bool gone = taker->flags & STATE_TAKER_GONE;

	if (taker->wait > STATE_MISSING || taker->loss > STATE_GIVEN_UP ||
	    taker->entry > STATE_PRESENT || (gone && taker->entry != STATE_PRESENT) ||
	    (unseen && (taker->state != STATE_HELD || taker->flags & STATE_TAKER_SHARED)) ||
	    (taker->replaces && taker->state != STATE_WAITING) ||
	    (taker->wait != STATE_QUEUED &&
	     (taker->state != STATE_WAITING || taker->entry != STATE_ABSENT)))
		return false;
	switch (taker->state) {
	case STATE_WAITING:
		return !due;
	case STATE_HELD:
		return !due && !gone && taker->entry == STATE_PRESENT &&
		       session->lease.deadline_us != INT64_MIN;
	case STATE_LOST:
		return true;
	case STATE_FAILED:
		return taker->error < 0 && taker->error >= -4095;
	case STATE_LEFT:
		return !due && taker->entry != STATE_ABSENT;
	}
	return false;
}

static bool is_good_taker(const struct state_record *record, const struct state_session *session,
                          size_t root_len)
{
	const struct state_taker *taker = &record->fixed.taker;

	if (taker->state != STATE_HELD && taker->held_since_ms != -1)
		return false;
	return taker->id != 0 && taker->command[LC_COMMAND_MAX] == '\0' &&
	       taker->charged_bytes <= LC_PATH_MAX + LC_NAME_MAX &&
	       (record->texts[0][0] == '\0' || is_path(record->texts[0])) &&
	       root_len + 1 + strlen(record->texts[0]) <= LC_PATH_MAX &&
	       strlen(record->texts[2]) <= LC_REASON_MAX && is_good_name(record, session) &&
	       has_good_times(taker, session) && has_good_state(taker, session);
}

/* Of an entry anywhere below the root: another client's locks may be deeper than ours. */
bool state_is_good_eviction(const struct state_record *record, const char *root)
{
	const char *path = record->texts[0], *slash = strrchr(path, '/');
	size_t root_len = strlen(root);
	struct entry_name name;

	return is_time(record->fixed.eviction.due_us) && is_time(record->fixed.eviction.wait_us) &&
	       strncmp(path, root, root_len) == 0 && path[root_len] == '/' &&
	       name_parse(slash + 1, &name);
}

/* ---- checking: takers and each other ---- */

/* Objects that others may refer to. */
struct known {
	struct table_link id;
	uint64_t replaces;
	const char *lock;
	bool may_be_replaced; /* shared, and held */
	bool may_replace;
	bool unseen;
};

static bool is_successor(const struct known *known)
{
	return known->replaces != 0;
}

static bool is_unseen(const struct known *known)
{
	return known->unseen;
}

/* Move these to the front, in order: they are few. Returns how many. */
static size_t sort_those(struct known *known, size_t count,
                         bool (*wanted)(const struct known *known),
                         int (*compare)(const void *a, const void *b))
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		struct known one = known[i];

		if (!wanted(&one))
			continue;
		known[i] = known[found];
		known[found++] = one;
	}
	qsort(known, found, sizeof(*known), compare);
	return found;
}

static int compare_places(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return x->replaces < y->replaces ? -1 : x->replaces > y->replaces;
}

static int compare_locks(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return strcmp(x->lock, y->lock);
}

static bool is_replaced(const struct table *by_id, const struct known *by)
{
	const struct known *held = (const struct known *)table_find(by_id, by->replaces);

	return held && held->may_be_replaced && by->may_replace &&
	       strcmp(held->lock, by->lock) == 0;
}

/* Each has its own id, and who replaces another one may do so. 0, -EPROTO, -ENOMEM. */
static int check_ids(struct known *known, size_t count)
{
	struct table by_id = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		if (table_find(&by_id, known[i].id.number))
			r = -EPROTO;
		else if (!table_add(&by_id, &known[i].id, known[i].id.number))
			r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++)
		if (is_successor(&known[i]) && !is_replaced(&by_id, &known[i]))
			r = -EPROTO;
	(void)table_take_all(&by_id);
	table_finish(&by_id);
	return r;
}

/* One successor at most, and a lock one that is unseen. */
static bool fit_together(struct known *known, size_t count)
{
	size_t successors = sort_those(known, count, is_successor, compare_places), unseen;

	for (size_t i = 1; i < successors; i++)
		if (known[i].replaces == known[i - 1].replaces)
			return false;
	unseen = sort_those(known, count, is_unseen, compare_locks);
	for (size_t i = 1; i < unseen; i++)
		if (strcmp(known[i].lock, known[i - 1].lock) == 0)
			return false;
	return true;
}

static struct known know(const struct state_record *record)
{
	const struct state_taker *taker = &record->fixed.taker;
	bool shared = taker->flags & STATE_TAKER_SHARED;

	return (struct known){
		.id.number = taker->id,
		.replaces = taker->replaces,
		.lock = record->texts[0],
		.may_be_replaced = shared && taker->state == STATE_HELD,
		.may_replace = !shared && taker->state == STATE_WAITING,
		.unseen = taker->flags & STATE_TAKER_UNSEEN,
	};
}

/* `known` has room for all. 0, -EPROTO, -ENOMEM. */
static int check_records(const void *state, size_t len, struct known *known)
{
	struct state_record record;
	struct state_session session;
	const char *root;
	size_t offset = 0, count = 0;
	bool counters = false;
	int r;

	if (!state_read(state, len, &offset, &record) || record.kind != STATE_SESSION ||
	    !is_good_session(&record))
		return -EPROTO;
	session = record.fixed.session;
	root = record.texts[0];
	while (state_read(state, len, &offset, &record))
		switch (record.kind) {
		case STATE_SESSION:
			return -EPROTO;
		case STATE_COUNTERS:
			if (counters)
				return -EPROTO;
			counters = true;
			break;
		case STATE_TAKER:
			if (!is_good_taker(&record, &session, strlen(root)))
				return -EPROTO;
			known[count++] = know(&record);
			break;
		case STATE_EVICTION: /* a bad one costs no other record: its reader looks */
			break;
		}
	r = check_ids(known, count);
	return r == 0 && !fit_together(known, count) ? -EPROTO : r;
}

/* All frames are good. */
static size_t count_takers(const void *state, size_t len)
{
	struct state_record_head head;
	size_t count = 0;

	for (size_t offset = sizeof(struct state_head); offset < len; offset += head.len) {
		memcpy(&head, (const char *)state + offset, sizeof(head));
		count += head.kind == STATE_TAKER;
	}
	return count;
}

int state_check(const void *state, size_t len)
{
	struct known *known;
	struct state_head head;
	int r;

	if (len < sizeof(head))
		return -EPROTO;
	memcpy(&head, state, sizeof(head));
	if (memcmp(head.magic, magic, sizeof(magic)) != 0)
		return -EPROTO;
	if (head.least > STATE_VERSION || head.version < STATE_LEAST)
		return -ENOTSUP;
	if (head.len != len || len % ALIGN != 0 || head.checksum != checksum_of(state, head) ||
	    !is_framed(state, len))
		return -EPROTO;
	known = calloc(count_takers(state, len) + 1, sizeof(*known));
	if (!known)
		return -ENOMEM;
	r = check_records(state, len, known);
	free(known);
	return r;
}
