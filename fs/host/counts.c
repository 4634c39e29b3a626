/* SPDX-License-Identifier: MIT */
#include "host/counts.h"

#include <string.h>

struct counts counted;

static const struct {
	const char *name;
	unsigned long *count;
} all[] = {
#define COUNT(field, metric, label, help) {#field, &counted.field},
	COUNTS(COUNT)
#undef COUNT
};
#define ALL (sizeof(all) / sizeof(all[0]))

/* Another version may count what this one does not. */
static void set_count(const char *name, int64_t count)
{
	for (size_t i = 0; i < ALL; i++)
		if (name && strcmp(all[i].name, name) == 0)
			*all[i].count = (unsigned long)count;
}

void counts_save_load(struct codec *codec)
{
	size_t count = codec_count(codec, ALL);

	for (size_t i = 0; i < count; i++) {
		const char *name = codec_text(codec, codec->loads ? NULL : all[i].name);
		int64_t value = codec->loads ? 0 : (int64_t)*all[i].count;

		CODEC_64(codec, value);
		if (codec->loads)
			set_count(name, value);
	}
}
