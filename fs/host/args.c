/* SPDX-License-Identifier: MIT */
#include "host/args.h"

#include <argz.h>
#include <stdlib.h>
#include <string.h>

int args_count(char *const argv[])
{
	int count = 0;

	while (argv[count])
		count++;
	return count;
}

char **args_split(const char *program, const char *bytes, size_t len)
{
	size_t count;
	char **argv;

	if (len == 0 || len > ARGS_BYTES_MAX || bytes[len - 1])
		return NULL;
	count = argz_count(bytes, len);
	argv = malloc((count + 2) * sizeof(*argv) + len);
	if (!argv)
		return NULL;
	argv[0] = (char *)program;
	argz_extract(memcpy(argv + count + 2, bytes, len), len, argv + 1);
	return argv;
}
