/* SPDX-License-Identifier: MIT
 *
 * content.c - see content.h.
 */
#include "content.h"

#include <string.h>

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

const struct content *content_get(struct contents *contents, const struct node *node, uid_t uid,
                                  const char *data, size_t len)
{
	struct content_key key = {.ino = node->ino, .uid = uid};
	struct content *before = find_latest(contents, &key), *content;
	char *copy;

	if (before && before->len == len && (len == 0 || memcmp(before->data, data, len) == 0)) {
		before->references++;
		return before;
	}
	content = budget_alloc(contents->budget, uid, sizeof(*content) + len + 1);
	if (!content)
		return NULL;
	copy = (char *)(content + 1);
	if (len > 0)
		memcpy(copy, data, len);
	content->data = copy;
	content->len = len;
	content->references = 1;
	content->of = contents;
	content->key = key;
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
	budget_free(own);
}
