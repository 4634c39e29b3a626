/* SPDX-License-Identifier: MIT */
#include "tree/content.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static struct content *find_latest(struct contents *contents, const struct content_key *key)
{
	struct content *content;

	HASH_FIND(hh, contents->latest, key, sizeof(*key), content);
	return content;
}

static void forget_latest(struct content *content)
{
	if (content->hh.tbl)
		HASH_DEL(content->of->latest, content);
	content->hh.tbl = NULL;
}

/* With one reference; the latest of its key. NULL: errno. */
static struct content *new_content(struct contents *contents, const struct content_key *key,
                                   const char *data, size_t len)
{
	struct content *content =
		budget_alloc(contents->budget, (uid_t)key->uid, sizeof(*content) + len + 1);
	struct content *before = find_latest(contents, key);
	char *copy;

	if (!content)
		return NULL;
	copy = (char *)(content + 1);
	if (len > 0)
		memcpy(copy, data, len);
	content->data = copy;
	content->len = len;
	content->references = 1;
	content->of = contents;
	content->key = *key;
	DL_APPEND(contents->all, content);
	record_begin(contents->records, &content->record, RECORD_CONTENT, 0);
	if (before)
		forget_latest(before);
	HASH_ADD(hh, contents->latest, key, sizeof(content->key),
	         content); /* or it is not shared */
	return content;
}

const struct content *content_get(struct contents *contents, const struct node *node, uid_t uid,
                                  const char *data, size_t len)
{
	struct content_key key = {.ino = node->ino, .uid = uid};
	struct content *before = find_latest(contents, &key);

	if (before && before->len == len && (len == 0 || memcmp(before->data, data, len) == 0)) {
		before->references++;
		return before;
	}
	return new_content(contents, &key, data, len);
}

void content_drop(const struct content *content)
{
	struct content *own = (struct content *)content;

	if (!own || --own->references > 0)
		return;
	forget_latest(own);
	DL_DELETE(own->of->all, own);
	record_end(&own->record);
	budget_free(own);
}

/* ---- over a reload ---- */

void contents_expect(struct codec *codec, struct contents *contents, size_t count)
{
	contents->read = calloc(count + 1, sizeof(struct content *));
	if (!contents->read)
		codec->give_up(strerror(ENOMEM));
}

/* The last that was read of a node is the latest. */
static void read_content(struct codec *codec, struct contents *contents,
                         const struct content_key *key, const void *data, size_t len)
{
	struct content *content;

	if (key->uid > UINT32_MAX || len > BUDGET_BYTES)
		codec->give_up("the state has an invalid open file");
	content = new_content(contents, key, data, len);
	if (!content)
		codec->give_up(strerror(errno));
	contents->read[contents->read_count++] = content;
}

void content_record_save_load(struct codec *codec, void *contents, struct record *record)
{
	struct content *content = RECORD_IN(record, struct content);
	struct content_key key = content ? content->key : (struct content_key){0};
	size_t len = content ? content->len : 0;
	const void *data;

	CODEC_64(codec, key.ino);
	CODEC_64(codec, key.uid);
	data = codec_bytes(codec, content ? content->data : NULL, &len);
	if (codec->loads)
		read_content(codec, contents, &key, data, len);
}

static int compare_with_number(const void *number, const void *content)
{
	const uint64_t *a = number;
	const struct content *const *b = content;

	return *a < (*b)->record.key ? -1 : *a > (*b)->record.key;
}

const struct content *content_save_load(struct codec *codec, struct contents *contents,
                                        const struct content *content)
{
	uint64_t number = content ? content->record.key : 0;
	struct content **found;

	CODEC_64(codec, number);
	if (!codec->loads || number == 0)
		return content;
	found = bsearch(&number, contents->read, contents->read_count, sizeof(found[0]),
	                compare_with_number);
	if (!found)
		codec->give_up("the state has an open file without its text");
	(*found)->references++;
	return *found;
}

void contents_loaded(struct contents *contents)
{
	struct content *content, *next;

	DL_FOREACH_SAFE(contents->all, content, next)
		content_drop(content); /* the reference that it was made with */
	free(contents->read);
	contents->read = NULL;
	contents->read_count = 0;
}
