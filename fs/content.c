/* SPDX-License-Identifier: MIT
 *
 * content.c - see content.h.
 */
#include "content.h"

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
	if (content->latest)
		HASH_DEL(content->of->latest, content);
	content->latest = false;
}

/* Without the memory for it, it is not shared. */
static void remember_latest(struct content *content)
{
	struct contents *contents = content->of;

	HASH_ADD(hh, contents->latest, key, sizeof(content->key), content);
	content->latest = content->hh.tbl;
}

/* With one reference. NULL: errno. */
static struct content *new_content(struct contents *contents, const struct content_key *key,
                                   const char *data, size_t len)
{
	struct content *content =
		budget_alloc(contents->budget, (uid_t)key->uid, sizeof(*content) + len + 1);
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
	return content;
}

const struct content *content_get(struct contents *contents, const struct node *node, uid_t uid,
                                  const char *data, size_t len)
{
	struct content_key key = {.ino = node->ino, .uid = uid};
	struct content *before = find_latest(contents, &key), *content;

	if (before && before->len == len && (len == 0 || memcmp(before->data, data, len) == 0)) {
		before->references++;
		return before;
	}
	content = new_content(contents, &key, data, len);
	if (!content)
		return NULL;
	if (before)
		forget_latest(before);
	remember_latest(content);
	return content;
}

void content_drop(const struct content *content)
{
	struct content *own = (struct content *)content;

	if (!own || --own->references > 0)
		return;
	forget_latest(own);
	DL_DELETE(own->of->all, own);
	budget_free(own);
}

/* ---- over a reload ---- */

static struct content *read_content(struct carry *carry, struct contents *contents,
                                    const struct content_key *key, const void *data, size_t len)
{
	struct content *content;

	if (key->uid > UINT32_MAX || len > BUDGET_BYTES)
		carry->refuse("the state has an open file that cannot be");
	content = new_content(contents, key, data, len);
	if (!content)
		carry->refuse(strerror(errno));
	return content;
}

void contents_carry(struct carry *carry, struct contents *contents)
{
	struct content *content = carry->loads ? NULL : contents->all, *last;
	size_t count = 0;

	DL_COUNT(contents->all, last, count);
	count = carry_count(carry, count);
	for (size_t i = 0; i < count; i++) {
		struct content_key key = content ? content->key : (struct content_key){0};
		bool latest = content && content->latest;
		size_t len = content ? content->len : 0;
		const void *data;

		CARRY_64(carry, key.ino);
		CARRY_64(carry, key.uid);
		CARRY_BOOL(carry, latest);
		data = carry_bytes(carry, content ? content->data : NULL, &len);
		if (carry->loads)
			content = read_content(carry, contents, &key, data, len);
		content->number = i + 1;
		if (carry->loads && latest && !find_latest(contents, &key))
			remember_latest(content);
		if (!carry->loads)
			content = content->next;
	}
	if (!carry->loads)
		return;
	contents->count = count;
	contents->numbered = calloc(count + 1, sizeof(struct content *));
	if (!contents->numbered)
		carry->refuse(strerror(ENOMEM));
	DL_FOREACH(contents->all, content)
		contents->numbered[content->number] = content;
}

const struct content *content_carry(struct carry *carry, struct contents *contents,
                                    const struct content *content)
{
	size_t number = content ? content->number : 0;
	struct content *own;

	CARRY_SIZE(carry, number, carry->loads ? contents->count : SIZE_MAX / 2);
	if (!carry->loads)
		return content;
	own = contents->numbered[number];
	if (own)
		own->references++;
	return own;
}

void contents_carried(struct contents *contents)
{
	struct content *content, *next;

	DL_FOREACH_SAFE(contents->all, content, next)
		content_drop(content); /* the reference that it was made with */
	free(contents->numbered);
	contents->numbered = NULL;
}
