/* SPDX-License-Identifier: MIT */
#include "host/safe.h"

#include "lockcore.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static size_t put_octal(char ret[SAFE_MAX], const char *bytes, size_t count)
{
	char code[5];

	for (size_t i = 0; i < count; i++) {
		snprintf(code, sizeof(code), "\\%03o", (unsigned char)bytes[i]);
		memcpy(ret + 4 * i, code, 4);
	}
	return 4 * count;
}

static size_t put_bare(char ret[SAFE_MAX], const char *text, size_t len)
{
	memcpy(ret, text, len);
	return len;
}

size_t safe_next(const char **text, enum safe how, char ret[SAFE_MAX])
{
	const char *at = *text;
	size_t left = strnlen(at, 4), shown = lc_text_shown(at, left);
	size_t size = shown > 0 ? shown : lc_text_harmful(at, left); /* 0: no character */
	bool blank = lc_text_blank(at, left) > 0;

	*text += size > 0 ? size : 1;
	if (how == SAFE_WORD && blank)
		return put_bare(ret, "_", 1);
	if (how == SAFE_COLUMN &&
	    (*at == ' ' || *at == '\\' || (size > 1 && (blank || shown == 0))))
		return put_octal(ret, at, size);
	if (how == SAFE_LABEL && *at == '\n')
		return put_bare(ret, "\\n", 2);
	if (how == SAFE_LABEL && (*at == '"' || *at == '\\'))
		return put_bare(ret, *at == '"' ? "\\\"" : "\\\\", 2);
	if (how == SAFE_LABEL && size > 0)
		return put_bare(ret, at, size);
	return shown > 0 ? put_bare(ret, at, shown) : put_bare(ret, "?", 1);
}

char *safe_text(char *room, size_t size, const char *text, enum safe how)
{
	char next[SAFE_MAX];
	size_t n = 0, len;

	while (*text && n + (len = safe_next(&text, how, next)) < size) {
		memcpy(room + n, next, len);
		n += len;
	}
	room[n] = '\0';
	return room;
}
